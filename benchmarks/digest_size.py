"""How many characters a comment must carry to compare an 8B model of 1000 tensors, and to name what became of it.

    python benchmarks/digest_size.py --json [--measured 100]

The names and shapes are those of a decoder of 36 layers (hidden 4096, 32 heads and 8 of keys, 12288 in the MLP) with a
vision tower of 24 blocks, 8.2 billion elements in 1000 tensors. Digesting 16 GB shows nothing more of a text's length
than digesting drawn tensors of fewer elements: each tensor is `--measured` thousand elements of a normal distribution,
really digested, and carries its own name and shape; the sketch lanes and norms of a larger one have as many bits.

`level0`, `level1`: characters of the whole text. `cast`: what must travel to prove that every tensor is the other
side's in bfloat16: level 0 of the rounded copy. `damaged`: what each side must send after level 0 to name the fault of
one tensor and the element that differs, as `migparity refine` asks for it: level 1 of that tensor, its leaves, the
blocks of a leaf, the pieces of a block, the elements of a piece. `damaged_largest`: the same of the embedding, whose
594 leaves travel without statistics (their hashes are drawn: 2.4 GB would show nothing else).
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np

from pytest_migparity.host.digest import digest, digest_tensor
from pytest_migparity.host.digest_numpy import LEAF
from pytest_migparity.host.tensors import of_array
from pytest_migparity.host.zoom import cast_of, parts_of
from pytest_migparity.wire.digest import Digest, TensorDigest
from pytest_migparity.wire.digest_text import to_text

HIDDEN, MLP, KEYS, VOCABULARY, VISION = 4096, 12288, 1024, 151936, 1152
DAMAGED = "model.layers.17.mlp.up_proj.weight"


def shapes() -> dict[str, tuple[int, ...]]:
    """1000 tensors by name."""
    found: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (VOCABULARY, HIDDEN),
                                         "model.norm.weight": (HIDDEN,), "lm_head.weight": (VOCABULARY, HIDDEN)}
    layer = {"input_layernorm.weight": (HIDDEN,), "post_attention_layernorm.weight": (HIDDEN,),
             "self_attn.q_proj.weight": (HIDDEN, HIDDEN), "self_attn.k_proj.weight": (KEYS, HIDDEN),
             "self_attn.v_proj.weight": (KEYS, HIDDEN), "self_attn.o_proj.weight": (HIDDEN, HIDDEN),
             "self_attn.q_norm.weight": (128,), "self_attn.k_norm.weight": (128,),
             "mlp.gate_proj.weight": (MLP, HIDDEN), "mlp.up_proj.weight": (MLP, HIDDEN),
             "mlp.down_proj.weight": (HIDDEN, MLP)}
    found |= {f"model.layers.{k}.{name}": shape for k in range(36) for name, shape in layer.items()}
    block = {}
    for name, shape in {"attn.q": (VISION, VISION), "attn.k": (VISION, VISION), "attn.v": (VISION, VISION),
                        "attn.proj": (VISION, VISION), "mlp.fc1": (4304, VISION), "mlp.fc2": (VISION, 4304),
                        "norm1": (VISION,), "norm2": (VISION,)}.items():
        block |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    found |= {f"visual.blocks.{k}.{name}": shape for k in range(24) for name, shape in block.items()}
    rest = 1000 - len(found)
    return found | {f"visual.merger.mlp.{k}.weight": (VISION, VISION) for k in range(rest)}


def digested(level: int, thousands: int, cast: str = "") -> Digest:
    """The model's digest, of drawn elements under the names and shapes of the model."""
    random, items = np.random.default_rng(0), []
    for name, shape in shapes().items():
        scale = 1.0 if "norm" in name else 0.02
        drawn = (random.standard_normal(1000 * thousands, np.float32) * np.float32(scale)).astype(np.float32)
        tensor = of_array(name, drawn)
        item = digest_tensor(cast_of(tensor, cast) if cast else tensor, level=level, algorithm="sha256")
        items.append(item._replace(shape=shape))
    return Digest(level, "sha256", tuple(sorted(items, key=lambda item: item.name)))


def damaged() -> dict[str, int]:
    """Characters of each answer, from the tensor to the elements that differ."""
    random = np.random.default_rng(1)
    whole = of_array(DAMAGED, (random.standard_normal((MLP, HIDDEN), np.float32) * np.float32(0.02)))
    answers = {"level1": [whole], "leaves": parts_of(whole)}
    answers["blocks"] = parts_of(answers["leaves"][20])
    answers["pieces"] = parts_of(answers["blocks"][200])
    answers["elements"] = parts_of(answers["pieces"][30])
    return {name: len(to_text(digest(parts, algorithm="sha256", level=int(name not in ("blocks", "pieces")))))
            for name, parts in answers.items()}


def leaves_of_the_largest() -> Digest:
    """Level 0 of the embedding's leaves, of drawn hashes."""
    random, name, size = np.random.default_rng(2), "model.embed_tokens.weight", VOCABULARY * HIDDEN
    spans = [(start, min(start + LEAF, size)) for start in range(0, size, LEAF)]
    items = [TensorDigest(f"{name}[{first}:{last}]", "float32", (last - first,), random.bytes(8).hex())
             for first, last in spans]
    return Digest(0, "sha256", tuple(sorted(items, key=lambda item: item.name)))


def sizes(thousands: int) -> dict[str, Any]:
    """Characters of each text."""
    answers, largest = damaged(), len(to_text(leaves_of_the_largest()))
    found = {"level0": len(to_text(digested(0, thousands))), "level1": len(to_text(digested(1, thousands))),
             "cast": len(to_text(digested(0, thousands, "bfloat16"))),
             **{f"damaged_{name}": size for name, size in answers.items()}}
    found["damaged"] = sum(answers.values())
    found["damaged_largest"] = found["damaged"] - answers["leaves"] + largest
    elements = sum(int(np.prod(shape)) for shape in shapes().values())
    return {**found, "tensors": len(shapes()), "elements": elements, "measured_thousands": thousands}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--measured", type=int, default=100, help="thousands of elements drawn for each tensor")
    asked = parser.parse_args()
    found = sizes(asked.measured)
    print(json.dumps(found, indent=2) if asked.json else "\n".join(f"{key:20} {value}" for key, value in found.items()))


if __name__ == "__main__":
    main()
