"""Reading Paddle's gradient operators: `X_grad` is a call of X's gradient rules.

Paddle's X_grad takes what it needs of the forward call (operands, results, attributes, by X's own names) and the
gradients of the results.  Where X is one row of ours and its rule needs no more than that, the rule is called.  Where
X is read as several rows (a norm, a convolution with channels last), the forward call is written once more and walked
through in reverse; an operand that X_grad does not take is found at the operation that made the result which it does.
"""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.context import using
from minipd.framework.meta import Meta
from minipd.framework.row import ROWS
from minipd.framework.tensor import Tensor
from minipd.ir.backward import Walk
from minipd.ir.carried import Place
from minipd.ir.operation import Operation
from minipd.ir.paddle.axes import one_axis
from minipd.ir.paddle.form import LOADS, Load
from minipd.ir.paddle.functions import function
from minipd.ir.paddle.load import Loader
from minipd.ir.paddle.random_forms import our_mode
from minipd.ir.paddle.save import problem
from minipd.ir.paddle.signatures import REQUIRED, Signature, signature
from minipd.ir.schema import result_values, tensor_operands
from minipd.ir.types import NULL_TYPE, NullType
from minipd.ir.value import Value

__all__ = ["gradient_of"]

#: the only attribute that a rule may read for it to be called as it is
AXIS = {"softmax", "log_softmax"}
#: linear in an operand that X_grad leaves out, which has the shape of the result
LIKE_RESULT = {"tril", "triu", "set_value", "set_value_", "set_value_with_tensor", "set_value_with_tensor_", "assign",
               "scatter", "scatter_nd_add"}


def gradient_of(name: str) -> Load | None:
    """How the operator `name` is read, if it is the gradient operator of one that is."""
    forward = name.removesuffix("_").removesuffix("_grad")
    if not name.removesuffix("_").endswith("_grad") or signature(forward) is None:
        return None
    if forward in DIRECT:
        return DIRECT[forward]
    row = ROWS.get(forward)
    if forward not in LOADS and (row is None or problem(row) is not None):
        return None
    return load_gradient


class Known:
    """What a gradient operator says of the forward call.

    operands, results: Paddle's value by X's name for it; grads: the gradient of each result.
    """

    def __init__(self, op: Operation):
        self.op = op
        self.name = op.name().partition(".")[2].removesuffix("_").removesuffix("_grad")
        of_gradient, forward = signature(f"{self.name}_grad"), signature(self.name)
        assert of_gradient is not None and forward is not None
        self.forward: Signature = forward
        self.operands: dict[str, Value] = {}
        self.results: dict[str, Value] = {}
        self.grads: dict[str, Value] = {}
        names = {o.name for o in forward.operands}
        for operand, value in zip(of_gradient.operands, op.operands_source(), strict=True):
            if value is None:
                continue
            if operand.name.endswith("_grad") and operand.name[:-5] in forward.results:
                self.grads[operand.name[:-5]] = value
            elif operand.name in names:
                self.operands[operand.name] = value
            elif operand.name in forward.results:
                self.results[operand.name] = value
        self.wanted = [(r.removesuffix("_grad"), i) for i, r in enumerate(of_gradient.results)
                       if not isinstance(op.result(i).type(), NullType)]
        self.find_rest()
        if self.name in LIKE_RESULT:
            for target, _ in self.wanted:
                self.operands.setdefault(target, next(iter(self.grads.values())))

    def find_rest(self) -> None:
        """What X_grad does not take, at the operation that made a result."""
        for value in self.results.values():
            made = value.get_defining_op()
            if made is not None and made.name().removesuffix("_") == f"pd_op.{self.name}":
                for operand, source in zip(self.forward.operands, made.operands_source(), strict=True):
                    if source is not None:
                        self.operands.setdefault(operand.name, source)


def load_gradient(at: Loader, op: Operation) -> Any:
    known = Known(op)
    by_rule = called(at, known)
    return walked(at, known) if by_rule is None else by_rule


# -------------------------------------------------------------------------------------------- the rule itself
def called(at: Loader, known: Known) -> list[Value | None] | None:
    """The gradients by the row's own rules; None if these need what is not there."""
    row = ROWS.get(known.name)
    if row is None or row.variadic or row.multi or problem(row) is not None or (
            known.name in LOADS and known.name not in AXIS):
        return None
    by_name = {ours: known.operands.get(o.name) for ours, o in zip(row.inputs, known.forward.tensors, strict=False)}
    pairs = zip(row.outputs, known.forward.results, strict=True)
    by_name |= {ours: known.results.get(theirs) for ours, theirs in pairs}
    found: list[Value | None] = [None] * known.op.num_results()
    for target, index in known.wanted:
        place = [o.name for o in known.forward.tensors].index(target)
        rules = [c for c in row.vjp_rules if c.target == place]
        if len(rules) != 1:
            return None
        args: list[Any] = []
        for kind, i, only_meta in rules[0].plan:
            if kind == "attr":
                if known.name not in AXIS:
                    return None
                rank = next(iter(known.grads.values())).ndim
                args.append(one_axis(known.op.attributes[i].value, rank))
                continue
            source = by_name[row.inputs[i] if kind == "in" else row.outputs[i]]
            if source is None:
                return None
            value = at.value(source)
            args.append(Meta(value.shape, value.dtype) if only_meta else Tensor(value))
        g = Tensor(at.value(known.grads[known.forward.results[0]]))
        with using(ground=at.tracer, middle=None, amp=None, grad=False):
            found[index] = rules[0].fn(g, *args).payload
    return found


# ------------------------------------------------------------------------------- the forward call, in reverse
def walked(at: Loader, known: Known) -> list[Value | None]:
    """The gradients by writing the forward call once more."""
    if any(target not in known.operands for target, _ in known.wanted):
        raise at.refuse()
    wrt = {target: at.tensors(known.operands[target]) for target, _ in known.wanted if target in known.operands}
    seen: set[Value] = set()
    members: dict[str, list[Value]] = {}
    for target, values in wrt.items():
        members[target] = []
        for value in values:                        # x * x: two gradients, so two values
            second = at.row("assign", value) if value in seen else value
            seen.add(value)
            members[target].append(second)
    last = at.build.block.back()
    results = forward_again(at, known, members)
    block = at.build.block
    new = block.ops if last is None else block.ops[block.ops.index(last) + 1:]
    if any(op.regions for op in new):           # a loop over steps
        raise at.refuse()
    reached = {v for values in members.values() for v in values}
    for op in new:
        if op.row is not None and any(v in reached for v in tensor_operands(op)):
            reached.update(r for r in result_values(op) if r.dtype in dtypes.INEXACT)
    walk = Walk(at.tracer, reached, False, Place())
    with using(ground=at.tracer, middle=None, amp=None, grad=False):
        for name, values in results.items():
            if name in known.grads:
                for value, g in zip(values, at.tensors(known.grads[name]), strict=True):
                    walk.give(value, Tensor(shaped(at, g, value)))
        for op in reversed(new):
            if op.row is not None and op.row.has_vjp:
                walk.operation(op)
    found: list[Value | None] = [None] * known.op.num_results()
    for target, index in known.wanted:
        parts = []
        for value in members[target]:
            with using(ground=at.tracer, middle=None, amp=None, grad=False):
                total = walk.total(value)
            parts.append(at.row("full_like", value, value=0.0) if total is None else total.payload)
        if known.operands[target] in at.vectors:
            at.vectors[known.op.result(index)] = parts
            at.values.update((v, v) for v in parts)
        else:
            found[index] = parts[0]
    return found


def shaped(at: Loader, g: Value, value: Value) -> Value:
    """A gradient in the shape of its value (a mean over everything may have one of one element)."""
    return g if g.ndim == value.ndim else at.row("reshape", g, shape=tuple(value.shape))


def forward_again(at: Loader, known: Known, members: dict[str, list[Value]]) -> dict[str, list[Value]]:
    """Write the forward call; returns our values of its results, by name.

    It is read like any other: from an operation in Paddle's form that stands in no program.
    """
    forward, op = known.forward, known.op
    gradient = next(iter(known.grads.values()))
    operands: list[Value | None] = []
    for operand in forward.operands:
        source = known.operands.get(operand.name)
        if source is None and operand.name in RENAMED.get(known.name, {}):
            source = known.results.get(RENAMED[known.name][operand.name])
        if source is None and not operand.optional and not operand.kind:
            if known.name not in LIKE_RESULT:
                raise at.refuse()
            source = gradient
        if source is None and operand.kind and operand.default is REQUIRED:
            raise at.refuse()
        operands.append(source)
    attributes = {k: op.attributes[k] if k in op.attributes else default for k, (_, default) in forward.attrs.items()}
    if any(a is REQUIRED for a in attributes.values()):
        raise at.refuse()
    # one stand-in for each operand that wants a gradient: x * x has two
    places = [o.name for o in forward.operands]
    for target, values in members.items():
        source = known.operands[target]
        operands[places.index(target)] = stand_in = Operation("pd_op.data", (), {}, [source.type()]).result(0)
        if source in at.vectors:
            at.vectors[stand_in] = values
            at.values.update((v, v) for v in values)
        else:
            at.values[stand_in] = values[0]
        if source in at.numbers:
            at.numbers[stand_in] = at.numbers[source]
    types = [known.grads[r].type() if r in known.grads else NULL_TYPE for r in forward.results]
    again = Operation(f"pd_op.{known.name}", operands, attributes, types)
    try:
        results = at.operation(again)
    finally:
        again.drop_operands()
    last = at.build.block.back()
    if last is not None and not last.info.registered:
        raise at.refuse()
    found = {name: at.vectors[r] if r in at.vectors else [v] if v is not None else []
             for name, r, v in zip(forward.results, again.results(), results, strict=True)}
    return {name: [at.values.get(v, v) for v in values] for name, values in found.items()}


#: forward operator -> operand -> the result that says what is needed of it
RENAMED = {"batch_norm": {"mean": "mean_out", "variance": "variance_out"}}


# ----------------------------------------------------------------------------------------- written out by hand
def _reshaped(at: Loader, op: Operation) -> Any:
    x, g = (at.value(v) for v in op.operands_source()[:2])
    return at.row("reshape", g, shape=tuple(x.shape))


def _cast(at: Loader, op: Operation) -> Any:
    x, g = at.inputs(op)
    return at.row("cast", g, dtype=x.dtype)


def _transposed(at: Loader, op: Operation) -> Any:
    g, = at.inputs(op)
    perm = [one_axis(a, g.ndim) for a in op.attributes["perm"].value]
    return at.row("transpose", g, perm=tuple(perm.index(i) for i in range(g.ndim)))


def _split(at: Loader, op: Operation) -> Any:
    gs = at.tensors(op.operand_source(0))
    axis = at.constant(op.operand_source(1))
    return at.row("concat", *gs, axis=one_axis(axis, gs[0].ndim))


def _unbind(at: Loader, op: Operation) -> Any:
    gs = at.tensors(op.operand_source(0))
    axis = one_axis(op.attributes["axis"].value, gs[0].ndim + 1)
    return at.row("concat", *[at.row("unsqueeze", g, axis=(axis,)) for g in gs], axis=axis)


def _dropout(at: Loader, op: Operation) -> Any:
    """The mask is that of the forward call: drawn again from its key."""
    mask, g, p = op.operands_source()
    made = mask.get_defining_op()
    ours = None if made is None or made.name() != "pd_op.dropout" else at.values[made.result(0)].get_defining_op()
    if op.attributes["is_test"].value:
        return at.row("assign", at.value(g))
    if ours is None or ours.name() != "pd_op.dropout":
        raise at.refuse()
    return at.row("dropout", at.value(g), ours.operand_source(1), p=at.constant(p),
                  mode=our_mode(op.attributes["mode"].value))


def _embedding(at: Loader, op: Operation) -> Any:
    ids, weight, g = at.inputs(op)
    padding = op.attributes["padding_idx"].value
    if padding != -1:
        counts = at.row("cast", at.row("not_equal", ids, padding), dtype=g.dtype)
        g = at.row("multiply", g, at.row("unsqueeze", counts, axis=(counts.ndim,)))
    return at.row("embedding_grad", ids, g, weight)


def _shuffled(at: Loader, op: Operation) -> Any:
    g, = at.inputs(op)
    a = at.attrs(op)
    return at.call(function("nn.functional.pixel_unshuffle"), g, a["upscale_factor"], a["data_format"])


def _huber(at: Loader, op: Operation) -> Any:
    """The slope is the distance, at most delta."""
    rest, g = at.inputs(op)
    delta = at.attrs(op)["delta"]
    slope = at.row("multiply", g, at.row("clip", rest, min=-delta, max=delta))
    return [at.row("subtract", 0.0, slope), slope]


def _cross_entropy(at: Loader, op: Operation) -> Any:
    label, softmax, g = at.inputs(op)
    a = {k: v.value for k, v in op.attributes.items()}
    if not a["use_softmax"]:
        raise at.refuse()
    axis = one_axis(a["axis"], softmax.ndim)
    if a["soft_label"]:
        total = at.row("sum", label, axis=(axis,), keepdim=True)
        return at.row("multiply", at.row("subtract", at.row("multiply", softmax, total), label), g)
    return at.row("cross_entropy_with_softmax_grad", label, softmax, g, ignore_index=a["ignore_index"], axis=axis)


DIRECT: dict[str, Load] = {
    **dict.fromkeys(("reshape", "squeeze", "unsqueeze", "flatten"), _reshaped), "cast": _cast, "transpose": _transposed,
    "split": _split, "split_with_num": _split, "unbind": _unbind, "unstack": _unbind, "dropout": _dropout,
    "embedding": _embedding, "pixel_shuffle": _shuffled, "huber_loss": _huber,
    "cross_entropy_with_softmax": _cross_entropy,
}
