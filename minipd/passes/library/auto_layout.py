"""A model of channels-last images computes with channels first, as the kernels do, and transposes at its ends only.

    >>> from minipd.nn import Conv2D, ReLU, Sequential
    >>> from minipd.passes.show import before_after, show
    >>> net = Sequential(Conv2D(3, 8, 3, data_format="NHWC", bias_attr=False), ReLU(),
    ...                  Conv2D(8, 2, 1, data_format="NHWC", bias_attr=False))
    >>> show(before_after("auto_layout_pass", net, (2, 5, 5, 3)))
    before
      a = transpose(input, perm=(0, 3, 1, 2))
      b = conv2d(a, 0.weight, strides=(1, 1), paddings=(0, 0, 0, 0), dilations=(1, 1), groups=1)
      c = transpose(b, perm=(0, 2, 3, 1))
      d = relu(c)
      e = transpose(d, perm=(0, 3, 1, 2))
      f = conv2d(e, 2.weight, strides=(1, 1), paddings=(0, 0, 0, 0), dilations=(1, 1), groups=1)
      g = transpose(f, perm=(0, 2, 3, 1))
      return g
    after
      a = transpose(input, perm=(0, 3, 1, 2))
      b = conv2d(a, 0.weight, strides=(1, 1), paddings=(0, 0, 0, 0), dilations=(1, 1), groups=1)
      c = relu(b)
      d = conv2d(c, 2.weight, strides=(1, 1), paddings=(0, 0, 0, 0), dilations=(1, 1), groups=1)
      e = transpose(d, perm=(0, 2, 3, 1))
      return e

Convolutions and pooling have kernels for NCHW; given NHWC, they are traced between two transpositions.  In this order:

    auto_layout_insert_pass     a transposition goes behind the operator that reads it: element-wise ones, `concat`, and
                                reductions, most of which need none afterwards
    auto_layout_simplify_pass   two that undo one another are gone, also where the first one has other readers
    auto_layout_pass            both, if there are fewer transpositions afterwards

What goes beside a transposed tensor must have one layout more: a weight (transposed back, for constant folding), a
single number, a tensor that is transposed in the same way, or one that somebody reads transposed back already.

A transposition is a view here and costs next to nothing; what pays is that patterns see convolution, normalisation and
activation side by side, and that kernels read memory in its order.

Paddle's passes of these names turn NCHW into NHWC around GPU convolutions of low precision; on the CPU they find
nothing to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minipd.framework.row import ROWS, Row, Trait
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.schema import op_attrs, tensor_operands
from minipd.ir.types import TensorType
from minipd.ir.value import Value
from minipd.passes.base import Pass, PatternRewritePass
from minipd.passes.library.state_only import depends_on_state_only
from minipd.passes.pattern import PatternRewriter, RewritePattern, apply_patterns_greedily
from minipd.passes.rewriter import inherited
from minipd.passes.table import register_pass

__all__ = ["AutoLayout", "AutoLayoutInsert", "AutoLayoutSimplify"]

TRANSPOSE = ROWS["transpose"]
#: reductions over `axis`, with `keepdim`
REDUCTIONS = frozenset({"all", "any", "max", "mean", "min", "prod", "sum"})


def channels_last(perm: Sequence[int]) -> bool:
    """Whether this brings the second dimension, the channels, to the end: NCHW to NHWC."""
    return len(perm) > 2 and tuple(perm) == (0, *range(2, len(perm)), 1)


def inverse(perm: Sequence[int]) -> tuple[int, ...]:
    """The transposition that undoes this one."""
    return tuple(sorted(range(len(perm)), key=perm.__getitem__))


def transposed(value: Value) -> tuple[Value, tuple[int, ...]] | None:
    """(x, perm) where `value` is x in that order."""
    op = value.get_defining_op()
    if op is None or op.name() != "pd_op.transpose":
        return None
    return tensor_operands(op)[0], tuple(op_attrs(op)["perm"])


class Sink(RewritePattern):
    """f(transpose(x), ...) = transpose(f(x, ...)), for a transposition to channels last."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> bool:
        row = op.row
        if row is None or op.num_results() != 1 or op.parent is None or not isinstance(op.result(0).type(), TensorType):
            return False
        if row.name not in REDUCTIONS and row.name != "concat" and (
                Trait.ELEMENTWISE not in row.traits or row.traits & {Trait.RANDOM, Trait.MULTI} or row.variadic):
            return False
        try:
            values, attrs = tensor_operands(op), op_attrs(op)
        except ValueError:
            return False
        perm = next((found[1] for v in values if (found := transposed(v)) and channels_last(found[1])
                     and not depends_on_state_only(v)), None)
        if perm is None or not all(v in values[:i] or _ready(v, perm, op) for i, v in enumerate(values)):
            return False
        back = _attrs_before(row, attrs, perm, op.result(0))
        if back is None:
            return False
        attrs, after = back
        inputs = [_before(v, perm, op, rewriter) for v in values]
        new, = rewriter.call(row, inputs, attrs, inherited(op))
        new.stop_gradient = op.result(0).stop_gradient
        if after is not None:
            new, = rewriter.call(TRANSPOSE, (new,), {"perm": after}, inherited(op))
            new.stop_gradient = op.result(0).stop_gradient
        rewriter.replace_op(op, [new])
        return True


def _attrs_before(row: Row, attrs: dict[str, Any], perm: tuple[int, ...], result: Value,
                  ) -> tuple[dict[str, Any], tuple[int, ...] | None] | None:
    """The attributes of the call on what is not transposed, and the transposition of its result, None for none.

    None if there is no such call.
    """
    if row.name == "concat":
        return {**attrs, "axis": perm[attrs["axis"]]}, perm
    if row.name not in REDUCTIONS:
        return (attrs, perm) if result.ndim == len(perm) else None
    axis = tuple(attrs["axis"])
    before = {**attrs, "axis": tuple(sorted(perm[a] for a in axis))}
    if attrs["keepdim"]:
        return before, perm
    rest = [p for i, p in enumerate(perm) if i not in axis]
    return (before, None) if rest == sorted(rest) else None


def _ready(value: Value, perm: tuple[int, ...], op: Operation) -> bool:
    """Whether `value` can be had as it is before the transposition, at no cost."""
    found = transposed(value)
    return found is not None and found[1] == perm or value.ndim == 0 or depends_on_state_only(value) and (
        value.ndim <= len(perm)) or _other(value, perm, op) is not None


def _other(value: Value, perm: tuple[int, ...], op: Operation) -> Value | None:
    """`value` transposed back, where somebody has done that before `op`.

    (Not where that is the same transposition: either operand would be the one that is transposed, in turns.)
    """
    if inverse(perm) == perm:
        return None
    for user in value.all_used_ops():
        if user.name() == "pd_op.transpose" and user.parent is op.parent and op.parent is not None and (
                tuple(op_attrs(user)["perm"]) == inverse(perm)):
            op.parent.number()
            if user.order < op.order:
                return user.result(0)
    return None


def _before(value: Value, perm: tuple[int, ...], op: Operation, rewriter: PatternRewriter) -> Value:
    """`value` as it is before the transposition."""
    found = transposed(value)
    if found is not None and found[1] == perm:
        return found[0]
    if value.ndim == 0:
        return value
    known = _other(value, perm, op)
    if known is not None:
        return known
    if value.ndim < len(perm):
        shape = (*(1,) * (len(perm) - value.ndim), *value.shape)
        value, = rewriter.call(ROWS["reshape"], (value,), {"shape": shape}, inherited(op))
    value, = rewriter.call(TRANSPOSE, (value,), {"perm": inverse(perm)}, inherited(op))
    return value


class Cancel(RewritePattern):
    """transpose(transpose(x)) = x, where the one undoes the other, from inside of a branch too (a formula stands in one
    block)."""

    roots = ("pd_op.transpose",)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> bool:
        y = tensor_operands(op)[0]
        found = transposed(y)
        if found is None or tuple(op_attrs(op)["perm"]) != inverse(found[1]):
            return False
        if found[0].stop_gradient != op.result(0).stop_gradient:
            return False
        rewriter.replace_op(op, [found[0]])
        maker = y.get_defining_op()
        if y.use_empty() and maker is not None:
            rewriter.erase_op(maker)
        return True


class Unread(RewritePattern):
    """A transposition that nothing reads is gone: every one of its readers has been moved before it."""

    roots = ("pd_op.transpose",)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> bool:
        if not op.result(0).use_empty():
            return False
        rewriter.erase_op(op)
        return True


@register_pass("auto_layout_insert_pass")
class AutoLayoutInsert(PatternRewritePass):
    """Transpositions to channels last go behind the operators that read them."""

    opt_level = 3
    patterns = (Sink, Unread)


@register_pass("auto_layout_simplify_pass")
class AutoLayoutSimplify(PatternRewritePass):
    """Transpositions that undo one another are gone."""

    exact = True
    opt_level = 3
    patterns = (Cancel, Unread)


@register_pass("auto_layout_pass")
class AutoLayout(Pass):
    """Channels stay first between the ends of a model.  The number of changes is that of the transpositions gone."""

    opt_level = 3

    def can_apply_on(self, program: Program) -> bool:
        """Whether there are transpositions to channels last, and some that may undo them."""
        perms = {tuple(op_attrs(op)["perm"]) for op in program.walk() if op.name() == "pd_op.transpose"}
        return any(channels_last(p) and inverse(p) in perms for p in perms)

    def run(self, program: Program) -> int:
        before = transpositions(program)
        if not before or transpositions(_arranged(program.clone())) >= before:
            return 0
        return before - transpositions(_arranged(program))


def _arranged(program: Program) -> Program:
    apply_patterns_greedily(program, [Sink(), Cancel(), Unread()])
    return program


def transpositions(program: Program) -> int:
    """How many transpositions a run does; those of weights are folded."""
    return sum(op.name() == "pd_op.transpose" and not depends_on_state_only(op.result(0)) for op in program.walk())
