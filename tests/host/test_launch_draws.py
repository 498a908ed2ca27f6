"""Keyed draws: of the distribution, shape, dtype and device that torch's own have, the same bits whenever repeated."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

stats = pytest.importorskip("scipy.stats")
torch = pytest.importorskip("torch")

from torch.optim.optimizer import register_optimizer_step_post_hook  # noqa: E402

from pytest_migparity.host.launch_draws import Draws  # noqa: E402
from pytest_migparity.host.launch_samplers import OF_TENSOR, OF_TORCH, NotKeyedError  # noqa: E402
from pytest_migparity.host.launch_sites import here  # noqa: E402

COUNT = 4000
ALPHA, BETA = torch.full((COUNT,), 1.5), torch.tensor([1.5, 1.0]).expand(COUNT, 2)


def random(seed=0):
    return np.random.Generator(np.random.Philox(seed))


CONTINUOUS = [
    ("rand", (COUNT,), {}, stats.uniform()),
    ("randn", (COUNT, 1), {}, stats.norm()),
    ("rand_like", (ALPHA,), {}, stats.uniform()),
    ("randn_like", (ALPHA,), {}, stats.norm()),
    ("normal", (2.0, 3.0, (COUNT,)), {}, stats.norm(2, 3)),
    ("normal", (ALPHA, 0.5), {}, stats.norm(1.5, 0.5)),
    ("normal", (), {"mean": 0.0, "std": ALPHA}, stats.norm(0, 1.5)),
    ("_standard_gamma", (ALPHA,), {}, stats.gamma(1.5)),
    ("normal_", (torch.empty(COUNT), 1.0), {"std": 2.0}, stats.norm(1, 2)),
    ("uniform_", (torch.empty(COUNT), -1.0, 3.0), {}, stats.uniform(-1, 4)),
    ("exponential_", (torch.empty(COUNT), 2.0), {}, stats.expon(scale=0.5)),
]


@pytest.mark.parametrize(("name", "words", "options", "law"), CONTINUOUS)
def test_draws_follow_the_law_that_torch_documents(name, words, options, law):
    made = {**OF_TORCH, **OF_TENSOR}[name](random(), *words, **options)
    assert stats.kstest(made.double().numpy().ravel(), law.cdf).pvalue > 1e-3


def test_discrete_draws_follow_their_law():
    shares = torch.tensor([0.1, 0.2, 0.7])
    drawn = {
        "bernoulli": OF_TORCH["bernoulli"](random(), torch.full((COUNT,), 0.3)),
        "bernoulli_": OF_TENSOR["bernoulli_"](random(1), torch.empty(COUNT), 0.3)}
    for made in drawn.values():
        assert abs(float(made.sum()) - 0.3 * COUNT) < 4 * math.sqrt(COUNT * 0.21)
    for replacement, rows in ((True, COUNT), (False, 1)):
        made = OF_TORCH["multinomial"](random(2), shares if rows > 1 else shares.expand(COUNT, 3), rows, replacement)
        counts = np.bincount(made.numpy().ravel(), minlength=3)
        assert stats.chisquare(counts, np.array([0.1, 0.2, 0.7]) * COUNT).pvalue > 1e-3
    whole = OF_TORCH["randint"](random(3), 2, 6, (COUNT,))
    assert stats.chisquare(np.bincount(whole.numpy())[2:]).pvalue > 1e-3
    assert sorted(OF_TORCH["randperm"](random(4), 9).tolist()) == list(range(9))
    assert sorted(OF_TORCH["multinomial"](random(5), shares, 3).tolist()) == [0, 1, 2]


def test_a_flow_time_from_beta_follows_beta():
    made = OF_TORCH["_sample_dirichlet"](random(), BETA)
    assert float((made.sum(-1) - 1).abs().max()) < 1e-6
    assert stats.kstest(made[:, 0].double().numpy(), stats.beta(1.5, 1).cdf).pvalue > 1e-3


FORMS = [
    ("rand", (2, 3), {}), ("rand", ((2, 3),), {"dtype": torch.bfloat16}), ("randn", (), {"size": (2,)}),
    ("randn", (2,), {"requires_grad": True}), ("rand", ((),), {}), ("randint", (5, (2, 3)), {}),
    ("randint", (1, 5, (2,)), {"dtype": torch.int32}), ("randint", (), {"high": 5, "size": (2,)}),
    ("randint", (1,), {"high": 5, "size": (2,)}), ("randperm", (4,), {}),
    ("randn_like", (torch.ones(3, 4).T,), {"dtype": torch.float16}),
    ("randint_like", (torch.ones(3, dtype=torch.int64), 7), {}),
    ("randint_like", (torch.ones(3), 2, 7), {}), ("normal", (0.0, 1.0), {"size": (2, 2), "dtype": torch.float64}),
    ("normal", (torch.zeros(3, 1), torch.ones(4)), {}), ("bernoulli", (torch.full((2, 2), 0.5),), {}),
    ("multinomial", (torch.ones(2, 5), 3), {}), ("multinomial", (torch.ones(5), 9), {"replacement": True}),
    ("multinomial", (torch.ones(2, 5), 4, True), {}), ("_standard_gamma", (torch.ones(2, dtype=torch.float64),), {}),
]


@pytest.mark.parametrize(("name", "words", "options"), FORMS)
def test_what_is_drawn_looks_as_torchs_own(name, words, options):
    made, plain = OF_TORCH[name](random(), *words, **options), getattr(torch, name)(*words, **options)
    assert (made.shape, made.dtype, made.device, made.requires_grad, made.stride()) == \
        (plain.shape, plain.dtype, plain.device, plain.requires_grad, plain.stride())


def test_the_device_that_is_meant_is_found():
    with torch.device("meta"):
        assert OF_TORCH["rand"](random(), 2).device.type == "meta"


@pytest.mark.parametrize(("name", "options"), [("rand", {"out": torch.empty(2)}), ("randn", {"dtype": torch.complex64}),
                                               ("rand", {"layout": torch.sparse_coo})])
def test_forms_that_are_left_to_torch_are_refused(name, options):
    with pytest.raises(NotKeyedError):
        OF_TORCH[name](random(), 2, **options)


@pytest.fixture
def wrapped(monkeypatch):
    """`Draws` wrapped around torch, until the test ends."""
    for owner, names in ((torch, (*OF_TORCH, "poisson", "binomial")),
                         (torch.nn.functional, ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout",
                                                "feature_alpha_dropout", "scaled_dot_product_attention"))):
        for name in names:
            monkeypatch.setattr(owner, name, getattr(owner, name))
    for name in (*OF_TENSOR, "random_", "cauchy_", "log_normal_", "geometric_"):
        monkeypatch.setattr(torch.Tensor, name, getattr(torch.Tensor, name))
    handles = []
    plain = register_optimizer_step_post_hook
    monkeypatch.setattr("pytest_migparity.host.launch_draws.register_optimizer_step_post_hook",
                        lambda hook: handles.append(plain(hook)))

    def wrap(streams, seed=0):
        draws = Draws(seed, streams, changed=lambda: None)
        draws.wrap()
        return draws

    yield wrap
    for handle in handles:
        handle.remove()


class Noisy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))
        torch.nn.init.normal_(self.weight)

    def forward(self, x, checkpointed=False, generator=None):
        if checkpointed:
            return torch.utils.checkpoint.checkpoint(self.noised, x, use_reentrant=False)
        return self.noised(x, generator)

    def noised(self, x, generator=None):
        return (x + torch.randn(2, generator=generator)) * self.weight


def test_a_checkpoint_draws_in_its_second_pass_what_it_drew_in_its_first(wrapped):
    """Keyed, the second pass would take the next key; it is left to torch, which repeats it, and counted."""
    draws, model = wrapped({}), Noisy()
    out = model(torch.ones(2), checkpointed=True)
    out.sum().backward()
    assert draws.wrapped == {}
    assert [site.rpartition(":")[2] for site in draws.outside] == ["noised randn"]
    assert model.weight.grad.tolist() == pytest.approx((out / model.weight).tolist(), rel=1e-6)


def test_initial_weights_and_the_programs_own_cpu_generator_are_left_alone(wrapped):
    draws, model = wrapped({}), Noisy()
    given = [model(torch.zeros(2), generator=torch.Generator().manual_seed(5)) for _ in range(2)]
    assert torch.equal(*given)
    assert (draws.wrapped, draws.outside) == ({}, {})


def test_a_key_is_of_seed_step_stream_and_call(wrapped):
    draws, model = wrapped({"noise": ["*:noised"], "other": ["*:test_*"]}, seed=1), Noisy()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)

    def drawn():
        return tuple((model(torch.zeros(2))).tolist())

    first = [drawn(), drawn()]
    torch.rand(3)  # another stream: moves nothing of this one
    first.append(drawn())
    assert len(set(first)) == 3
    optimizer.step()
    assert drawn() not in first
    again = wrapped({"noise": ["*:noised"]}, seed=1)
    assert [drawn() for _ in range(3)] == first
    assert again.wrapped == {f"{__name__}:noised randn": 3}
    assert draws.wrapped[f"{__name__}:noised randn"] == 4


def test_the_global_generator_stands_where_it_stood(wrapped):
    wrapped({})
    torch.manual_seed(3)
    Noisy()(torch.zeros(2))
    here_it_is = torch.get_rng_state()
    torch.manual_seed(3)
    Noisy()
    assert torch.equal(here_it_is, torch.get_rng_state())


def test_a_mistake_is_still_torchs_to_explain(wrapped):
    wrapped({"noise": ["*"]})
    with pytest.raises((TypeError, RuntimeError)):
        torch.randn("two")
    with pytest.raises(RuntimeError):
        torch.normal(0.0, -1.0, (2,), out=torch.empty(0, dtype=torch.int64))


def test_a_site_is_the_function_that_drew_and_those_that_called_it():
    def inner():
        return here()

    site = inner()
    assert site.callers[:2] == (f"{__name__}:inner", f"{__name__}:{sys._getframe().f_code.co_name}")
    assert (site.forward, site.checkpointed, site.setting_up) == (False, False, False)
