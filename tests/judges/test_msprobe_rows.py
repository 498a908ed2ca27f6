"""What msprobe passes and we must not, and the other way round: the rows of facts/msprobe.md, each with its verdict."""

from __future__ import annotations

import copy

import pytest

torch = pytest.importorskip("torch")
import sample_msprobe as sample  # noqa: E402
from recordings import codes, evidence  # noqa: E402

from pytest_migparity.core.evidence import Policy  # noqa: E402
from pytest_migparity.core.levels import LEVELS  # noqa: E402
from pytest_migparity.core.limits import Floors, default_limits  # noqa: E402
from pytest_migparity.core.verdict import Outcome  # noqa: E402
from pytest_migparity.host.digest import digest  # noqa: E402
from pytest_migparity.host.torch_tensors import of_module  # noqa: E402
from pytest_migparity.judges.dumped import judge_dumped_forward, judge_dumped_weights  # noqa: E402
from pytest_migparity.judges.identity import Identity, judge_identity  # noqa: E402
from pytest_migparity.readers.msprobe_dump import read_dump  # noqa: E402

PASS, FAIL, INCONCLUSIVE = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE


def changed(**changes):
    """The model with parameters replaced: name -> function."""
    made = sample.model()
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            for pattern, function in changes.items():
                if pattern == "every" or name == pattern.replace("__", "."):
                    parameter.copy_(function(parameter))
    return made


def found(level, candidate, document=None, baseline=None, **policy):
    """The finding of a level from the two models' dumps, or from the documents given."""
    dumps = [read_dump(sample.files(baseline or sample.dump(sample.model(), sample.given())))[0],
             read_dump(sample.files(document or sample.dump(candidate, sample.given())))[0]]
    judge = judge_dumped_forward if level == "L3" else judge_dumped_weights
    sides = [evidence(side, dump) for side, dump in zip(("baseline", "candidate"), dumps, strict=True)]
    sides = [type(side)(side.side, side.kind, (type(side.runs[0])(dump, side.runs[0].witness),))
             for side, dump in zip(sides, dumps, strict=True)]
    return judge(*sides, limits=default_limits(LEVELS[level]), floors=Floors(), policy=Policy(**policy))


def by_digest(candidate):
    """L1 from digests of both models' weights."""
    sides = [evidence(side, Identity({"weights": digest(of_module(made), algorithm="sha256")}))
             for side, made in (("baseline", sample.model()), ("candidate", candidate))]
    return judge_identity(*sides, limits=default_limits(LEVELS["L1"]), floors=Floors(), policy=Policy())


def test_equal_models_pass_and_say_that_statistics_were_judged():
    finding = found("L3", sample.model())
    assert finding.outcome is PASS
    assert codes(finding) == {"dump-statistics"}
    assert (finding.coverage.compared, finding.coverage.of) == (13, 13)


def test_row_1_unrelated_random_weights_fail_at_l1_and_at_the_first_module():
    candidate = sample.model(seed=99)
    finding = found("L3", candidate)
    assert finding.outcome is FAIL
    assert finding.first_divergence.at == "step 0 output Module.b.0.l1.Linear.forward.0.output"
    assert found("L1", candidate).outcome is FAIL
    assert by_digest(candidate).outcome is FAIL


def test_row_2_bfloat16_is_judged_by_its_numbers_where_it_is_declared():
    candidate = sample.model().bfloat16()
    document = sample.dump(candidate, sample.given().bfloat16())
    assert found("L3", None, document, precisions=("float32", "bfloat16")).outcome is PASS
    assert found("L3", None, document).outcome is FAIL, "undeclared: held against float32"


def test_row_3_one_layer_times_1_3_fails_at_that_layer():
    finding = found("L3", changed(b__2__l1__weight=lambda w: w * 1.3))
    assert finding.outcome is FAIL
    assert finding.first_divergence.at == "step 0 output Module.b.2.l1.Linear.forward.0.output"


def test_row_4_all_weights_times_1_05_fail_at_l1_and_the_factor_is_named():
    candidate = changed(every=lambda w: w * 1.05)
    finding = found("L1", candidate)
    assert finding.outcome is FAIL
    assert {item.params["factor"] for item in finding.notes if item.code == "dump-scaled"} == {"1.05000"}
    exact = by_digest(candidate)
    assert exact.outcome is FAIL
    scales = [float(item.params["scale"]) for item in exact.notes if item.code == "digest-scaled"]
    assert scales == [pytest.approx(1.05, abs=2e-4)] * 8  # of 18, the rest as a number
    assert found("L3", candidate).outcome is FAIL


def test_row_5_noise_of_1e_6_passes_with_its_figure():
    noise = torch.Generator().manual_seed(5)
    candidate = changed(every=lambda w: w * (1 + 1e-6 * torch.randn(w.shape, generator=noise)))
    finding = found("L3", candidate)
    assert finding.outcome is PASS
    (check,) = finding.checks
    assert 0 < check.value < 4
    assert by_digest(candidate).outcome is FAIL, "as a checkpoint it is another one"


def test_row_6_flipped_columns_fail_where_contents_are_compared_and_never_pass_by_statistics():
    candidate = changed(b__1__l1__weight=lambda w: w.flip(1))
    exact = by_digest(candidate)
    assert exact.outcome is FAIL
    assert [(item.code, item.params["name"]) for item in exact.notes] == [("digest-permuted", "b.1.l1.weight")]
    by_statistics = found("L1", candidate)
    assert by_statistics.outcome is INCONCLUSIVE
    assert "dump-weights-statistics" in codes(by_statistics)
    assert found("L3", candidate).first_divergence.at == "step 0 output Module.b.1.l1.Linear.forward.0.output"


def spoiled(key, **values):
    document = sample.dump(sample.model(), sample.given())
    document["data"][key]["output"][0].update(values)
    return document


LAST = "Module.out.Linear.forward.0"


def test_row_7_a_scalar_of_another_value_fails():
    one, two = (sample.dump(sample.model(), sample.given()) for _ in range(2))
    for document, value in ((one, 1.0), (two, 2.0)):
        document["data"]["Functional.loss.0.forward"] = {"output": [{"type": "float", "value": value}]}
    finding = found("L3", None, two, one)
    assert finding.outcome is FAIL
    assert finding.first_divergence.at == "step 0 output Functional.loss.0.forward.output"


def test_row_7_nan_against_900_fails():
    nan = float("nan")
    finding = found("L3", None, spoiled(LAST, Max=nan, Min=nan, Mean=nan, Norm=nan), spoiled(LAST, Max=900.0, Norm=2000.0))
    assert finding.outcome is FAIL
    assert "dump-non-finite" in codes(finding)


def test_row_7_a_negated_output_fails():
    document = sample.dump(sample.model(), sample.given())
    held = copy.deepcopy(document["data"][LAST]["output"][0])
    assert found("L3", None, spoiled(LAST, Max=-held["Min"], Min=-held["Max"], Mean=-held["Mean"])).outcome is FAIL


@pytest.mark.parametrize("side", ["baseline", "candidate"])
def test_row_8_operations_of_one_side_are_reported_and_no_pass(side):
    document = sample.dump(sample.model(), sample.given())
    fused = copy.deepcopy(document)
    del fused["data"]["Module.b.1.l2.Linear.forward.0"]
    pair = (fused, document) if side == "candidate" else (document, fused)
    finding = found("L3", None, pair[1], pair[0])
    assert finding.outcome is INCONCLUSIVE
    assert [item.params["side"] for item in finding.notes if item.code == "record-one-sided"] == [side]
    declared = found("L3", None, pair[1], pair[0], skipped={"*b.1.l2*": "fused on Ascend"})
    assert declared.outcome is PASS


def test_checksums_of_a_dump_tell_equal_tensors_exactly():
    document = sample.dump(sample.model(), sample.given(), checksum=True)
    finding = found("L3", None, document, document)
    assert (finding.outcome, finding.checks[0].value) == (PASS, 0.0)


def test_a_dump_without_statistics_is_open():
    nothing = spoiled(LAST, Max=None, Min=None, Mean=None, Norm=None)
    finding = found("L3", None, nothing, nothing)
    assert finding.outcome is INCONCLUSIVE
    assert "dump-unknown" in codes(finding)


def test_a_shifted_mean_alone_fails():
    document = sample.dump(sample.model(), sample.given())
    mean = document["data"][LAST]["output"][0]["Mean"]
    assert found("L3", None, spoiled(LAST, Mean=mean + 0.01)).outcome is FAIL
