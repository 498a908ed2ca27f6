"""Two sides that only send digests name a difference to its element; each answer fits a comment."""

import numpy as np
import pytest

from pytest_migparity.core.verdict import Outcome
from pytest_migparity.host.digest import digest
from pytest_migparity.host.tensors import of_array
from pytest_migparity.host.zoom import cast_of, rounded, zoomed
from pytest_migparity.judges.digest_refine import refine
from pytest_migparity.reports.messages import tell
from pytest_migparity.wire.digest import Digest
from pytest_migparity.wire.digest_text import from_text, to_text

RNG = np.random.default_rng(77)


def side(**arrays):
    return [of_array(name, *(array if isinstance(array, tuple) else (array,))) for name, array in arrays.items()]


def answer(tensors, options):
    """What `digest` would send for these options, as text."""
    asked = dict(zip(options[::2], options[1::2], strict=True))
    if "--zoom" in asked:
        tensors = zoomed(tensors, asked["--zoom"])
    if "--cast" in asked:
        tensors = [cast_of(tensor, asked["--cast"]) for tensor in tensors]
    return to_text(digest(tensors, level=int(asked.get("--level", 1)), algorithm=asked["--hash"]))


def dialogue(baseline, candidate, level):
    """(what was named at last, the commands, characters sent after the first pair) of following every ask."""
    first = ("--level", str(level), "--hash", "sha256")
    texts = {"baseline": answer(baseline, first), "candidate": answer(candidate, first)}
    found, asked, sent, cast = refine(*map(from_text, texts.values())), [], 0, ""
    while found.asks:
        for ask in found.asks[:1] if found.asks[0].side == "both" else found.asks:
            asked.append(" ".join(ask.options[:-2]))
            for name, tensors in (("baseline", baseline), ("candidate", candidate)):
                if ask.side in (name, "both"):
                    texts[name] = answer(tensors, ask.options)
                    sent += len(texts[name]) // (2 if ask.side == "both" else 1)
            cast = ask.options[ask.options.index("--cast") + 1] if "--cast" in ask.options else cast
        found = refine(*map(from_text, texts.values()), cast=cast)
        assert len(asked) < 9
    return [tell(item, "en") for item in found.notes], asked, sent


def matrix(*shape):
    return (RNG.standard_normal(shape) * 0.02).astype(np.float32)


@pytest.mark.parametrize("level", [0, 1])
def test_one_flipped_bit_is_named_by_element_and_bits(level):
    good = matrix(1300, 2048)  # three leaves, the last one short
    bad = good.copy()
    bad[1111, 22] = 0.5
    bad.view(np.uint32)[1111, 22] ^= 1
    good[1111, 22] = 0.5
    place = 1111 * 2048 + 22
    named, asked, sent = dialogue(side(w=good, v=good[:9]), side(w=bad, v=good[:9]), level)
    assert named == ["1 of 64 parts differ",
                     f"w: element {place} (in C order) is 0.5 (0x3f000000) in the baseline and 0.50000006 (0x3f000001) in the candidate"]
    leaf, block, piece = (place // size * size for size in (1 << 20, 4096, 64))
    wanted = ["--zoom w --level 1", f"--zoom w[{leaf}:{1300 * 2048}] --level 0", f"--zoom w[{block}:{block + 4096}] --level 0",
              f"--zoom w[{piece}:{piece + 64}] --level 1"]
    if not level:
        wanted[:1] = ["--zoom w[:] --level 1", f"--zoom w[0:{1300 * 2048}] --level 1"]
    assert asked == wanted
    assert sent <= 16_000


def test_a_cast_is_asked_to_be_proved_by_the_wider_side_alone():
    w, v = matrix(300, 40), matrix(70, 90)
    narrow = {name: (rounded(array, "float32", "bfloat16"), "bfloat16") for name, array in (("w", w), ("v", v))}
    for level in (0, 1):
        named, asked, _ = dialogue(side(w=w, v=v), side(**narrow), level)
        assert asked == ["--cast bfloat16 --level 0"]
        assert named == ["all tensors are equal once rounded to bfloat16, to the bit; before, they may differ"]
        assert dialogue(side(**narrow), side(w=w, v=v), level)[1] == ["--cast bfloat16 --level 0"]


def test_a_bit_beside_a_cast_is_found_among_the_rounded_copies():
    w = matrix(100, 90)
    bits = rounded(w, "float32", "bfloat16")
    bits[55, 5] ^= 1
    named, asked, _ = dialogue(side(w=w), side(w=(bits, "bfloat16")), 1)
    assert asked[0] == "--cast bfloat16 --level 0"
    assert all("--cast bfloat16" in options for options in asked)
    assert named[0] == "1 of 64 parts differ"
    assert named[1].startswith(f"w: element {55 * 90 + 5} (in C order) is ")
    assert named[1].endswith(f"(0x{bits[55, 5]:04x}) in the candidate")


def test_a_difference_beside_casts_is_not_rounded_away():
    w, v = matrix(100, 90), matrix(8, 8)
    other = v.copy()
    other.view(np.uint32)[0, 0] ^= 1
    one, two = side(w=w, v=v), side(w=(rounded(w, "float32", "bfloat16"), "bfloat16"), v=other)
    for level, closer in ((0, "--zoom v[:] --level 1"), (1, "--zoom v --level 1")):
        found = refine(*(digest(tensors, level=level, algorithm="sha256") for tensors in (one, two)))
        assert [(ask.side, " ".join(ask.options[:4])) for ask in found.asks] == [
            ("baseline", "--cast bfloat16 --level 0"), ("both", closer)]


def test_a_fault_that_says_what_became_of_all_elements_asks_for_nothing():
    w = matrix(64, 50)
    for bad in (-w, w * np.float32(1.5), w[::-1], np.zeros_like(w)):
        named, asked, _ = dialogue(side(w=w), side(w=bad), 1)
        assert (len(named), asked) == (1, [])


def test_noise_everywhere_stops_at_the_first_parts():
    w = matrix(100, 200)
    named, asked, _ = dialogue(side(w=w), side(w=w + matrix(100, 200)), 1)
    assert asked == ["--zoom w --level 0"]
    assert named[0] == "5 of 5 parts differ"
    assert "differs between elements 0 and 4095" in named[1]


def test_a_nan_is_named_by_its_element():
    good = matrix(7, 9)
    bad = good.copy()
    bad[3, 3] = np.nan
    named, asked, _ = dialogue(side(w=good), side(w=bad), 1)
    assert asked == ["--zoom w --level 1"]
    assert f"element {3 * 9 + 3} " in named[1]
    assert named[1].endswith("NaN in the candidate")


def test_two_dtypes_are_looked_at_closely_in_the_shorter_one():
    w = matrix(100, 90)
    bits = rounded(w, "float32", "bfloat16")
    bits[55, 5] = 0x4000  # 2.0, a hundred times the largest weight
    named, asked, _ = dialogue(side(w=w), side(w=(bits, "bfloat16")), 1)
    assert asked[0] == "--zoom w --level 0 --cast bfloat16"
    assert named[0] == "1 of 64 parts differ"
    assert "2 (0x4000) in the candidate" in named[1]


def test_a_zero_whose_sign_flipped_is_found_though_nothing_measures_it():
    good = np.zeros(70, np.float32)
    bad = good.copy()
    bad[65] = -0.0
    named, asked, _ = dialogue(side(w=good), side(w=bad), 1)
    assert asked == ["--zoom w --level 0", "--zoom w[64:70] --level 1"]
    assert named[1] == "w: element 65 (in C order) is 0 or -0 in the baseline and 0 or -0 in the candidate"


@pytest.mark.parametrize("leaves, level", [(64, "1"), (65, "0")])
def test_the_leaves_of_a_large_tensor_travel_without_statistics(leaves, level):
    (item,) = digest(side(w=matrix(8, 8)), level=1, algorithm="sha256").tensors
    sides = [Digest(1, "sha256", (item._replace(shape=(leaves << 20,), hash=str(number) * 16,
                                                stats=item.stats._replace(multiset=number)),)) for number in (1, 2)]
    assert refine(*sides).asks[0].options[:4] == ("--zoom", "w", "--level", level)


def test_few_tensors_are_asked_for_by_name_and_many_together():
    arrays = {f"l.{k}": matrix(20, 30) for k in range(12)}
    for count, options in ((8, "--zoom l.0[:] --level 1"), (9, "--level 1")):
        bad = {name: array * np.float32(2) if int(name[2:]) < count else array for name, array in arrays.items()}
        found = refine(*(digest(side(**one), level=0, algorithm="sha256") for one in (arrays, bad)))
        assert " ".join(found.asks[0].options) == options + " --hash sha256"
        assert len(found.asks) == (8 if count == 8 else 1)


def test_what_cannot_be_compared_is_open():
    one, other = (digest(side(w=matrix(3, 3)), level=1, algorithm="sha256") for _ in range(2))
    found = refine(one, other._replace(algorithm="xxh3_128"))
    assert (found.outcome, found.asks[0].options) == (Outcome.INCONCLUSIVE, ("--hash", "sha256"))
    assert refine(one, other._replace(tensors=())).outcome is Outcome.INCONCLUSIVE
    assert refine(one, one) == type(found)(Outcome.PASS)
