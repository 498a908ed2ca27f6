"""Work shared out between the cores of the machine, at most two: a thread takes the next item when it is done with one.

No more items are drawn than are being worked on, so that what is in memory does not grow with their number.
"""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Callable, Dict, Iterable, Iterator, List, Tuple, TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def threads() -> int:
    """How many work at a time."""
    return min(2, os.cpu_count() or 1)


def shared_out(work: Callable[[_Item], _Result], items: Iterable[_Item]) -> List[_Result]:
    """`work` of every item, in the order of the items. The first error ends it, once what is under way is done."""
    if threads() < 2:
        return [work(item) for item in items]
    turns: List[Iterator[Tuple[int, _Item]]] = [enumerate(items)]
    results: Dict[int, _Result] = {}
    taking = threading.Lock()

    def take() -> None:
        try:
            while True:
                with taking:
                    turn = next(turns[0], None)
                if turn is None:
                    return
                results[turn[0]] = work(turn[1])
        except BaseException:
            turns[0] = iter(())
            raise

    with ThreadPoolExecutor(threads() - 1) as pool:
        others = [pool.submit(take) for _ in range(threads() - 1)]
        take()
    for other in others:
        other.result()
    return [results[number] for number in range(len(results))]
