"""Printed cells as arrays, and the bounds of a table."""

import io
import math
import tracemalloc
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_migparity.readers import rows as rows_module
from pytest_migparity.readers.cells import EMPTY, EXPONENT, FIXED, NOT_FINITE, ODD, read_cells, read_steps
from pytest_migparity.readers.errors import ReadError
from pytest_migparity.readers.loss import read_loss
from pytest_migparity.readers.rows import Rows

NUMBERS = st.from_regex(r"[+-]?([0-9]{1,6}(\.[0-9]{0,9})?|\.[0-9]{1,9})([eE][+-]?[0-9]{1,4})?", fullmatch=True)
TEXTS = st.one_of(NUMBERS, st.sampled_from(["", "nan", "-inf", "null", "1,5", "1_0", "0x1", "1.2.3", "1e", "e5", "-", "1 2",
                                            "٣", " 2.5 ", "1\n2", "1e99999", "9" * 500, "1.", "+.5"]))


def by_decimal(text):
    """(kind, value, decimals of the mantissa, exponent) of a number, by `decimal`, which knows nothing of ours."""
    mantissa, _, exponent = text.lower().partition("e")
    decimals = max(0, -Decimal(mantissa).as_tuple().exponent)
    return EXPONENT if exponent else FIXED, float(Decimal(text)), decimals, int(exponent or 0)


@given(st.lists(NUMBERS, min_size=1, max_size=30))
def test_numbers_are_those_of_decimal(texts):
    cells = read_cells(texts)
    for i, text in enumerate(texts):
        kind, value, decimals, exponent = by_decimal(text)
        assert (cells.kind[i], cells.decimals[i], cells.exponent[i]) == (kind, decimals, exponent)
        assert cells.value[i] == value


@given(st.lists(TEXTS, min_size=1, max_size=12))
def test_a_cell_reads_the_same_alone_and_among_others(texts):
    together = read_cells(texts)
    for i, text in enumerate(texts):
        alone = read_cells([text])
        assert (alone.kind[0], alone.decimals[0], alone.exponent[0]) == (
            together.kind[i], together.decimals[i], together.exponent[i])
        assert alone.value[0] == together.value[i] or (math.isnan(alone.value[0]) and math.isnan(together.value[i]))


@pytest.mark.parametrize(("text", "kind"), [
    ("", EMPTY), ("None", EMPTY), ("null", EMPTY), ("NaN", NOT_FINITE), ("-Infinity", NOT_FINITE), ("1e5", EXPONENT),
    ("0", FIXED), ("abc", ODD), ("1_000", ODD), ("0x10", ODD), ("1e12345", ODD), ("infinit", ODD), ("True", ODD)])
def test_what_a_cell_is(text, kind):
    assert read_cells([text]).kind.tolist() == [kind]
    assert read_cells([text] * 3).kind.tolist() == [kind] * 3


def test_steps_are_whole_numbers_or_kept_as_printed():
    steps, odd = read_steps(["12", "13.0", "14/1389", "1,500", "1K", "-3", "9" * 16])
    assert steps.tolist() == [12, 13, 14, 1500, -1, -1, -1]
    assert odd == {4: "1K", 5: "-3", 6: "9" * 16}


def test_rows_and_whole_columns_make_the_same_table():
    one, many = Rows(), Rows()
    for i in range(9):
        one.add(i + 1, str(i), {"loss": f"{i}.50", "lr": "x" if i == 4 else "1e-4"})
    many.add(1, "0", {"loss": "0.50", "lr": "1e-4"})
    many.extend(range(2, 10), [str(i) for i in range(1, 9)],
                {"loss": [f"{i}.50" for i in range(1, 9)], "lr": ["x" if i == 4 else "1e-4" for i in range(1, 9)]})
    for table in (one, many):
        assert table.lines().tolist() == list(range(1, 10))
        assert table.steps().tolist() == list(range(9))
        assert table.column("loss").value.tolist() == [i + 0.5 for i in range(9)]
        assert table.column("lr").kind.tolist() == [EXPONENT] * 4 + [ODD] + [EXPONENT] * 4
        assert table.odd("lr") == {4: "x"}


def test_a_column_that_appears_late_is_empty_before(monkeypatch):
    monkeypatch.setattr(rows_module, "_BUFFER", 2)
    rows = Rows()
    for i in range(5):
        rows.add(i, str(i), {"loss": "1.0"} if i < 3 else {"loss": "1.0", "grad_norm": "2.0"})
    assert list(rows.columns()) == ["loss", "grad_norm"]
    assert rows.column("grad_norm").kind.tolist() == [EMPTY, EMPTY, EMPTY, FIXED, FIXED]


# --- bounds


class Endless(io.RawIOBase):
    """A log that never ends."""

    def __init__(self, start, piece):
        self.start, self.piece, self.at = start, piece, 0

    def readable(self):
        return True

    def seek(self, offset, whence=0):
        self.at = 0
        return 0

    def read(self, size=-1):
        if self.at == 0:
            self.at = 1
            return self.start[:size]
        self.at = 2
        return self.piece * max(1, size // len(self.piece))


@pytest.mark.parametrize(("start", "piece"), [
    (b"step,loss\n1,2\n", b"1,2\n"), (b'{"step":1,"loss":2}\n', b'{"step":1,"loss":2}\n'),
    (b"iteration 1/ 9 | loss: 1.0 |\n", b"iteration 1/ 9 | loss: 1.0 |\n"),
    (b"iteration 1/ 9 | loss: 1.0 |\n", b"iteration 1/ 9 | loss: 1.0 |\niteration 1/ 9 | a: 1 |\n"),
])
def test_rows_without_end_are_refused_in_bounded_memory(start, piece, monkeypatch):
    monkeypatch.setattr(rows_module, "MOST_ROWS", 100_000)
    tracemalloc.start()
    with pytest.raises(ReadError, match="more than 100000 rows up to here"):
        read_loss(Endless(start, piece), "log")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6


def test_columns_without_end_are_refused():
    rows = "".join(f'{{"step": {i}, "loss": 1.0, "k{i}": 1}}\n' for i in range(5000))
    with pytest.raises(ReadError, match="more than 1024 columns"):
        read_loss(rows.encode(), "log")


def test_values_without_end_are_refused(monkeypatch):
    monkeypatch.setattr(rows_module, "MOST_CELLS", 1000)
    with pytest.raises(ReadError, match=r"log, line 502: found more than 1000 values"):
        read_loss(("step,loss,lr\n" + "1,2,3\n" * 500 + "1,2,3\n").encode(), "log")


@pytest.mark.parametrize("line", [
    '{{"step": {0}, "loss": 1.0, {1}}}', "iteration {0}/9 | loss: 1.0 | {2}",
])
def test_records_of_many_names_are_refused_before_they_fill_memory(line):
    """A megabyte of names in each line, thousands of lines."""
    names = [f"k{i}" for i in range(3000)]
    text = line.format("{0}", ", ".join(f'"{name}": 1' for name in names), " | ".join(f"{name}: 1" for name in names))
    data = "".join(text.replace("{0}", str(i)) + "\n" for i in range(200)).encode()
    tracemalloc.start()
    with pytest.raises(ReadError, match="more than 1024 columns"):
        read_loss(data, "log")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30e6


def test_cells_with_commas_without_end_are_refused(monkeypatch):
    monkeypatch.setattr(rows_module, "MOST_ODD", 1000)
    with pytest.raises(ReadError, match="more than 1000 cells that are no plain numbers"):
        read_loss(b"step;loss\n" + b"1;2,5\n" * 1001, "log")


def test_texts_that_are_no_numbers_are_not_kept():
    """Their first few are, for the message that names one."""
    rows = Rows()
    for i in range(4000):
        rows.add(i, f"{i}K", {"loss": "2.5", "note": f"{i} words"})
    assert rows.odd("note") == {i: f"{i} words" for i in range(16)}
    assert rows.column("note").kind.tolist() == [ODD] * 4000
    assert rows.steps().tolist() == [-1] * 4000
    assert rows.odd_steps == {i: f"{i}K" for i in range(16)}


LINE = ("iteration {0:8}/ 99999 | consumed samples: {0:12} | learning rate: {1:.6E} | lm loss: {2:.6E} | "
        "grad norm: {3:.3f} | num zeros: {0}.0 | params norm: {3:.3f} |\n")


def test_memory_grows_with_the_table_alone(tmp_path):
    """Four times the lines: the peak grows by what the larger table takes, not by the file that is read."""
    peaks, tables, sizes = [], [], []
    for count in (20_000, 80_000):
        path = tmp_path / str(count)
        with path.open("w") as file:
            file.writelines(LINE.format(i, 1e-4 + i * 1e-9, 2 + 1 / i, i / 7) for i in range(1, count + 1))
        read_loss(path, "warm")
        tracemalloc.start()
        table = read_loss(path, "log").table
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        arrays = [table.step, *table.columns.values(), *table.quantum.values()]
        tables.append(sum(array.nbytes for array in arrays))
        sizes.append(path.stat().st_size)
        assert table.step.tolist() == list(range(1, count + 1))
        assert table.columns["num_zeros"][-1] == count
        assert np.allclose(table.loss, 2 + 1 / np.arange(1, count + 1), atol=1e-6)
    assert sizes[1] > 4 * sizes[0]
    assert peaks[1] - peaks[0] < 2 * (tables[1] - tables[0])
