"""Writing the result of a rule that names Paddle's operators.

They are put on paper first, as operations in Paddle's form, and then read as a saved program is: each becomes what it
is for us.  Only then are ours moved to their place, so that a result which we have nothing for leaves no trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from minipd.framework.row import ROWS, Row
from minipd.ir.attributes import Attribute
from minipd.ir.builder import ANYWHERE, Builder
from minipd.ir.operation import Operation
from minipd.ir.paddle.load import Loader, LoadTrace
from minipd.ir.paddle.save import CONSTANTS
from minipd.ir.paddle.signatures import REQUIRED, of_kind
from minipd.ir.program import Program
from minipd.ir.types import NULL_TYPE, DenseTensorType, Type, VectorType
from minipd.ir.value import Value
from minipd.passes.paddle.match import ComputeAttribute, MatchContext, NormalAttribute
from minipd.passes.pattern import PatternRewriter, RewriteError

if TYPE_CHECKING:
    from minipd.passes.paddle.pattern import Graph, Op

__all__ = ["write"]


def write(graph: Graph, context: MatchContext, olds: dict[str, list[Value]], facts: dict[str, Attribute],
          rewriter: PatternRewriter) -> dict[str, Value]:
    """Insert the operators of a result; returns our values by the names of the tensors that are replaced.

    olds: what each of these replaces.  facts: attributes that every operation gets.
    Raises: RewriteError for an operator that we have nothing for, and for a result of another type.
    """
    loader = Reader(Program(), context.rule)
    names = context.match.tensors()
    paper = Program()
    paper.form = "paddle"
    build = Builder(paper.global_block())
    try:
        for value in names.values():
            if value in context.place.inputs:
                loader.know(value, context.place.inputs[value])
        tensors = dict(names)
        for op, inputs, outputs in graph.calls:
            written = put(build, op, [None if t is None else tensors[t] for t in inputs], len(outputs), context, facts)
            tensors.update((t, r) for t, r in zip(outputs, written.results(), strict=False) if t is not None)
        loader.blocks(paper.global_block(), loader.program.global_block())
        loader.sweep()
        found = {name: checked(context, name, loader.values.get(tensors[graph.assigned.get(name, name)]), replaced)
                 for name, replaced in olds.items()}
    except BaseException:
        for new in reversed(loader.program.global_block().ops):
            new.erase()
        raise
    finally:
        for op_on_paper in reversed(paper.global_block().ops):      # lets go of the values that it reads
            op_on_paper.erase()
    for new in loader.program.global_block().ops:
        assert new.parent is not None
        new.parent.remove(new)
        rewriter.insert(new)
    return found


def checked(context: MatchContext, name: str, new: Value | None, olds: list[Value]) -> Value:
    for old in olds:
        if new is None or new.type() != old.type():
            got = "nothing" if new is None else str(new.type())
            raise RewriteError(f"rule {context.rule}: expected {name!r} of type {old.type()}, got {got}; add a "
                               "constraint that refuses such a match")
    assert new is not None or not olds
    return new          # type: ignore[return-value]


def put(build: Builder, op: Op, inputs: Sequence[Any], results: int, context: MatchContext,
        facts: dict[str, Attribute]) -> Operation:
    """Write down an operator of Paddle's.  Its types are known only when it has been read, but for constants."""
    given = {name: attribute_of(a, context) for name, a in op.attributes.items()}
    attributes: dict[str, Any] = dict(given)
    operands = list(inputs)
    if op.signature is not None:
        attributes = {}
        for key, (kind, default) in op.signature.attrs.items():
            value = given.get(key, ANYWHERE if kind == "place" else default)
            if value is REQUIRED:
                raise RewriteError(f"rule {context.rule}: expected attribute {key!r} of {op.name}, got none, and it "
                                   "has no default")
            try:
                same = isinstance(value, Attribute) and (kind == "place" or (kind, value.kind) == ("f32", "f64"))
                attributes[key] = value if same else of_kind(kind, value)
            except (TypeError, ValueError, OverflowError) as error:
                raise RewriteError(f"rule {context.rule}: attribute {key!r} of {op.name}: expected one of kind {kind}, "
                                   f"got {value!r}: {error}") from None
        left = [o for o in op.signature.operands if o.kind]
        for operand in left[len(left) - (len(op.signature.operands) - len(operands)):]:
            operands.append(constant(build, given.get(operand.name, operand.default), operand.kind, op, context))
        results = max(results, len(op.signature.results))
    return build.build(op.name, operands, {**attributes, **facts}, types_of(op.name, operands, attributes, results))


def attribute_of(given: Any, context: MatchContext) -> Any:
    if isinstance(given, NormalAttribute):
        return context.bound(given.name)
    return given.given(context) if isinstance(given, ComputeAttribute) else given


def constant(build: Builder, value: Any, kind: str, op: Op, context: MatchContext) -> Value:
    """An operand that a rule gives as an attribute."""
    if value is REQUIRED:
        raise RewriteError(f"rule {context.rule}: {op.name} has an operand for an attribute without default; give it "
                           "as an attribute, or as an operand that pd_op.full or pd_op.full_int_array makes")
    value = value.value if isinstance(value, Attribute) else value
    return build.constant(tuple(value) if kind == "ints" else value)


def types_of(name: str, operands: Sequence[Any], attributes: dict[str, Any], results: int) -> list[Type]:
    if name == "pd_op.full_int_array":
        return [DenseTensorType((len(attributes["value"].value),), "int64")]
    if name == "pd_op.full":
        return [DenseTensorType(tuple(attributes["shape"].value), attributes["dtype"].value)]
    if name == "builtin.combine":
        return [VectorType(tuple(v.type() for v in operands))]
    return [NULL_TYPE] * results


class Aside(LoadTrace):
    """Writes into a program of its own what reads values of another."""

    def _check_visible(self, value: Value, row: Row | None) -> None:
        """They will be seen from where it goes."""


class Reader(Loader):
    """Reads operators of Paddle's whose operands are values of a program of ours."""

    def __init__(self, program: Program, rule: str):
        super().__init__(program)
        self.tracer, self.rule = Aside(program), rule

    def know(self, value: Value, ours: Value | None) -> None:
        """Let a value of the view stand for one of ours; None: a constant that ours has as an attribute."""
        made = value.get_defining_op()
        if ours is None:
            if made is None or made.name() not in CONSTANTS:
                raise RewriteError(f"rule {self.rule}: expected an input that is a value of ours, too, got {value!r}")
            self.values.update((r, v) for r, v in zip(made.results(), self.operation(made), strict=True)
                               if v is not None)
        elif isinstance(ours.type(), VectorType):
            bundle = ours.get_defining_op()
            assert bundle is not None
            self.vectors[value] = bundle.operands_source()
        else:
            self.values[value] = ours

    def operation(self, op: Operation) -> Sequence[Value | None]:
        row = op.name().removeprefix("pd_op.")
        before = self.build.block.back()
        results = super().operation(op)
        made = self.build.block.back()
        if made is not None and made is not before and made.row is None and made.name().partition(".")[0] not in (
                "builtin", "cf"):
            known = f"; there is ops.{row} of ours, with other operands: use it with @drr" if row in ROWS else ""
            raise RewriteError(f"rule {self.rule}: expected a result of operators that minipd has, got {op.name()}, "
                               f"which it can only keep{known}")
        for old, new in zip(op.results(), results, strict=True):
            if new is not None:
                old.set_type(new.type())
        return results
