"""A manifest's mistakes are named: file, key, what was found, what to do. Another model is another manifest."""

import re

import pytest

from pytest_migparity.core.errors import UserError
from pytest_migparity.core.limits import Declared
from pytest_migparity.core.manifest import load_manifest
from pytest_migparity.suite import fixtures_path
from pytest_migparity.wire.receipt import recipe_hash

MINIMAL = """
[model]
name = "mine"
[baseline]
site = "file:a"
[candidate]
site = "file:b"
"""


@pytest.fixture
def load(tmp_path):
    def run(text):
        path = tmp_path / "model.toml"
        path.write_text(text, encoding="utf-8")
        return load_manifest(path)

    return run


def test_a_minimal_manifest_has_one_case_and_is_judged_strictly(load):
    manifest = load(MINIMAL)
    assert manifest.cases("series") == manifest.cases("task") == ["main"]
    assert manifest.policy().mode == "strict"


MISTAKES = {
    "typo in a key": (MINIMAL + "[recipe]\nstep = 5\n", r"unknown key recipe\.step; did you mean 'steps'"),
    "typo in a table": (MINIMAL + "[recipee]\n", r"unknown key recipee; did you mean 'recipe'"),
    "typo in a side": (MINIMAL.replace("site = \"file:b\"", "sites = \"file:b\""), r"candidate\.sites; did you mean 'site'"),
    "typo in a series": (MINIMAL + "[series.main]\nfiles = 'x'\n", r"series\.main\.files; did you mean 'file'"),
    "missing side": (MINIMAL.split("[candidate]")[0], r"missing key candidate"),
    "wrong type": (MINIMAL + "[recipe]\nsteps = 'ten'\n", r"recipe\.steps = 'ten'"),
    "zero steps": (MINIMAL + "[recipe]\nsteps = 0\n", r"recipe\.steps = 0"),
    "unknown level": (MINIMAL + "[ladder]\nenough = ['L9']\n", r"enough names 'L9'; known: L0, L1"),
    "unknown limit level": (MINIMAL + "[limits.L55]\nmean = 1e-4\n", r"\[limits\.L55\]: no such level"),
    "unknown check": (MINIMAL + "[limits.L5]\nmeen = 1e-4\n", r"\[limits\.L5\] meen: no such check; did you mean 'mean'"),
    "looser without a reason": (MINIMAL + "[limits.L5]\nmean = 2e-2\n", r"mean = 0\.02 is looser.*because"),
    "looser with an empty reason": (MINIMAL + "[limits.L5]\nmean = {value = 2e-2, because = ' '}\n", r"looser.*because"),
    "looser minimum": (MINIMAL + "[limits.L5]\norder = 0.8\n", r"order = 0\.8 is looser"),
    "beyond the cap": (MINIMAL + "[limits.L5]\nmean = {value = 0.5, because = 'x'}\n", r"beyond 0\.03"),
    "a floor without its measurement": (MINIMAL + "[floors.L5]\nmean = 1e-4\n", r"say where it was measured"),
    "a floor beyond the cap": (MINIMAL + "[floors.L5]\nmean = {value = 1e9, because = 'x'}\n", r"beyond 0\.03"),
    "a correlation above 1": (MINIMAL + "[limits.L5]\norder = 1.5\n", r"expected 0 to 1"),
    "a site without a scheme": (MINIMAL.replace("file:a", "a"), r"site 'a' is no URL.*file:a"),
    "not a number in the recipe": (MINIMAL + "[recipe.values]\nlr = nan\n", r"recipe\.values\.lr"),
    "not a limit": (MINIMAL + "[limits.L5]\nmean = nan\n", r"finite"),
    "a family nobody measured": (MINIMAL.replace('"mine"', '"mine"\nfamily = "mamba"'), r"model\.family = 'mamba'"),
    "negative floor": (MINIMAL + "[floors.L5]\nmean = -1.0\n", r"0 or more"),
    "unknown artifact": (MINIMAL + "artifacts.lost = {site = 'file:c'}\n", r"artifacts\.lost.*did you mean 'loss'"),
    "blank in a name": (MINIMAL.replace('"mine"', '"my model"'), r"model\.name = 'my model'"),
    "short commit": (MINIMAL.replace("[baseline]", "upstream = {repo = 'r', commit = 'xyz'}\n[baseline]"), r"upstream\.commit"),
    "not TOML": ("[model\n", r"not TOML"),
}


@pytest.mark.parametrize("text, message", MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_named_with_file_and_key(load, tmp_path, text, message):
    with pytest.raises(UserError, match=message) as error:
        load(text)
    assert str(error.value).startswith(str(tmp_path / "model.toml"))


def test_several_mistakes_are_told_at_once(load):
    with pytest.raises(UserError) as error:
        load(MINIMAL + "[recipe]\nstep = 5\nseeds = 3\n")
    assert {"step", "seeds"} <= set(re.findall(r"recipe\.(\w+)", str(error.value)))


def test_a_file_in_another_encoding_or_absent_is_told(tmp_path):
    path = tmp_path / "model.toml"
    with pytest.raises(UserError, match="cannot be read"):
        load_manifest(path)
    path.write_bytes("[model]\nname = '模型'\n".encode("gbk"))
    with pytest.raises(UserError, match="UTF-8"):
        load_manifest(path)


def test_limits_and_floors_carry_their_reason(load):
    manifest = load(MINIMAL + "[limits.L5]\nmean = {value = 2e-3, because = 'MoE'}\nstep0 = 1e-5\n"
                    "[floors.L5]\nmean = {value = 4e-4, because = '5 reruns', runs = 5}\n")
    assert manifest.declared_limits("L5") == {"mean": Declared(2e-3, "manifest", "MoE"),
                                              "step0": Declared(1e-5, "manifest", None)}
    assert manifest.declared_floors("L5").by_check["mean"].runs == 5
    assert manifest.declared_floors("L5").by_check["mean"].pairs == 10  # of five runs


def test_a_family_and_a_first_step_reach_the_judge(load):
    manifest = load(MINIMAL.replace('"mine"', '"mine"\nfamily = "moe"') + "[series.main]\nfirst_step = 101\n")
    assert (manifest.policy().family, manifest.policy().first) == ("moe", 101)
    assert (load(MINIMAL).policy().family, load(MINIMAL).policy().first) == (None, None)


def test_noise_drawn_on_the_device_means_weak_mode(load):
    assert load(MINIMAL + "[recipe]\nnoise = 'device'\n").policy().mode == "weak"


def test_the_recipe_hash_is_what_a_host_computes_from_the_same_table(load):
    """sha256 of the canonical JSON, written out by hand here."""
    import hashlib

    manifest = load(MINIMAL + "[recipe]\nsteps = 5\nseed = 1\n")
    assert recipe_hash(manifest.recipe.canonical()) == hashlib.sha256(b'{"seed":1,"steps":5}').hexdigest()


def test_the_lingbot_manifest_carries_the_real_instance():
    manifest = load_manifest(fixtures_path() / "lingbot" / "model.toml")
    recipe = manifest.recipe
    assert manifest.model.upstream.commit == "ecca77b"
    assert recipe.dataset.bytes == 3_800_000_000
    assert recipe.dataset.whole
    assert recipe.checkpoint.bytes == 23_800_000_000
    assert recipe.simulator.commit == "13c3c47ff4312dd62484bcd51be034af55c062d1"
    assert manifest.env.must_match["transformers"] == "==4.57.3"
    assert manifest.candidate.overrides["mx_driving"].startswith("off")
    assert recipe.noise == "injected"
    assert any("2.2 billion" in item for item in manifest.model.notes)
