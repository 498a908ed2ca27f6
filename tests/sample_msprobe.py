"""A small torch model, and dumps of it in the form of msprobe; tests/readers/data/msprobe holds real ones of the same."""

from __future__ import annotations

import io
import json
import zlib
from typing import Any

import torch


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.l1, self.l2 = torch.nn.Linear(32, 64), torch.nn.Linear(64, 32)

    def forward(self, x: Any) -> Any:
        return x + self.l2(torch.relu(self.l1(x)))


Block.__name__ = "B"


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.b = torch.nn.ModuleList(Block() for _ in range(4))
        self.out = torch.nn.Linear(32, 8)

    def forward(self, x: Any) -> Any:
        for block in self.b:
            x = block(x)
        return self.out(x)


def model(seed: int = 0) -> Model:
    torch.manual_seed(0)
    made = Model()
    if seed:
        torch.manual_seed(seed)
        made = Model()
        with torch.no_grad():
            for parameter in made.parameters():
                parameter.copy_(torch.randn_like(parameter) * 0.2)
    return made


def given() -> Any:
    return torch.randn(8, 32, generator=torch.Generator().manual_seed(1))


def entry(tensor: Any, *, checksum: bool = False) -> dict[str, Any]:
    """One tensor as a dump has it."""
    held = tensor.detach().float()
    found = {"type": "torch.Tensor", "dtype": str(tensor.dtype), "shape": list(tensor.shape), "Max": float(held.max()),
             "Min": float(held.min()), "Mean": float(held.mean()), "Norm": float(held.norm()), "requires_grad": False}
    if checksum:
        found["md5"] = f"{zlib.crc32(tensor.detach().contiguous().view(torch.uint8).numpy().tobytes()):08x}"
    return found


def dump(made: Model, x: Any, *, checksum: bool = False) -> dict[str, Any]:
    """The forward pass at module level."""
    data: dict[str, Any] = {}

    def hook(name: str) -> Any:
        def note(module: Any, positional: Any, output: Any) -> None:
            data[f"Module.{name}.{type(module).__name__}.forward.0"] = {
                "input_args": [entry(tensor, checksum=checksum) for tensor in positional], "input_kwargs": {},
                "output": [entry(output, checksum=checksum)],
                "parameters": {key: entry(parameter, checksum=checksum)
                               for key, parameter in module.named_parameters(recurse=False)}}

        return note

    handles = [module.register_forward_hook(hook(name)) for name, module in made.named_modules()
               if name and not isinstance(module, torch.nn.ModuleList)]
    made(x)
    for handle in handles:
        handle.remove()
    return {"task": "statistics", "level": "L0", "framework": "pytorch", "dump_data_dir": None, "data": data}


def files(document: dict[str, Any], place: str = "step0/rank0") -> dict[str, Any]:
    """A dump as the reader is given it."""
    raw = json.dumps(document).encode()
    return {f"{place}/dump.json": lambda: io.BytesIO(raw)}


def pack(made: Model, x: Any) -> dict[str, str]:
    """The members of a configuration pack, in the form in which `config_check` writes them."""
    def numbers(tensor: Any) -> dict[str, float]:
        return {key.lower(): value for key, value in entry(tensor).items() if key in ("Max", "Min", "Mean", "Norm")}

    calls = {"torch.randn": [{"count": 1, "stack": ["a"]}, {"count": 2, "stack": ["b"]}],
             "torch.manual_seed": [{"count": 1, "stack": ["c"]}]}
    return {
        "env": json.dumps({"HCCL_DETERMINISTIC": "true", "HOME": "/root"}), "pip": "torch=2.13.0+cpu\nnumpy=2.4.6\n",
        "hyperparameters/hyperparameters_static.json": json.dumps({"lr": 0.001, "hidden-size": "64", "flags": [True]}),
        "dataset/step0/rank0/dataset.json": json.dumps({"args": {"0": numbers(x)}, "kwargs": {}}),
        "weights/step0/rank0/weight.json": json.dumps({name: numbers(parameter)
                                                       for name, parameter in made.named_parameters()}),
        "random/rank0.json": json.dumps(calls),
    }
