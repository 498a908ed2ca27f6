"""Layout maps against torch and numpy: what comes out is what the converters of the field make of the same tensors."""

import tracemalloc

import numpy as np
import pytest

from pytest_migparity.host.digest import digest
from pytest_migparity.host.digest_numpy import LEAF
from pytest_migparity.host.layout import apply_layout, read_layout
from pytest_migparity.host.tensors import Tensor, of_array
from pytest_migparity.wire.layout import LayoutError, from_rules


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def mapped(arrays, *rules, dtype=""):
    """{name: array} through the rules, read back."""
    tensors = apply_layout([of_array(name, array, dtype) for name, array in arrays.items()], from_rules(list(rules)))
    return {item.name: read(item) for item in tensors}


def read(tensor):
    leaves = list(tensor.leaves())
    assert [leaf.size for leaf in leaves[:-1]] == [LEAF] * (len(leaves) - 1)
    flat = np.concatenate(leaves) if leaves else np.zeros(0)
    return flat.reshape(tensor.shape)


def same(left, right):
    return left.shape == right.shape and left.tobytes() == np.ascontiguousarray(right).tobytes()


def test_names_change_and_elements_do_not():
    q, norm = drawn(4, 3), drawn(3, seed=1)
    out = mapped({"model.layers.10.q.weight": q, "model.norm": norm},
                 {"from": "model.layers.{i}.q.weight", "to": "blocks.{i}.attn.wq"},
                 {"from": "model.{rest*}", "to": "{rest}", "otherwise": True})
    assert sorted(out) == ["blocks.10.attn.wq", "norm"]
    assert same(out["blocks.10.attn.wq"], q)
    assert same(out["norm"], norm)


def test_a_transposed_linear_layer_as_jax_keeps_it():
    kernel = drawn(3, 1500, 800)
    out = mapped({"k": kernel}, {"from": "k", "to": "w", "ops": [{"op": "transpose", "axes": [0, 2, 1]}]})
    assert same(out["w"], kernel.transpose(0, 2, 1))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_merged_and_split_again_is_what_torch_concatenates(axis):
    torch = pytest.importorskip("torch")
    shapes = [[4, 5, 6] for _ in range(3)]
    for shape, length in zip(shapes, (2, 7, 3), strict=True):
        shape[axis] = length
    parts = [drawn(*shape, seed=seed) for seed, shape in enumerate(shapes)]
    whole = torch.cat([torch.from_numpy(part) for part in parts], dim=axis).numpy()
    merge = {"from": ["q", "k", "v"], "to": "qkv", "ops": [{"op": "merge", "axis": axis}]}
    split = {"from": "qkv", "to": ["q", "k", "v"], "ops": [{"op": "split", "axis": axis, "sizes": [2, 7, 3]}]}
    assert same(mapped(dict(zip("qkv", parts, strict=True)), merge)["qkv"], whole)
    back = mapped({"qkv": whole}, split)
    assert all(same(back[name], part) for name, part in zip("qkv", parts, strict=True))


def test_a_split_without_sizes_makes_equal_parts():
    fused = drawn(6, 4)
    out = mapped({"gate_up": fused}, {"from": "gate_up", "to": ["gate", "up"], "ops": [{"op": "split"}]})
    assert same(out["gate"], fused[:3])
    assert same(out["up"], fused[3:])


@pytest.mark.parametrize(("heads", "groups"), [(8, 2), (4, 4), (6, 1)])
def test_megatrons_fused_qkv_by_group(heads, groups):
    """Rows as Megatron's converters write them: view(groups, heads / groups + 2, head_dim, hidden)."""
    torch = pytest.importorskip("torch")
    width, hidden = 6, 10
    q, k, v = (torch.from_numpy(drawn(amount * width, hidden, seed=amount)) for amount in (heads, groups, groups))
    fused = torch.cat([q.view(groups, heads // groups, width, hidden), k.view(groups, 1, width, hidden),
                       v.view(groups, 1, width, hidden)], dim=1).reshape(-1, hidden).numpy()
    arrays = {"l.0.q": q.numpy(), "l.0.k": k.numpy(), "l.0.v": v.numpy()}
    operation = {"heads": heads, "groups": groups}
    names = [f"l.{{i}}.{name}" for name in "qkv"]
    out = mapped(arrays, {"from": names, "to": "d.{i}.qkv", "ops": [{"op": "merge_qkv", **operation}]})
    assert same(out["d.0.qkv"], fused)
    back = mapped({"d.0.qkv": fused}, {"from": "d.{i}.qkv", "to": names, "ops": [{"op": "split_qkv", **operation}]})
    assert all(same(back[name], array) for name, array in arrays.items())


def test_a_qkv_bias_has_the_same_rows():
    bias = np.arange(16, dtype=np.float32)  # 2 groups of (2 queries, key, value) of 2 rows each
    out = mapped({"b": bias}, {"from": "b", "to": ["q", "k", "v"], "ops": [{"op": "split_qkv", "heads": 4, "groups": 2}]})
    assert out["q"].tolist() == [0, 1, 2, 3, 8, 9, 10, 11]
    assert out["k"].tolist() == [4, 5, 12, 13]
    assert out["v"].tolist() == [6, 7, 14, 15]


def test_rotary_rows_as_the_llama_converter_permutes_them():
    """Hugging Face's formula: view(heads, dim // heads // 2, 2, in).transpose(1, 2).reshape(dim, in)."""
    torch = pytest.importorskip("torch")
    heads, dim, inner = 4, 32, 12
    paired = drawn(dim, inner)
    halves = torch.from_numpy(paired).view(heads, dim // heads // 2, 2, inner).transpose(1, 2).reshape(dim, inner)
    to_halves = {"from": "q", "to": "q", "ops": [{"op": "rope", "heads": heads, "to": "halves"}]}
    to_pairs = {"from": "q", "to": "q", "ops": [{"op": "rope", "heads": heads, "to": "pairs"}]}
    assert same(mapped({"q": paired}, to_halves)["q"], halves.numpy())
    assert same(mapped({"q": halves.numpy()}, to_pairs)["q"], paired)
    assert mapped({"q": np.arange(8, dtype=np.int32)}, {**to_halves, "ops": [
        {"op": "rope", "heads": 1, "to": "halves"}]})["q"].tolist() == [0, 2, 4, 6, 1, 3, 5, 7]


def test_experts_stacked_in_the_order_of_their_numbers():
    """Twelve of them, so that 10 must come after 9 and not after 1."""
    experts = {f"l.3.experts.{e}.w": drawn(2, 3, seed=e) for e in range(12)}
    stack = {"from": "l.{i}.experts.{e}.w", "to": "l.{i}.experts", "ops": [{"op": "stack", "over": "e"}]}
    out = mapped(experts, stack)
    assert same(out["l.3.experts"], np.stack([experts[f"l.3.experts.{e}.w"] for e in range(12)]))
    unstack = {"from": "l.{i}.experts", "to": "l.{i}.experts.{e}.w", "ops": [{"op": "unstack", "over": "e"}]}
    assert {name: array.tobytes() for name, array in mapped(out, unstack).items()} == {
        name: array.tobytes() for name, array in experts.items()}


def test_eager_experts_become_the_fused_layout():
    """Per expert gate and up, (inter, hidden) each, become one (experts, hidden, 2 inter), as fused kernels want it."""
    torch = pytest.importorskip("torch")
    eager = {f"e.{e}.{name}.weight": drawn(4, 3, seed=10 * e + at) for e in range(2)
             for at, name in enumerate(("gate", "up"))}
    rule = {"from": ["e.{e}.gate.weight", "e.{e}.up.weight"], "to": "gate_up",
            "ops": [{"op": "merge"}, {"op": "stack", "over": "e"}, {"op": "transpose", "axes": [0, 2, 1]}]}
    want = torch.stack([torch.cat([torch.from_numpy(eager[f"e.{e}.gate.weight"]),
                                   torch.from_numpy(eager[f"e.{e}.up.weight"])]).T for e in range(2)])
    assert same(mapped(eager, rule)["gate_up"], want.numpy())


def test_bfloat16_travels_as_bits_even_where_it_is_not_a_number():
    torch = pytest.importorskip("torch")
    bits = np.array([[0x7FC1, 0xFF80, 0x0001], [0x8000, 0x3F80, 0x7F80]], np.uint16)  # NaN with a payload, -Inf, tiny, -0
    out = mapped({"w": bits}, {"from": "w", "to": "w", "ops": [{"op": "transpose", "axes": [1, 0]}]}, dtype="bfloat16")
    want = torch.from_numpy(bits.view(np.int16)).view(torch.bfloat16).T.contiguous().view(torch.int16).numpy()
    assert out["w"].tobytes() == want.tobytes()


def test_the_digest_of_mapped_tensors_is_that_of_the_other_side():
    """The point of it all: the mapped digest equals the digest of what the other side holds, and not the raw one."""
    ours = {"q": drawn(64, 32), "k": drawn(32, 32, seed=1), "v": drawn(32, 32, seed=2)}
    theirs = np.concatenate([ours["q"].reshape(2, 32, 32), ours["k"].reshape(2, 16, 32), ours["v"].reshape(2, 16, 32)],
                            axis=1).reshape(128, 32)
    rule = {"from": ["q", "k", "v"], "to": "qkv", "ops": [{"op": "merge_qkv", "heads": 4, "groups": 2}]}
    here = digest(apply_layout([of_array(name, array) for name, array in ours.items()], from_rules([rule])))
    assert here == digest([of_array("qkv", theirs)])
    plain = {"from": ["q", "k", "v"], "to": "qkv", "ops": [{"op": "merge"}]}
    assert here != digest(apply_layout([of_array(name, array) for name, array in ours.items()], from_rules([plain])))


def test_a_tie_gives_the_same_content_a_second_name():
    embed = drawn(5, 2)
    out = mapped({"embed": embed}, {"from": "embed", "to": "model.embed"},
                 {"from": "embed", "to": "lm_head", "tie": True})
    assert sorted(out) == ["lm_head", "model.embed"]
    assert same(out["lm_head"], embed)


def test_a_tied_tensor_is_left_out_only_if_it_really_is_the_same():
    embed = drawn(5, 2)
    rules = ({"from": "embed", "to": "embed"}, {"from": "lm_head", "same_as": "embed"})
    assert sorted(mapped({"embed": embed, "lm_head": embed.copy()}, *rules)) == ["embed"]
    changed = embed.copy()
    changed[4, 1] = np.nextafter(changed[4, 1], np.float32(9))
    with pytest.raises(LayoutError, match="lm_head is not the same as embed"):
        mapped({"embed": embed, "lm_head": changed}, *rules)


def test_what_is_dropped_is_dropped_by_name():
    out = mapped({"w": drawn(2), "rotary.inv_freq": drawn(4)}, {"from": "w", "to": "w"},
                 {"from": "{any*}inv_freq", "drop": "computed from the configuration"})
    assert sorted(out) == ["w"]


@pytest.mark.parametrize(("rules", "said"), [
    ([{"from": "a", "to": "x"}], "no rule takes b"),
    ([{"from": "{n*}", "to": "{n}"}, {"from": "a", "to": "x"}], "a is taken by rule 1 and by rule 2"),
    ([{"from": "{n*}", "to": "{n}"}, {"from": "c", "to": "x", "tie": True}], "rule 2: nothing is called c"),
    ([{"from": "a", "to": "b"}, {"from": "b", "to": "b"}], "rule 2 makes b, which another tensor is called already"),
    ([{"from": ["a", "b"], "to": "c", "ops": [{"op": "merge", "axis": 1}]}], "rule 1, at a: merge: lengths beside axis 1"),
    ([{"from": ["a", "b"], "to": "c", "ops": [{"op": "merge", "axis": 2}]}], "no axis 2"),
    ([{"from": ["a", "b"], "to": "c"}], "makes 2 tensors, and \"to\" names 1"),
    ([{"from": "a", "to": ["x", "y"], "ops": [{"op": "split"}]}, {"from": "b", "to": "b"}], "does not divide"),
    ([{"from": "a", "to": "a", "ops": [{"op": "reshape", "shape": [4, -1]}]}, {"from": "b", "to": "b"}], "does not fit"),
    ([{"from": "a", "to": "a", "ops": [{"op": "transpose", "axes": [0, 0]}]}, {"from": "b", "to": "b"}], "do not fit"),
    ([{"from": "a", "to": "a", "ops": [{"op": "rope", "heads": 1, "to": "halves"}]}, {"from": "b", "to": "b"}], "pairs"),
    ([{"from": ["a", "b"], "to": "c", "ops": [{"op": "merge_qkv", "heads": 1}]}], "queries, keys and values"),
    ([{"from": "a", "to": ["q", "k", "v"], "ops": [{"op": "split_qkv", "heads": 2}]}, {"from": "b", "to": "b"}],
     "2 heads in 2 groups do not fit shape"),
    ([{"from": "a", "same_as": "gone"}, {"from": "b", "to": "b"}], "gone that it should equal is not"),
    ([{"from": "{n}", "to": "s", "ops": [{"op": "stack", "over": "n"}]}], "number 0"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_a_map_that_does_not_fit_says_where(rules, said):
    with pytest.raises(LayoutError) as caught:
        mapped({"a": drawn(3, 2), "b": drawn(2, 2)}, *rules)
    assert said in str(caught.value)


@pytest.mark.parametrize(("rule", "said"), [
    ({"from": ["a", "b"], "to": "c", "ops": [{"op": "merge"}]}, "merge: dtypes differ: float32, int32"),
    ({"from": ["a", "b", "c"], "to": "d", "ops": [{"op": "merge_qkv", "heads": 1}]}, "merge_qkv: dtypes differ"),
])
def test_tensors_of_two_dtypes_are_not_put_together(rule, said):
    """Their bits would be, and the result would hold numbers that neither had."""
    arrays = {"a": drawn(2, 2), "b": np.zeros((2, 2), np.int32), "c": drawn(2, 2)}
    with pytest.raises(LayoutError, match=said):
        mapped({name: arrays[name] for name in rule["from"]}, rule)


def test_experts_of_two_dtypes_are_not_stacked():
    rule = {"from": "e.{e}", "to": "e", "ops": [{"op": "stack", "over": "e"}]}
    with pytest.raises(LayoutError, match="stack: dtypes or shapes differ"):
        mapped({"e.0": drawn(2), "e.1": np.zeros(2, np.int32)}, rule)


def test_keys_and_values_need_a_row_for_each_group():
    rule = {"from": ["q", "k", "v"], "to": "qkv", "ops": [{"op": "merge_qkv", "heads": 4, "groups": 2}]}
    with pytest.raises(LayoutError, match=r"4 heads in 2 groups do not fit \[16, 16, 8\] rows"):
        mapped({"q": drawn(16, 3), "k": drawn(16, 3), "v": drawn(8, 3)}, rule)


def test_the_same_bits_in_another_shape_are_not_the_same_tensor():
    with pytest.raises(LayoutError, match="not the same"):
        mapped({"a": drawn(2, 3), "b": drawn(3, 2)}, {"from": "a", "to": "a"}, {"from": "b", "same_as": "a"})


def test_two_tensors_of_one_name_are_refused():
    twice = [of_array("a", drawn(2)), of_array("a", drawn(3))]
    with pytest.raises(LayoutError, match="two tensors called a"):
        apply_layout(twice, from_rules([{"from": "a", "to": "b"}]))


def test_a_part_is_read_no_further_than_it_goes():
    def leaves():
        yield np.arange(LEAF, dtype=np.uint8)
        raise AssertionError("read on")

    fused = Tensor("w", "uint8", (2, LEAF), leaves)
    rule = {"from": "w", "to": ["a", "b"], "ops": [{"op": "split"}]}
    first, _ = apply_layout([fused], from_rules([rule]))
    assert read(first).tobytes() == np.arange(LEAF, dtype=np.uint8).tobytes()


def test_a_group_that_lacks_a_member_is_named():
    rule = {"from": ["l.{i}.q", "l.{i}.k"], "to": "l.{i}.qk", "ops": [{"op": "merge"}]}
    with pytest.raises(LayoutError, match=r"l\.1\.q is there, and l\.\{i\}\.k that belongs to it is not"):
        mapped({"l.0.q": drawn(2), "l.0.k": drawn(2), "l.1.q": drawn(2)}, rule)


def test_an_expert_that_is_missing_is_named():
    rule = {"from": "e.{e}", "to": "e", "ops": [{"op": "stack", "over": "e"}]}
    with pytest.raises(LayoutError, match="number 1"):
        mapped({"e.0": drawn(2), "e.2": drawn(2)}, rule)


def test_shapes_are_told_without_reading_a_single_element():
    def unread():
        raise AssertionError("read")

    tensors = [Tensor(f"e.{e}.{name}", "bfloat16", (768, 2048), unread) for e in range(128) for name in ("gate", "up")]
    rule = {"from": ["e.{e}.gate", "e.{e}.up"], "to": "w", "ops": [
        {"op": "merge"}, {"op": "stack", "over": "e"}, {"op": "transpose", "axes": [0, 2, 1]}]}
    (made,) = apply_layout(tensors, from_rules([rule]))
    assert (made.dtype, made.shape) == ("bfloat16", (128, 2048, 1536))


def test_stacking_streams_leaf_by_leaf():
    """40 experts of 4 MiB: what is held at once stays at a few leaves, far below the 160 MiB of the result."""
    tensors = [Tensor(f"e.{e}", "float32", (LEAF - 1,), lambda e=e: iter([np.full(LEAF - 1, e, np.float32)]))
               for e in range(40)]
    (made,) = apply_layout(tensors, from_rules([{"from": "e.{e}", "to": "w", "ops": [{"op": "stack", "over": "e"}]}]))
    tracemalloc.start()
    sizes, last = 0, 0.0
    for leaf in made.leaves():
        sizes, last = sizes + leaf.size, float(leaf[-1])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (sizes, last) == (40 * (LEAF - 1), 39.0)
    assert peak < 32 << 20


def test_experts_and_parts_that_cross_the_leaves():
    """Rows of 700 000 elements against leaves of 1 048 576: every row begins in the middle of a leaf."""
    whole = np.arange(5 * 700_000, dtype=np.uint32).reshape(5, 700_000)
    unstack = {"from": "w", "to": "e.{e}", "ops": [{"op": "unstack", "over": "e"}]}
    assert all(same(array, whole[int(name[2:])]) for name, array in mapped({"w": whole}, unstack).items())
    split = {"from": "w", "to": ["a", "b"], "ops": [{"op": "split", "sizes": [2, 3]}]}
    parts = mapped({"w": whole}, split)
    assert same(parts["a"], whole[:2])
    assert same(parts["b"], whole[2:])
    wide = {"from": ["a", "b"], "to": "w", "ops": [{"op": "transpose", "axes": [1, 0]}, {"op": "merge", "axis": 1}]}
    assert same(mapped(parts, wide)["w"], whole.T)


def test_empty_tensors_and_scalars_pass_through():
    out = mapped({"a": np.zeros((0, 4), np.float32), "b": np.zeros((2, 4), np.float32), "s": np.float32(3).reshape(())},
                 {"from": ["a", "b"], "to": "ab", "ops": [{"op": "merge"}]}, {"from": "s", "to": "t"})
    assert out["ab"].shape == (2, 4)
    assert out["t"].tolist() == 3


def test_a_file_that_is_no_map_is_named(tmp_path):
    path = tmp_path / "layout.json"
    path.write_text('{"schema": "migparity.layout/9", "rules": []}')
    with pytest.raises(LayoutError, match=r"layout\.json: expected an object"):
        read_layout(str(path))
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(LayoutError, match=r"layout\.json"):
        read_layout(str(path))
    path.write_text('{"schema": "migparity.layout/1", "rules": [{"from": "a", "to": "b"}]}')
    assert read_layout(str(path)).rules[0].targets == ("b",)
