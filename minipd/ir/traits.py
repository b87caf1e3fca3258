"""What passes and the verifier may assume of an operation, beyond the traits of its row.

Row traits (`View`, `Inplace`, `SideEffect`, ...) describe computation and live in `framework.row.Trait`.  The ones here
describe an operation in a program: where it may stand, and how its types belong together.  An operation has the union
of both, and `op.has_trait` takes either, or the name: `op.has_trait("Commutative")`.

A trait may carry a check of its own; the verifier calls it for every operation that has the trait.  A dialect of your
own may have traits of its own:

    @checked_trait("EvenRank")
    def EVEN_RANK(op):
        "Every operand has an even number of dimensions."
        for i, value in enumerate(op.operands_source()):
            if len(value.shape) % 2:
                raise ValueError(f"operand {i}: expected an even number of dimensions, got {value.type()}")
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, ClassVar

from minipd.framework.row import Trait
from minipd.ir.types import TensorType, Type

if TYPE_CHECKING:
    from minipd.ir.operation import Operation

__all__ = ["IrTrait", "checked_trait"]

Check = Callable[["Operation"], None]


class IrTrait:
    """A structural property of operations.  `check` raises ValueError for an operation that does not have it."""

    __slots__ = ("check", "doc", "value")
    TERMINATOR: ClassVar[IrTrait]
    CONSTANT: ClassVar[IrTrait]
    READS_STATE: ClassVar[IrTrait]
    PURE: ClassVar[IrTrait]
    ISOLATED_FROM_ABOVE: ClassVar[IrTrait]
    ONE_RESULT: ClassVar[IrTrait]
    SAME_OPERANDS_SHAPE: ClassVar[IrTrait]
    SAME_OPERANDS_ELEMENT_TYPE: ClassVar[IrTrait]
    SAME_TYPE_OPERANDS: ClassVar[IrTrait]
    SAME_OPERANDS_AND_RESULT_SHAPE: ClassVar[IrTrait]
    SAME_OPERANDS_AND_RESULT_ELEMENT_TYPE: ClassVar[IrTrait]
    SAME_OPERANDS_AND_RESULT_TYPE: ClassVar[IrTrait]

    def __init__(self, value: str, doc: str, check: Check | None = None):
        self.value, self.doc, self.check = value, doc, check

    def __repr__(self) -> str:
        return f"<IrTrait {self.value}: {self.doc}>"


def checked_trait(name: str) -> Callable[[Check], IrTrait]:
    """Decorator: the function, which raises ValueError where the trait does not hold, becomes the trait `name`."""
    def make(check: Check) -> IrTrait:
        return IrTrait(name, (check.__doc__ or "").strip(), check)
    return make


IrTrait.TERMINATOR = IrTrait("Terminator", "Ends a block of a region, and stands nowhere else.")
IrTrait.CONSTANT = IrTrait("Constant", "Has no operands, and its value is written in its attributes.")
IrTrait.READS_STATE = IrTrait("ReadsState", "Reads the program's state; moves over no write of the same name.")
IrTrait.PURE = IrTrait("Pure", "The results depend on operands and attributes only, and nothing else happens: it may "
                               "be removed if unused, and one may stand for two equal ones.")


# -------------------------------------------------------------------------------------------- traits with checks
def _types(op: Operation, results: bool) -> list[tuple[str, Type]]:
    """The types of the operands (a vector's, one by one) and, if wanted, of the results, each with what it is of."""
    from minipd.ir.types import VectorType
    named = [(f"operand {i}", v.type()) for i, v in enumerate(op.operands_source()) if v is not None]
    if results:
        named += [(f"result {i}", v.type()) for i, v in enumerate(op.results())]
    return [(name, inner) for name, type in named
            for inner in (type.types if isinstance(type, VectorType) else (type,))]


def _all_same(named: Iterable[tuple[str, Type]], what: str, part: Callable[[TensorType], object]) -> None:
    """The first one is the measure of the others."""
    first: tuple[str, TensorType] | None = None
    for name, type in named:
        if not isinstance(type, TensorType):
            raise ValueError(f"{name}: expected a tensor, got {type}")
        first = first or (name, type)
        if part(type) != part(first[1]):
            raise ValueError(f"{name}: expected the {what} of {first[0]}, {first[1]}, got {type}")


def _shape(type: TensorType) -> object:
    return type.shape


def _element_type(type: TensorType) -> object:
    return type.dtype


def _itself(type: TensorType) -> object:
    return type


@checked_trait("OneResult")
def _one_result(op: Operation) -> None:
    """Has exactly one result."""
    if op.num_results() != 1:
        raise ValueError(f"expected one result, got {op.num_results()}")


@checked_trait("SameOperandsShape")
def _same_operands_shape(op: Operation) -> None:
    """All operands have one shape."""
    _all_same(_types(op, results=False), "shape", _shape)


@checked_trait("SameOperandsElementType")
def _same_operands_element_type(op: Operation) -> None:
    """All operands have one dtype."""
    _all_same(_types(op, results=False), "dtype", _element_type)


@checked_trait("SameTypeOperands")
def _same_type_operands(op: Operation) -> None:
    """All operands have one type."""
    _all_same(_types(op, results=False), "type", _itself)


@checked_trait("SameOperandsAndResultShape")
def _same_operands_and_result_shape(op: Operation) -> None:
    """All operands and results have one shape."""
    _all_same(_types(op, results=True), "shape", _shape)


@checked_trait("SameOperandsAndResultElementType")
def _same_operands_and_result_element_type(op: Operation) -> None:
    """All operands and results have one dtype."""
    _all_same(_types(op, results=True), "dtype", _element_type)


@checked_trait("SameOperandsAndResultType")
def _same_operands_and_result_type(op: Operation) -> None:
    """All operands and results have one type."""
    _all_same(_types(op, results=True), "type", _itself)


@checked_trait("IsolatedFromAbove")
def _isolated_from_above(op: Operation) -> None:
    """Its regions read no value from around it."""
    from minipd.ir.operation import captured
    from minipd.ir.value import describe
    outside = captured(op)
    if outside:
        raise ValueError(f"expected regions that read nothing from around them, got {describe(outside[0])}, which is "
                         "defined outside; hand it over as an operand and a block argument")


IrTrait.ONE_RESULT = _one_result
IrTrait.SAME_OPERANDS_SHAPE = _same_operands_shape
IrTrait.SAME_OPERANDS_ELEMENT_TYPE = _same_operands_element_type
IrTrait.SAME_TYPE_OPERANDS = _same_type_operands
IrTrait.SAME_OPERANDS_AND_RESULT_SHAPE = _same_operands_and_result_shape
IrTrait.SAME_OPERANDS_AND_RESULT_ELEMENT_TYPE = _same_operands_and_result_element_type
IrTrait.SAME_OPERANDS_AND_RESULT_TYPE = _same_operands_and_result_type
IrTrait.ISOLATED_FROM_ABOVE = _isolated_from_above


# ------------------------------------------------------------------------------------------------- row traits
def _commutative(op: Operation) -> None:
    if op.num_operands() < 2:
        raise ValueError(f"Commutative: expected at least two operands, got {op.num_operands()}")


def _inplace(op: Operation) -> None:
    """What is written over has the shape and the dtype of what was there."""
    pairs = {0: 0} if op.row is None else op.row.inplace
    for result, operand in pairs.items():
        new, old = op.result(result).type(), op.operand_source(operand).type()
        if isinstance(new, TensorType) and isinstance(old, TensorType) and (new.shape, new.dtype) != (old.shape,
                                                                                                      old.dtype):
            raise ValueError(f"Inplace: result {result}: expected the type of operand {operand}, over which it is "
                             f"written, {old}, got {new}")


ROW_TRAIT_CHECKS: dict[Trait, Check] = {Trait.COMMUTATIVE: _commutative, Trait.INPLACE: _inplace}


def check_of(trait: Trait | IrTrait) -> Check | None:
    """The check that a trait carries, None if it carries none."""
    return trait.check if isinstance(trait, IrTrait) else ROW_TRAIT_CHECKS.get(trait)
