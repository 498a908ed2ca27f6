"""Random draws of torch, made by numpy's Philox on the CPU instead: the same bits on any device, by any torch.

torch's own CPU generator gives a seed to other numbers on another instruction set (its normal numbers go through
vectorised logarithms), and hosts of two accelerators have two. Draws are made in float32, then cast and moved.
Importing this module imports torch.
"""

import math
from typing import Any, Callable, Dict, List, Tuple

import numpy as np
import torch

Random = np.random.Generator
Sampler = Callable[..., Any]
"""From (random, arguments as torch's function takes them) to its result."""

_OPTIONS = {"dtype", "device", "requires_grad", "generator", "layout", "pin_memory", "size", "memory_format"}


class NotKeyedError(ValueError):
    """A form of the function that is left to torch: `out=`, complex numbers, sparse layouts."""


def _normals(random: Random, shape: Tuple[int, ...]) -> Any:
    return torch.from_numpy(np.asarray(random.standard_normal(shape), dtype=np.float32))


def _uniforms(random: Random, shape: Tuple[int, ...]) -> Any:
    return torch.from_numpy(np.asarray(random.random(shape, dtype=np.float32)))


def _integers(random: Random, low: int, high: int, shape: Tuple[int, ...]) -> Any:
    return torch.from_numpy(np.asarray(random.integers(int(low), int(high), shape, dtype=np.int64)))


def _exponentials(random: Random, shape: Tuple[int, ...]) -> Any:
    return torch.from_numpy(np.asarray(random.standard_exponential(shape), dtype=np.float32))


def _shape(size: Tuple[Any, ...], options: Dict[str, Any]) -> Tuple[int, ...]:
    if "size" in options:
        size = (options["size"],)
    if not size:
        raise TypeError("no size")
    if len(size) == 1 and not isinstance(size[0], int):
        size = tuple(size[0])
    return tuple(int(length) for length in size)


def _placed(values: Any, options: Dict[str, Any]) -> Any:
    """The values as a factory function would leave them, on the device that is meant where none is named."""
    if set(options) - _OPTIONS or options.get("layout", torch.strided) is not torch.strided:
        raise NotKeyedError(", ".join(sorted(options)))
    dtype = options.get("dtype") or (torch.get_default_dtype() if values.is_floating_point() else values.dtype)
    if dtype.is_complex:
        raise NotKeyedError("complex numbers")
    device = options["device"] if options.get("device") is not None else torch.empty(0).device
    return values.to(device=device, dtype=dtype).requires_grad_(bool(options.get("requires_grad")))


def _rand(random: Random, *size: Any, **options: Any) -> Any:
    return _placed(_uniforms(random, _shape(size, options)), options)


def _randn(random: Random, *size: Any, **options: Any) -> Any:
    return _placed(_normals(random, _shape(size, options)), options)


def _randint(random: Random, *bounds: Any, **options: Any) -> Any:
    low, high = _bounds([item for item in bounds if isinstance(item, int)], options)
    size = options["size"] if "size" in options else bounds[-1]
    return _placed(_integers(random, low, high, tuple(size)), options)


def _bounds(numbers: List[int], options: Dict[str, Any]) -> Tuple[int, int]:
    """(low, high) of `randint(high)` and `randint(low, high)`, by place or by name."""
    high = options.pop("high") if "high" in options else numbers.pop()
    low = options.pop("low") if "low" in options else numbers.pop() if numbers else 0
    return low, high


def _randperm(random: Random, count: int, **options: Any) -> Any:
    return _placed(torch.from_numpy(random.permutation(int(count)).astype(np.int64)), options)


def _like(model: Any, values: Any, options: Dict[str, Any]) -> Any:
    if set(options) - _OPTIONS:
        raise NotKeyedError(", ".join(sorted(options)))
    made = torch.empty_like(model, **{key: value for key, value in options.items() if key != "generator"})
    if made.is_complex():
        raise NotKeyedError("complex numbers")
    with torch.no_grad():
        return made.copy_(values)


def _rand_like(random: Random, model: Any, **options: Any) -> Any:
    return _like(model, _uniforms(random, tuple(model.shape)), options)


def _randn_like(random: Random, model: Any, **options: Any) -> Any:
    return _like(model, _normals(random, tuple(model.shape)), options)


def _randint_like(random: Random, model: Any, *bounds: int, **options: Any) -> Any:
    low, high = _bounds(list(bounds), options)
    return _like(model, _integers(random, low, high, tuple(model.shape)), options)


def _host(value: Any) -> Any:
    return value.detach().cpu().float() if isinstance(value, torch.Tensor) else float(value)


def _normal(random: Random, mean: Any = 0.0, std: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """All four forms: two numbers and a size, or a tensor for either."""
    given = [value for value in (mean, std) if isinstance(value, torch.Tensor)]
    if not given:
        return _placed(_normals(random, tuple(size)) * float(std) + float(mean), options)
    if set(options) - {"generator"}:
        raise NotKeyedError(", ".join(sorted(options)))
    shape = np.broadcast_shapes(*(tuple(value.shape) for value in given))
    values = _normals(random, shape) * _host(std) + _host(mean)
    return values.to(device=given[0].device, dtype=given[0].dtype)


def _normal_(random: Random, tensor: Any, mean: float = 0.0, std: float = 1.0, **options: Any) -> Any:
    return tensor.copy_(_normals(random, tuple(tensor.shape)) * float(std) + float(mean))


def _uniform_(random: Random, tensor: Any, *bounds: float, **options: Any) -> Any:
    low = options.get("from", bounds[0] if bounds else 0.0)
    high = options.get("to", bounds[1] if len(bounds) > 1 else 1.0)
    return tensor.copy_(_uniforms(random, tuple(tensor.shape)) * (float(high) - float(low)) + float(low))


def _exponential_(random: Random, tensor: Any, lambd: float = 1.0, **options: Any) -> Any:
    return tensor.copy_(_exponentials(random, tuple(tensor.shape)) / float(lambd))


def _bernoulli_(random: Random, tensor: Any, p: Any = 0.5, **options: Any) -> Any:
    return tensor.copy_(_uniforms(random, tuple(tensor.shape)) < _host(p))


def _bernoulli(random: Random, chance: Any, *p: float, **options: Any) -> Any:
    if set(options) - {"generator"} or p:
        raise NotKeyedError("bernoulli with p or out")
    return (_uniforms(random, tuple(chance.shape)) < _host(chance)).to(device=chance.device, dtype=chance.dtype)


def _multinomial(random: Random, weights: Any, num_samples: int, replacement: bool = False, **options: Any) -> Any:
    """By exponential races: the category whose exponential draw over its weight comes first is drawn."""
    if set(options) - {"generator"}:
        raise NotKeyedError(", ".join(sorted(options)))
    chance = _host(weights)
    if replacement:
        race = chance.unsqueeze(-2) / _exponentials(random, (*chance.shape[:-1], int(num_samples), chance.shape[-1]))
        return race.argmax(-1).to(weights.device)
    race = chance / _exponentials(random, tuple(chance.shape))
    return race.topk(int(num_samples)).indices.to(weights.device)


def _standard_gamma(random: Random, alpha: Any, **options: Any) -> Any:
    if alpha.requires_grad:
        raise NotKeyedError("a gradient through the draw")
    return _gammas(random, alpha).float().to(device=alpha.device, dtype=alpha.dtype)


def _sample_dirichlet(random: Random, concentration: Any, **options: Any) -> Any:
    """What `torch.distributions.Dirichlet` and `Beta` draw by."""
    gammas = _gammas(random, concentration)
    shares = gammas / gammas.sum(-1, keepdim=True)
    return shares.float().to(device=concentration.device, dtype=concentration.dtype)


def _gammas(random: Random, alpha: Any) -> Any:
    values = alpha.detach().cpu().double().numpy()
    drawn = random.standard_gamma(values)
    return torch.from_numpy(np.asarray(np.maximum(drawn, math.ulp(0.0))))


OF_TORCH: Dict[str, Sampler] = {
    "rand": _rand, "randn": _randn, "randint": _randint, "randperm": _randperm, "rand_like": _rand_like,
    "randn_like": _randn_like, "randint_like": _randint_like, "normal": _normal, "bernoulli": _bernoulli,
    "multinomial": _multinomial, "_standard_gamma": _standard_gamma, "_sample_dirichlet": _sample_dirichlet}
"""Functions of the module torch."""
OF_TENSOR: Dict[str, Sampler] = {
    "normal_": _normal_, "uniform_": _uniform_, "exponential_": _exponential_, "bernoulli_": _bernoulli_}
"""Methods of a tensor."""
