"""SPMD inference against Paddle 3.3.1's own answers (tests/golden/spmd.jsonl.xz).

Every row either agrees exactly (placements of operands and results; the order of two mesh axes on one dimension aside,
which is outer first here) or is among `DIFFERENCES`, each of which has its reason and its number of rows.
"""

import collections
import json
import lzma
from pathlib import Path

import numpy as np

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.spmd import DECOMPOSE, infer
from minipd.framework.meta import Meta
from minipd.framework.row import ROWS

R = Replicate()
GOLDEN = Path(__file__).parents[1] / "golden" / "spmd.jsonl.xz"


def golden_rows():
    return [json.loads(line) for line in lzma.open(GOLDEN, "rt")]


# -------------------------------------------------------------------------------------- Paddle's call as a row's
def axes(value, ndim):
    """Paddle's axis attribute: None and [] mean all, numbers may be negative."""
    if value is None or value == []:
        return tuple(range(ndim))
    return tuple(sorted(a % ndim for a in ([value] if isinstance(value, int) else value)))


def reduction(shape, attrs):
    return {"axis": axes(attrs.get("axis"), len(shape)), "keepdim": attrs.get("keepdim", False)}


def along(shape, attrs):
    return {"axis": attrs["axis"] % len(shape)}


def reshape(shape, attrs):
    target = [shape[i] if d == 0 else d for i, d in enumerate(attrs["shape"])]
    rest = int(np.prod([d for d in target if d != -1]))
    return {"shape": tuple(int(np.prod(shape)) // rest if d == -1 else d for d in target)}


def flatten(shape, attrs):
    a, b = attrs.get("start_axis", 0) % len(shape), attrs.get("stop_axis", -1) % len(shape)
    return {"shape": (*shape[:a], int(np.prod(shape[a:b + 1])), *shape[b + 1:])}


def squeeze(shape, attrs):
    return {"axis": tuple(a for a in axes(attrs["axis"], len(shape)) if shape[a] == 1)}


def unsqueeze(shape, attrs):
    placed = []
    for n, a in enumerate([attrs["axis"]] if isinstance(attrs["axis"], int) else attrs["axis"]):
        at = a % (len(shape) + n + 1)
        placed = [p + (p >= at) for p in placed] + [at]
    return {"axis": tuple(sorted(placed))}


def split(shape, attrs):
    axis = attrs["axis"] % len(shape)
    return {"axis": axis, "sections": tuple(attrs.get("sections") or [shape[axis] // attrs["num"]] * attrs["num"])}


def part(shape, attrs):
    names = [a % len(shape) for a in attrs["axes"]]
    bounds = {key: tuple(min(v + shape[a] if v < 0 else v, shape[a]) for v, a in zip(attrs[key], names, strict=True))
              for key in ("starts", "ends")}
    return {"axes": tuple(names), **bounds} | ({"strides": tuple(attrs["strides"])} if "strides" in attrs else {})


def matmul(shape, attrs):
    return {f"transpose_{side}": attrs.get(f"trans_{side}", attrs.get(f"transpose_{side}", False)) for side in "xy"}


#: the golden file's operators whose name or attributes are not the row's
TRANSLATIONS = {
    "sum": ("sum", reduction), "reduce_sum": ("sum", reduction), "mean": ("mean", reduction),
    "mean_all": ("mean", reduction), "max": ("max", reduction), "amax": ("max", reduction), "min": ("min", reduction),
    "argmax": ("argmax", lambda shape, attrs: along(shape, attrs) | {"keepdim": attrs.get("keepdims", False)}),
    "softmax": ("softmax", along), "concat": ("concat", along),
    "take_along_axis": ("take_along_axis", along), "cross_entropy_with_softmax": ("cross_entropy_with_softmax", along),
    "matmul": ("matmul", matmul), "reshape": ("reshape", reshape), "flatten": ("reshape", flatten),
    "squeeze": ("squeeze", squeeze), "unsqueeze": ("unsqueeze", unsqueeze), "split": ("split", split),
    "split_with_num": ("split", split), "slice": ("slice", part), "strided_slice": ("strided_slice", part),
    "transpose": ("transpose", lambda shape, attrs: {"perm": tuple(p % len(shape) for p in attrs["perm"])}),
    "expand": ("expand", lambda shape, attrs: {"shape": tuple(attrs["shape"])}),
    "cast": ("cast", lambda shape, attrs: {"dtype": np.dtype(attrs["dtype"])}),
    "scale": ("scale", lambda shape, attrs: {"scale": attrs.get("scale", 2.0), "bias": attrs.get("bias", 0.0)}),
    "full_like": ("full_like", lambda shape, attrs: {"value": 0.0}),
    "dropout": ("dropout", lambda shape, attrs: {"p": 0.1}),
    "tril_triu": ("tril", lambda shape, attrs: {}), "triu": ("triu", lambda shape, attrs: {}),
}
MORE_OPERANDS = {"pow": [2.0], "dropout": [Meta((2,), np.dtype("int64"))]}      # what Paddle has as attribute or state
INTEGER_OPERANDS = {"embedding": 0, "take_along_axis": 1, "cross_entropy_with_softmax": 1}


def flat(operands):
    return [y for x in operands for y in (x if isinstance(x, list) else [x])]


def call_of(row):
    """(row name, metas, attributes)"""
    shapes = [tuple(x["shape"]) for x in flat(row["inputs"])]
    given = row["attrs"] if isinstance(row["attrs"], dict) else {}
    name, attributes = TRANSLATIONS.get(row["op"], (row["op"], lambda shape, attrs: {}))
    metas = [Meta(s, np.dtype("float32")) for s in shapes]
    if name in INTEGER_OPERANDS:
        metas[INTEGER_OPERANDS[name]].dtype = np.dtype("int64")
    if name == "where":
        metas[0].dtype = np.dtype("bool")
    return name, metas + MORE_OPERANDS.get(name, []), attributes(shapes[0], given)


# ----------------------------------------------------------------------------------------- Paddle's placements
def from_mapping(d, naxes):
    """Placements out of dims_mapping or multi_dims_mapping, and partial axes."""
    out = [R] * naxes
    for dim, where in enumerate(d.get("multi_dims_mapping") or [[a] if a >= 0 else [] for a in d["dims_mapping"]]):
        for axis in where:
            out[axis] = Shard(dim)
    partial = d.get("partial_dims") or d.get("partial") or {}
    for axis in partial:
        out[int(axis)] = Partial(partial[axis][len("kRed"):].lower()) if isinstance(partial, dict) else Partial()
    return tuple(out)


def from_text(p):
    return R if p == "R" else Shard(int(p[1:])) if p[0] == "S" else Partial()


def placed_inputs(row, naxes):
    if row["source"] == "factory":
        return [from_mapping(x, naxes) for x in flat(row["inputs"])]
    return [tuple(map(from_text, x["placements"])) for x in flat(row["inputs"])]


def answers(row, naxes):
    """(operands, results) as Paddle places them."""
    if row["source"] == "factory":
        ins, outs = row["inferred_inputs"], row["inferred_outputs"]
    else:
        ins, outs = row["ops"][-1]["operands"], row["ops"][-1]["results"]
    return [from_mapping(x, naxes) for x in flat(ins)], [from_mapping(x, naxes) for x in flat(outs)]


def without_kind(placements):
    """The factory's Partial does not say which."""
    return [tuple(Partial() if p.is_partial() else p for p in ps) for ps in placements]


def compare(row):
    """"agree", "differ", "decompose" or "refused" (by Paddle), with the row's name here."""
    mesh = ProcessMesh(np.arange(np.prod(row["mesh_shape"])).reshape(row["mesh_shape"]))
    name, metas, attrs = call_of(row)
    given = placed_inputs(row, mesh.ndim)
    given += [(R,) * mesh.ndim if hasattr(m, "shape") else None for m in metas[len(given):]]
    got = infer(ROWS[name], metas, given, attrs, mesh)
    if "error" in row:
        return "refused", name, given
    if got is DECOMPOSE:
        return "decompose", name, given
    ins, outs = answers(row, mesh.ndim)
    ours_in, ours_out = list(got.inputs), list(got.outputs)
    if row["source"] == "factory":
        ours_in, ours_out = without_kind(ours_in), without_kind(ours_out)
    n, k = min(len(ins), len(ours_in)), min(len(outs), len(ours_out))      # PIR adds operands, dropout a mask
    return "agree" if ours_in[:n] == ins[:n] and ours_out[:k] == outs[:k] else "differ", name, given


def has_partial(given):
    return any(p.is_partial() for ps in given if ps for p in ps)


#: (what, names, needs a Partial operand or not (None: either), source, number of rows): reason
DIFFERENCES = {
    ("decompose", "mean", None, None, 28):
        "a mean over shards is a sum over shards divided by the count, right for uneven chunks; Paddle: Partial(avg)",
    ("decompose", "softmax cross_entropy_with_softmax", None, None, 25):
        "over split classes the parts communicate what is small; Paddle's PIR gathers the logits",
    ("differ", "add subtract scale sum mean assign add_n", True, None, 17):
        "a Partial passes where that is free (P + P, factors, sums); Paddle resolves it there, or loses track",
    ("differ", "multiply", True, "factory", 3):
        "a product of tensors resolves; Paddle's factory keeps P x R (its PIR resolves, as we do)",
    ("differ", "concat", None, None, 19):
        "a shard of the joined dimension is gathered; Paddle moves it to another dimension, by a search of its own",
    ("differ", "slice", False, None, 3): "a slice that takes all of a dimension cuts nothing; Paddle gathers it",
    ("differ", "take_along_axis", False, None, 7):
        "a table split over the dimension looked up answers in parts, as an embedding does; Paddle gathers it",
    ("differ", "where", None, None, 8):
        "Paddle ignores the third operand, and shards dimensions of size 1 that broadcast; where they conflict, the "
        "condition moves (1 byte an element), not the values",
    ("differ", "tril triu", False, None, 13): "a triangle knows its block's offset; Paddle gathers both dimensions",
    ("differ", "expand", False, "pir_program", 4): "dimensions that do not grow stay split; Paddle's PIR has no rule",
    ("differ", "embedding", False, "pir_program", 4):
        "vocabulary parallelism, as in the factory; PIR's embedding gathers the table",
    ("differ", "matmul reshape", None, "pir_program", 3):
        "Paddle co-shards too, but PIR's text shows only one of two mesh axes on a dimension",
    ("refused", "add add_n subtract multiply divide maximum greater_than where swiglu take_along_axis "
                "cross_entropy_with_softmax", None, None, 51):
        "one dimension split by different mesh axes in two operands: split over both; Paddle has not implemented it",
    ("refused", "embedding", False, None, 21):
        "ids and table split over one mesh axis: the larger stays, the other is gathered; Paddle refuses",
}


def test_every_answer_agrees_or_differs_for_a_reason():
    counts, unexplained = collections.Counter(), []
    for row in golden_rows():
        verdict, name, given = compare(row)
        counts[verdict] += 1
        if verdict == "agree":
            continue
        reasons = [key for key in DIFFERENCES if verdict == key[0] and name in key[1].split()
                   and key[2] in (None, has_partial(given)) and key[3] in (None, row["source"])]
        if len(reasons) == 1:
            counts[reasons[0]] += 1
        else:
            unexplained.append((row["id"], verdict, name, row["source"], reasons))
    assert not unexplained
    assert {key: counts[key] for key in DIFFERENCES} == {key: key[-1] for key in DIFFERENCES}
    assert counts["agree"] == 1389 and sum(counts[v] for v in ("agree", "differ", "decompose", "refused")) == 1595
