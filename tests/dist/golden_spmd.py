"""Paddle's answers about SPMD (tests/golden/spmd.jsonl.xz) as calls of minipd.

An operator of the file is a function of minipd (`CALLS`), which may be one row or be composed of several.  It is called
with distributed tensors that have shapes only; what every row asked of the operands is watched.
"""

import json
import lzma
from pathlib import Path

import numpy as np

import minipd
import minipd.nn.functional as F
from minipd.dist.interpreter import Dist
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.sharding import local_window
from minipd.dist.spmd.inference import infer_backward
from minipd.dist.value import DistValue
from minipd.framework.context import MetaOnly, using
from minipd.framework.meta import Meta
from minipd.framework.row import ROWS
from minipd.framework.tensor import Tensor

R = Replicate()
GOLDEN = Path(__file__).parents[1] / "golden" / "spmd.jsonl.xz"


def golden_rows():
    return [json.loads(line) for line in lzma.open(GOLDEN, "rt")]


# -------------------------------------------------------------------------------------- Paddle's call as minipd's
def axes(a, ndim):
    """Paddle's axis attribute: None and [] mean all."""
    axis = a.get("axis")
    return list(range(ndim)) if axis in (None, []) else axis


def reduction(name):
    return lambda a, x: getattr(minipd, name)(x, axes(a, x.ndim), keepdim=a.get("keepdim", False))


def squared_l2_norm(a, x):
    return minipd.sum(minipd.square(x), axes(a, x.ndim), keepdim=a.get("keepdim", False))


def flash(a, q, k, v, *absent):
    return ROWS["flash_attn"](q, k, v, causal=a["causal"])


def rotary(a, q, k, v, sin, cos, ids):
    return ROWS["fused_rotary_position_embedding"](q, cos, sin)


def key():
    """What random numbers are drawn with."""
    return Tensor(Meta((2,), np.dtype("int64")))


def slice_(a, x):
    """`decrease_axis` is another operator here; Paddle places what it has before."""
    if "index" in a:
        return x[a["index"]]
    sizes = [x.shape[axis] for axis in a["axes"]]
    starts, ends = (tuple(min(v + n if v < 0 else v, n) for v, n in zip(a[key], sizes, strict=True))
                    for key in ("starts", "ends"))
    return ROWS["slice"](x, axes=tuple(a["axes"]), starts=starts, ends=ends)


def chunks(a, x):
    return minipd.split(x, a.get("sections") or a["num"], a["axis"])


def flat_axis(function, axis="axis"):
    """An operator that may work on the flattened tensor."""
    def call(a, x):
        extra = {"keepdim": a["keepdims"]} if "keepdims" in a else {}
        return function(x, None if a.get("flatten") else a[axis], **extra)
    return call


def layer_norm(a, x, *weights):
    return ROWS["layer_norm"](x, *(w.reshape(x.shape[a["begin_norm_axis"]:]) for w in weights))


def cross_entropy(a, logits, label):
    return F.softmax_with_cross_entropy(logits, label, soft_label=a["soft_label"], axis=a["axis"],
                                        return_softmax=True)[::-1]


def like(function):
    """Called with its operands, no attributes."""
    return lambda a, *xs: function(*xs)


CALLS = {
    **{name: like(getattr(minipd, name)) for name in """add multiply subtract divide maximum greater_than exp rsqrt tanh
       square assign bmm gather_nd expand_as where numel nonzero scatter_nd_add""".split()},
    **{name: like(getattr(F, name)) for name in "relu silu gelu swiglu".split()},
    **{name: reduction(name) for name in "sum max min amax mean prod all any logsumexp".split()},
    "reduce_sum": reduction("sum"), "mean_all": reduction("mean"), "squared_l2_norm": squared_l2_norm,
    "reduce_base": lambda a, x: [minipd.sum, minipd.max, minipd.min, minipd.prod, None, minipd.any][a["reduce_type"]](
        x, a["axis"]),
    "p_norm": lambda a, x: minipd.norm(x, axis=a["axis"]),
    "isnan (no rule?)": like(minipd.isnan), "roi/unique/unique": like(minipd.unique),
    "adamw_ (skip)": like(lambda x: x * 2),
    "cast": lambda a, x: minipd.cast(x, a["dtype"]),
    "scale": lambda a, x: minipd.scale(x, a.get("scale", 2.0), a.get("bias", 0.0)),
    "full_like": lambda a, x: minipd.full_like(x, 0.0), "pow": lambda a, x: minipd.pow(x, 2.0),
    "clip": lambda a, x: minipd.clip(x, 0.0, 1.0), "dropout": lambda a, x: F.dropout(x, 0.1),
    "fused_dropout_add": lambda a, x, y: ROWS["fused_dropout_add"](x, y, key(), p=0.1),
    "add_n": lambda a, *xs: minipd.add_n(list(xs)),
    "matmul": lambda a, x, y: minipd.matmul(x, y, a.get("trans_x", False),
                                            a.get("trans_y", a.get("transpose_y", False))),
    "fused_gemm_epilogue": lambda a, x, y, b: ROWS["fused_gemm_epilogue"](x, y, b),
    "einsum": lambda a, *xs: minipd.einsum(a["equation"], *xs),
    "softmax": lambda a, x: F.softmax(x, a["axis"]), "log_softmax": lambda a, x: F.log_softmax(x, a["axis"]),
    "cross_entropy_with_softmax": cross_entropy,
    "layer_norm": layer_norm, "group_norm": lambda a, x: F.group_norm(x, 2),
    "rms_norm": lambda a, x, w: ROWS["rms_norm"](x, w), "fused_rms_norm": lambda a, x, w: ROWS["rms_norm"](x, w),
    "batch_norm": lambda a, x, mean, var, w, b: F.batch_norm(x, mean, var, w, b, training=True),
    "c_embedding": lambda a, w, x: F.embedding(x, w),
    "c_softmax_with_cross_entropy": lambda a, *xs: cross_entropy({"soft_label": False, "axis": -1}, *xs),
    "conv2d": lambda a, x, w: F.conv2d(x, w),
    "embedding": lambda a, x, w: F.embedding(x, w, padding_idx=a["padding_idx"] if a.get("padding_idx", -1) > -1 else
                                             None),
    "flash_attention": flash, "fused_rotary_position_embedding": rotary,
    "transpose": lambda a, x: minipd.transpose(x, a["perm"]), "reshape": lambda a, x: minipd.reshape(x, a["shape"]),
    "flatten": lambda a, x: minipd.flatten(x, a.get("start_axis", 0), a.get("stop_axis", -1)),
    "squeeze": lambda a, x: minipd.squeeze(x, a["axis"]), "unsqueeze": lambda a, x: minipd.unsqueeze(x, a["axis"]),
    "stack": lambda a, *xs: minipd.stack(xs, a["axis"]), "concat": lambda a, *xs: minipd.concat(xs, a["axis"]),
    "split": chunks, "split_with_num": chunks, "unbind": lambda a, x: minipd.unbind(x, a["axis"]),
    "slice": slice_,
    "strided_slice": lambda a, x: minipd.strided_slice(x, a["axes"], a["starts"], a["ends"], a["strides"]),
    "expand": lambda a, x: minipd.expand(x, a["shape"]), "tile": lambda a, x: minipd.tile(x, a["repeat_times"]),
    "gather": lambda a, x, i: minipd.gather(x, i, a["axis"]),
    "index_select": lambda a, x, i: minipd.index_select(x, i, a["axis"]),
    "scatter": lambda a, x, i, u: minipd.scatter(x, i, u, a["overwrite"]),
    "take_along_axis": lambda a, x, i: ROWS["take_along_axis"](x, i, axis=a["axis"]),
    "put_along_axis": lambda a, x, i, v: minipd.put_along_axis(x, i, v, a["axis"]),
    "argmax": flat_axis(minipd.argmax), "argmin": flat_axis(minipd.argmin), "cumsum": flat_axis(minipd.cumsum),
    "argsort": lambda a, x: minipd.argsort(x, a["axis"]), "topk": lambda a, x: minipd.topk(x, a["k"], a["axis"]),
    "one_hot": lambda a, x: F.one_hot(x, a["num_classes"]),
    "triu": like(minipd.triu), "tril_triu": like(minipd.tril),
    "roll": lambda a, x: minipd.roll(x, a["shifts"], a["axis"]),
    "pad": lambda a, x: F.pad(x, a["paddings"], pad_from_left_axis=True),
}
#: operands that are no floats
INTEGERS = {"embedding": 0, "c_embedding": 1, "gather": 1, "gather_nd": 1, "index_select": 1, "scatter": 1,
            "take_along_axis": 1, "put_along_axis": 1, "c_softmax_with_cross_entropy": 1, "scatter_nd_add": 1,
            "one_hot": 0, "cross_entropy_with_softmax": 1}
BOOLEANS = {"all": 0, "any": 0, "where": 0}


def flat(operands):
    return [y for x in operands for y in (x if isinstance(x, list) else [x])]


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
    return R if p == "R" else Shard(int(p[1:])) if p[0] == "S" else Partial(p[1:].lower() or "sum")


def placed(x, source, naxes):
    return from_mapping(x, naxes) if source == "factory" else tuple(map(from_text, x["placements"]))


def is_absent(x):
    """Whether an optional operand was not given."""
    return x is None or "placements" in x and not x["placements"] or x.get("shape") == []


def answers(row, naxes):
    """(operands, results) as Paddle places them; None for what is absent."""
    ins, outs = ((row["inferred_inputs"], row["inferred_outputs"]) if row["source"] == "factory" else
                 (row["ops"][-1]["operands"], row["ops"][-1]["results"]))
    return tuple(None if side is None else [None if is_absent(x) else from_mapping(x, naxes) for x in flat(side)]
                 for side in (ins, outs))


# ------------------------------------------------------------------------------------------------ the call here
#: rows whose result is the operand in another form: who asks for placements of the one asks for those of the other
FORMS = {"reshape", "squeeze", "unsqueeze", "transpose", "cast", "expand"}


class Watch(Dist):
    """The dist interpreter, which remembers what the rows that read `operands` asked of them, in whatever form."""

    def __init__(self, operands):
        super().__init__(0)
        self.asked, self.calls = {}, []
        self.known = [(x, lambda needed, i=i: self.asked.__setitem__(i, needed)) for i, x in enumerate(operands)
                      if x is not None]

    def asker(self, value):
        return next((ask for x, ask in self.known if value is x or value is x.resolved), None)

    def run(self, lower, row, payloads, attrs, mesh):
        self.cache.clear()                          # so that every call is planned
        out = super().run(lower, row, payloads, attrs, mesh)
        ask = self.asker(payloads[0]) if row.name in FORMS else None
        if ask and type(out) is DistValue:
            x = payloads[0]
            self.known.append((out, lambda needed: ask(infer_backward(row, [x], [needed], attrs, mesh).inputs[0])))
        return out

    def plan_call(self, row, xs, attrs, mesh):
        self.calls.append((row, xs, attrs))
        found = super().plan_call(row, xs, attrs, mesh)
        if isinstance(found, tuple) and found[0] is not None and row.name != "match":   # (which reads only where it is)
            for x, needed in zip(xs, found[0], strict=True):
                ask = self.asker(x)
                if ask:
                    ask(needed)
        return found


def dtype_of(x, row, index):
    if "dtype" in x:
        return np.dtype(x["dtype"])
    soft = isinstance(row["attrs"], dict) and row["attrs"].get("soft_label")
    return np.dtype("int64" if INTEGERS.get(row["op"]) == index and not soft else
                    "bool" if BOOLEANS.get(row["op"]) == index else "float32")


def operand(x, row, index, mesh):
    if is_absent(x) or row["op"] == "fused_rotary_position_embedding" and index in (1, 2):     # ours turns one tensor
        return None
    dtype = dtype_of(x, row, index)
    placements = placed(x, row["source"], mesh.ndim)
    return DistValue(Meta(local_window(x["shape"], mesh, placements, 0)[0], dtype), tuple(x["shape"]), dtype, mesh,
                     placements)


def is_backward(row):
    """Whether results' placements were given, and operands' asked for.  (Two rules that are of no operator were given
    results as well.)"""
    return row.get("direction") == "backward"


def call(row):
    """(what the operands end up with, what the results have), one tuple of placements each; None for what is absent.

    Raises: ValueError if the flag is set and Paddle refuses it.
    """
    mesh = ProcessMesh(np.arange(np.prod(row["mesh_shape"])).reshape(row["mesh_shape"]))
    values = [operand(x, row, i, mesh) for i, x in enumerate(flat(row["inputs"]))]
    watch = Watch(values)
    attrs = row["attrs"] if isinstance(row["attrs"], dict) else {}
    try:
        with using(ground=MetaOnly(), middle=watch, grad=False):
            out = CALLS[row["op"]](attrs, *[None if v is None else Tensor(v) for v in values])
    except TypeError as error:
        if "depends on values" not in str(error):
            raise
        return [(R,) * mesh.ndim], [(R,) * mesh.ndim]       # it reads all the values, everywhere
    if is_backward(row):
        (name, metas, found), = watch.calls
        got = infer_backward(name, metas, [from_mapping(x, mesh.ndim) for x in flat(row["outputs_given"])], found, mesh)
        return list(got.inputs), list(got.outputs)
    given = [None if v is None else v.placements for v in values]
    outs = out if isinstance(out, (tuple, list)) else [out]
    return ([watch.asked.get(i, p) for i, p in enumerate(given)],
            [None if o is None else getattr(o.payload, "placements", (R,) * mesh.ndim) for o in outs])


def shown(placements, as_text):
    """Placements as the source shows them: the factory does not say which kind of Partial; PIR shows only the inner one
    of two mesh axes that split one dimension."""
    if not as_text:
        return tuple(Partial() if p.is_partial() else p for p in placements)
    return tuple(R if p.is_shard() and p in placements[i + 1:] else p for i, p in enumerate(placements))


def same(ours, theirs, source):
    return all(a is None or b is None or shown(a, source == "pir_program") == shown(b, source == "pir_program")
               for a, b in zip(ours, theirs, strict=False))      # PIR adds operands, dropout a mask
