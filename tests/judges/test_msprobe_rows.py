"""What msprobe passes and we must not, and the other way round: the rows of facts/msprobe.md, each with its verdict."""

from __future__ import annotations

import copy
import math

import pytest

torch = pytest.importorskip("torch")
import sample_msprobe as sample  # noqa: E402
from recordings import codes, evidence  # noqa: E402

from pytest_migparity.core.evidence import Evidence, Policy, Recorded  # noqa: E402
from pytest_migparity.core.levels import LEVELS  # noqa: E402
from pytest_migparity.core.limits import Floors, default_limits  # noqa: E402
from pytest_migparity.core.verdict import Outcome, Witness  # noqa: E402
from pytest_migparity.host.digest import digest  # noqa: E402
from pytest_migparity.host.torch_tensors import of_module  # noqa: E402
from pytest_migparity.judges.dumped import (  # noqa: E402
    judge_dumped_forward,
    judge_dumped_step,
    judge_dumped_weights,
)
from pytest_migparity.judges.identity import Identity, judge_identity  # noqa: E402
from pytest_migparity.readers.msprobe_dump import read_dump  # noqa: E402
from pytest_migparity.reports.messages import tell  # noqa: E402

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
    judge = {"L1": judge_dumped_weights, "L3": judge_dumped_forward, "L4": judge_dumped_step}[level]
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
    assert finding.first_divergence.at == "step 0 output Module.b.0.l1.Linear.forward.0.output.0"
    assert found("L1", candidate).outcome is FAIL
    assert by_digest(candidate).outcome is FAIL


def test_row_2_bfloat16_is_judged_by_its_numbers_where_it_is_declared():
    candidate = sample.model().bfloat16()
    document = sample.dump(candidate, sample.given().bfloat16())
    assert found("L3", None, document, precisions=("float32", "bfloat16")).outcome is PASS
    undeclared = found("L3", None, document)
    assert undeclared.outcome is INCONCLUSIVE
    assert codes(undeclared) >= {"forward-inputs-differ", "dump-dtypes"}
    first = "Module.b.0.l1.Linear.forward.0"
    document["data"][first]["input_args"] = sample.dump(sample.model(), sample.given())["data"][first]["input_args"]
    assert found("L3", None, document).outcome is FAIL, "from the same input, held against float32"


def test_row_3_one_layer_times_1_3_fails_at_that_layer():
    finding = found("L3", changed(b__2__l1__weight=lambda w: w * 1.3))
    assert finding.outcome is FAIL
    assert finding.first_divergence.at == "step 0 output Module.b.2.l1.Linear.forward.0.output.0"


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
    assert [check.name for check in finding.checks] == ["error", "norm"]
    assert 0 < finding.checks[0].value < 4
    assert by_digest(candidate).outcome is FAIL, "as a checkpoint it is another one"


def test_row_6_flipped_columns_fail_where_contents_are_compared_and_never_pass_by_statistics():
    candidate = changed(b__1__l1__weight=lambda w: w.flip(1))
    exact = by_digest(candidate)
    assert exact.outcome is FAIL
    assert [(item.code, item.params["name"]) for item in exact.notes] == [("digest-permuted", "b.1.l1.weight")]
    by_statistics = found("L1", candidate)
    assert by_statistics.outcome is INCONCLUSIVE
    assert "dump-weights-statistics" in codes(by_statistics)
    assert found("L3", candidate).first_divergence.at == "step 0 output Module.b.1.l1.Linear.forward.0.output.0"


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
    assert finding.first_divergence.at == "step 0 output Functional.loss.0.forward.output.0"


@pytest.mark.parametrize("one, two, outcome", [
    ({"type": "float", "value": 1.0}, {"type": "float", "value": 2.0}, FAIL),
    ({"type": "int", "value": 3}, {"type": "int", "value": 4}, FAIL),
    ({"type": "bool", "value": True}, {"type": "bool", "value": False}, FAIL),
    ({"type": "float", "value": 0.1}, {"type": "float", "value": 0.10000000001}, PASS),
])
def test_row_7_an_argument_of_another_value_fails_even_where_the_output_agrees(one, two, outcome):
    documents = [sample.dump(sample.model(), sample.given()) for _ in range(2)]
    for document, value in zip(documents, (one, two), strict=True):
        document["data"][LAST]["input_kwargs"] = {"scale": value}
    finding = found("L3", None, documents[1], documents[0])
    assert finding.outcome is outcome
    if outcome is FAIL:
        assert finding.first_divergence.at == f"step 0 input {LAST}.input.scale"


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
    assert codes(finding) == {"dump-checksums"}
    weights = found("L1", None, document, document)
    assert weights.outcome is PASS
    assert codes(weights) == {"dump-checksums"}


def test_a_checksum_that_its_statistics_contradict_passes_nothing():
    one, two = (sample.dump(sample.model(), sample.given(), checksum=True) for _ in range(2))
    two["data"][LAST]["output"][0]["Norm"] *= 1.1
    assert found("L3", None, two, one).outcome is FAIL


def test_flipped_columns_have_another_checksum():
    one = sample.dump(sample.model(), sample.given(), checksum=True)
    two = sample.dump(changed(b__1__l1__weight=lambda w: w.flip(1)), sample.given(), checksum=True)
    finding = found("L1", None, two, one)
    assert finding.outcome is INCONCLUSIVE
    assert next(item for item in finding.notes if item.code == "dump-weights-statistics").params["count"] == 1


def test_a_declared_cast_of_the_weights_is_open_and_an_undeclared_one_fails():
    document = sample.dump(sample.model().bfloat16(), sample.given().bfloat16())
    assert found("L1", None, document).outcome is FAIL
    declared = found("L1", None, document, cast="bfloat16")
    assert declared.outcome is INCONCLUSIVE
    assert "identity-cast-unproved" in codes(declared)
    scaled = sample.dump(changed(every=lambda w: w * 1.05).bfloat16(), sample.given().bfloat16())
    assert found("L1", None, scaled, cast="bfloat16").outcome is FAIL


def test_a_data_set_that_a_dump_does_not_show_keeps_l1_open():
    document = sample.dump(sample.model(), sample.given(), checksum=True)
    assert found("L1", None, document, document, has_dataset=True).outcome is INCONCLUSIVE


def test_a_dump_without_statistics_is_open():
    nothing = spoiled(LAST, Max=None, Min=None, Mean=None, Norm=None)
    finding = found("L3", None, nothing, nothing)
    assert finding.outcome is INCONCLUSIVE
    assert "dump-unknown" in codes(finding)


def test_a_shifted_mean_alone_fails():
    document = sample.dump(sample.model(), sample.given())
    mean = document["data"][LAST]["output"][0]["Mean"]
    assert found("L3", None, spoiled(LAST, Mean=mean + 0.01)).outcome is FAIL


def test_other_inputs_leave_the_forward_pass_open():
    other = sample.dump(sample.model(), 2 * sample.given())
    finding = found("L3", None, other)
    assert finding.outcome is INCONCLUSIVE
    assert "forward-inputs-differ" in codes(finding)
    assert finding.first_divergence.at == "step 0 input Module.b.0.l1.Linear.forward.0.input.0"


def test_other_inputs_do_not_excuse_nan():
    other = sample.dump(sample.model(), 2 * sample.given())
    other["data"][LAST]["output"][0].update(Max=float("nan"), Min=float("nan"), Mean=float("nan"), Norm=float("nan"))
    assert found("L3", None, other).outcome is FAIL


def test_a_difference_that_arises_between_two_modules_is_said_to():
    """The activation between l1 and l2 is no module: its fault shows first in what goes into l2."""
    document = sample.dump(sample.model(), sample.given())
    held = document["data"]["Module.b.2.l2.Linear.forward.0"]["input_args"][0]
    held["Min"], held["Mean"] = -0.5, held["Mean"] - 0.05
    finding = found("L3", None, document)
    assert finding.outcome is FAIL
    assert finding.first_divergence.at == "step 0 input Module.b.2.l2.Linear.forward.0.input.0"
    assert "dump-between" in codes(finding)


def test_in_a_dump_of_every_operation_what_no_operation_gave_was_handed_to_the_model():
    one, two = (sample.dump(sample.model(), sample.given()) for _ in range(2))
    for document, noise in ((one, 1.0), (two, 3.0)):
        document["level"] = "mix"
        document["data"]["Torch.add.0.forward"] = {"input_args": [sample.entry(noise * torch.ones(4))], "output": []}
    finding = found("L3", None, two, one)
    assert finding.outcome is INCONCLUSIVE
    assert "forward-inputs-differ" in codes(finding)


def test_the_weight_of_an_operation_is_no_input():
    """Level L1 shows weights as arguments: a scaled one fails at the output that it leads to."""
    documents = []
    for factor in (1.0, 1.3):
        weight, x = torch.nn.Parameter(factor * torch.eye(4)), torch.ones(4)
        entries = {"input_args": [sample.entry(x), {**sample.entry(weight), "requires_grad": True}],
                   "output": [sample.entry(weight @ x)]}
        documents.append({"task": "statistics", "level": "L1", "data": {"Functional.linear.0.forward": entries}})
    finding = found("L3", None, documents[1], documents[0])
    assert finding.outcome is FAIL
    assert finding.first_divergence.at == "step 0 output Functional.linear.0.forward.output.0"


def chain(layers, factor=1.0, level="L0"):
    """A dump of many layers whose last output is scaled."""
    data = {}
    for layer in range(layers):
        held = sample.entry((factor if layer == layers - 1 else 1.0) * torch.linspace(-1, 2, 10))
        data[f"Module.h.{layer}.Block.forward.0"] = {"input_args": [], "output": [held]}
    return {"task": "statistics", "level": level, "data": data}


@pytest.mark.parametrize("layers", [2, 40, 400])
def test_no_depth_excuses_a_scaled_output_in_bfloat16(layers):
    """1.03^400 * 4 * 2^-7 is 4000: growth ends at 64 layers, and norms have a limit of their own."""
    finding = found("L3", None, chain(layers, 1.3), chain(layers), precisions=("bfloat16",))
    assert finding.outcome is FAIL
    assert finding.first_divergence.at == f"step 0 output Module.h.{layers - 1}.Block.forward.0.output.0"
    assert next(check for check in finding.checks if check.name == "norm").value == pytest.approx(math.log(1.3))


def test_depth_counts_layers_and_not_the_outputs_of_each():
    far = 2.0**-18
    finding = found("L3", None, chain(3, 1 + far), chain(3))
    # the third layer: 1.03^3 * 2^-21
    assert finding.checks[0].value == pytest.approx(far / (1.03**3 * 2.0**-21), rel=1e-2)


def test_a_sum_that_cancels_is_measured_by_what_went_into_it():
    documents = []
    for value in (1e-3, 2e-3):
        x = torch.cat([torch.full((50,), 100.0), torch.full((50,), -100.0)])
        entries = {"input_args": [sample.entry(x)], "output": [sample.entry(torch.tensor(value))]}
        documents.append({"task": "statistics", "level": "L1", "data": {"Torch.sum.0.forward": entries}})
    finding = found("L3", None, documents[1], documents[0])
    assert finding.outcome is PASS
    assert finding.checks[0].value == pytest.approx(1e-3 / 1000 / 2.0**-21, rel=1e-4)  # ||x|| = 100 * sqrt(100)


def test_a_mask_of_infinities_is_no_doubt_and_no_proof():
    mask = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4, 4], "Max": 0.0, "Min": float("-inf"),
            "Mean": float("-inf"), "Norm": float("inf")}
    one, two = (sample.dump(sample.model(), sample.given()) for _ in range(2))
    for document in (one, two):
        document["data"]["Tensor.masked_fill.0.forward"] = {"output": [dict(mask)]}
    finding = found("L3", None, two, one)
    assert (finding.outcome, finding.coverage.compared, finding.coverage.of) == (PASS, 13, 14)
    two["data"]["Tensor.masked_fill.0.forward"]["output"][0]["Min"] = -10000.0
    assert found("L3", None, two, one).outcome is FAIL
    two["data"]["Tensor.masked_fill.0.forward"]["output"][0].update(Min=float("-inf"), Max=float("inf"))
    assert found("L3", None, two, one).outcome is FAIL


def test_nan_on_both_sides_is_open():
    nan = float("nan")
    broken = spoiled(LAST, Max=nan, Min=nan, Mean=nan, Norm=nan)
    finding = found("L3", None, broken, broken)
    assert finding.outcome is INCONCLUSIVE
    assert "record-broken-alike" in codes(finding)


def test_statistics_that_one_side_alone_lacks_are_open_and_no_fault():
    nothing = spoiled(LAST, Max=None, Min=None, Mean=None, Norm=None)
    finding = found("L3", None, nothing)
    assert finding.outcome is INCONCLUSIVE
    assert "dump-unknown" in codes(finding)


def trained(steps, factor=1.0):
    """Dumps of several steps; at the first there are gradients, and the candidate's later outputs are scaled."""
    files = {}
    for step in range(steps):
        document = sample.dump(sample.model(), sample.given() * (factor if step else 1.0))
        document["data"]["Module.out.Linear.parameters_grad.0"] = {"weight": [sample.entry(torch.ones(8, 32) * factor)]}
        files |= sample.files(document, f"step{step}/rank0")
    return files


def judge_files(level, baseline, candidate, **policy):
    dumps = [read_dump(files)[0] for files in (baseline, candidate)]
    sides = [Evidence(side, "forward", (Recorded(dump, Witness(side, "real", "x", side)),))
             for side, dump in zip(("baseline", "candidate"), dumps, strict=True)]
    judge = {"L3": judge_dumped_forward, "L4": judge_dumped_step}[level]
    return judge(*sides, limits=default_limits(LEVELS[level]), floors=Floors(), policy=Policy(**policy))


def test_steps_after_an_update_are_not_compared_and_that_is_said():
    finding = judge_files("L3", trained(3), trained(3, 1.5))
    assert finding.outcome is PASS
    later = next(item for item in finding.notes if item.code == "dump-later")
    assert (later.params["step"], later.params["count"]) == (0, 2)


def test_forward_passes_alone_are_all_compared():
    one = {**sample.files(chain(2), "step0/rank0"), **sample.files(chain(2), "step1/rank0")}
    two = {**sample.files(chain(2), "step0/rank0"), **sample.files(chain(2, 1.3), "step1/rank0")}
    finding = judge_files("L3", one, two)
    assert finding.outcome is FAIL
    assert finding.first_divergence.at.startswith("step 1 output")


def test_a_step_or_a_rank_that_one_side_lacks_is_no_pass():
    whole = {**sample.files(chain(2), "step0/rank0"), **sample.files(chain(2), "step0/rank1")}
    assert judge_files("L3", whole, sample.files(chain(2))).outcome is INCONCLUSIVE
    assert judge_files("L3", sample.files(chain(2), "step5/rank0"), sample.files(chain(2))).outcome is INCONCLUSIVE
    few = judge_files("L3", whole, whole, world_size=4)
    assert few.outcome is INCONCLUSIVE
    assert "record-ranks" in codes(few)
    assert judge_files("L3", whole, whole, world_size=2).outcome is PASS


def test_gradients_fail_or_stay_open():
    same = judge_files("L4", trained(1), trained(1))
    assert same.outcome is INCONCLUSIVE
    assert "dump-step-statistics" in codes(same)
    other = judge_files("L4", trained(1), trained(1, 1.5))
    assert other.outcome is FAIL
    assert other.first_divergence.at == "step 0 grad Module.out.Linear.parameters_grad.0.weight"


def test_gradients_of_other_inputs_are_open():
    other = sample.dump(sample.model(), sample.given() * 3)
    other["data"]["Module.out.Linear.parameters_grad.0"] = {"weight": [sample.entry(torch.ones(8, 32) * 3)]}
    assert judge_files("L4", trained(1), sample.files(other)).outcome is INCONCLUSIVE


@pytest.mark.parametrize("level", ["L1", "L3", "L4"])
def test_dropping_entries_never_makes_a_pass(level):
    """Every single entry left out of either side of a pair that differs."""
    good, bad = sample.dump(sample.model(), sample.given()), sample.dump(sample.model(seed=99), sample.given())
    for key in good["data"]:
        for one, two in ((good, bad), (bad, good)):
            cut = {**two, "data": {name: held for name, held in two["data"].items() if name != key}}
            assert found(level, None, cut, one).outcome is not PASS
            assert found(level, None, two, {**one, "data": cut["data"] and {key: one["data"][key]}}).outcome is not PASS


def test_one_file_for_both_sides_is_no_pass():
    dump = read_dump(sample.files(chain(2)))[0]
    sides = [Evidence(side, "forward", (Recorded(dump, Witness(side, "real", "x", "same")),))
             for side in ("baseline", "candidate")]
    finding = judge_dumped_forward(*sides, limits=default_limits(LEVELS["L3"]), floors=Floors(), policy=Policy())
    assert finding.outcome is INCONCLUSIVE
    assert "record-same-file" in codes(finding)


def test_every_note_of_these_findings_can_be_said_in_both_languages():
    findings = [found(level, sample.model(seed=99)) for level in ("L1", "L3", "L4")]
    findings += [found("L3", None, spoiled(LAST, **{"Max": None, "Min": None})), judge_files("L3", trained(2), trained(2))]
    for finding in findings:
        for item in finding.notes:
            for lang in ("en", "zh"):
                assert "{" not in tell(item, lang)
                assert not tell(item, lang).startswith(item.code)
