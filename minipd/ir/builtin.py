"""The dialects of the program itself: `builtin` (state, vectors, outputs), `cf` (control flow) and what `pd_op` has
besides the operator table (`data`, `fetch`, `if`, `while`).

Program state is read by `builtin.parameter` and written by `builtin.set_parameter`, by name.  Values in between are
functional: nothing in a program changes in place.

A gradient region needs values of its forward region, which no longer exist as values there.  They travel on a stack:

    (%stack_0, %inlet_0, %outlet_0) = "cf.stack_create" () {} : () -> cf.stack, cf.inlet, cf.outlet
    () = "cf.tuple_push" (%inlet_0, %8, %9) {} : ...           at the end of the forward region
    (%18, %19) = "cf.tuple_pop" (%outlet_0) {} : ...           at the start of the gradient region

The inlet remembers nothing by itself; the stack is what `stack_create` made, and both ends name it.  A stack is a value
too: one that is made anew in every iteration of a loop is itself pushed, and popped where its contents are wanted; and
a program may give one as an output, which the program that pops it takes (`cf.stack_take`).

A loop carries values from one iteration to the next.  They enter as operands, are the arguments of the body's block,
which yields whether to go on and what they are then, and leave as results; all four have the same types:

    (%4, %5) = "pd_op.while" (%3, %0, %1) {} : (tensor<b>, tensor<i64>, tensor<2xf32>) -> tensor<i64>, tensor<2xf32> {
    ^ %arg_0 {} : tensor<i64>, %arg_1 {} : tensor<2xf32>
        ...
        () = "cf.yield" (%9, %7, %8) {} : (tensor<b>, tensor<i64>, tensor<2xf32>) ->
    }
"""

from __future__ import annotations

import numpy as np

from minipd.framework.row import Trait
from minipd.ir.block import Block
from minipd.ir.dialect import Dialect, register_dialect
from minipd.ir.operation import Operation
from minipd.ir.traits import IrTrait
from minipd.ir.types import DenseTensorType, StackType, TensorType, Type, VectorType
from minipd.ir.value import Value

__all__: list[str] = []


def _types(values: list) -> list[Type]:
    return [v.type() for v in values]


def _expect(what: str, got: list[Type], expected: list[Type]) -> None:
    if len(got) != len(expected) or not all(map(_agree, got, expected)):
        raise ValueError(f"{what}: expected {_list(expected)}, got {_list(got)}")


def _agree(a: Type, b: Type) -> bool:
    """Whether two types are one, wherever the tensors lie.  Of distributed tensors, those whose placements nobody has
    found yet are ordinary ones."""
    a, b = a.logical, b.logical
    if isinstance(a, VectorType) and isinstance(b, VectorType):
        return len(a.types) == len(b.types) and all(map(_agree, a.types, b.types))
    if isinstance(a, TensorType) and isinstance(b, TensorType) and DenseTensorType in (type(a), type(b)):
        return (a.shape, a.dtype) == (b.shape, b.dtype)
    return a == b


def _list(types: list[Type]) -> str:
    return f"({', '.join(map(str, types))})"


def is_condition(type: Type) -> bool:
    """a condition of type tensor<b>"""
    return isinstance(type, TensorType) and type.dtype == np.bool_ and type.shape in ((), (1,))


builtin = register_dialect(Dialect("builtin"))
#: further attributes of a parameter, one entry per result as Paddle has it
PARAMETER_FLAGS = ("is_distributed", "is_parameter", "need_clip", "trainable")


@builtin.op("parameter", IrTrait.READS_STATE)
class Parameter:
    """Reads the program state of a name."""

    results = ("out",)
    attributes = {"parameter_name": str, **{f"{flag}?": "array" for flag in PARAMETER_FLAGS}}


@builtin.op("constant", IrTrait.READS_STATE)
class Constant:
    """Reads a tensor that comes with the program and never changes."""

    results = ("out",)
    attributes = {"tensor_name": (str, "tensor_name")}


@builtin.op("set_parameter", Trait.SIDE_EFFECT)
class SetParameter:
    """Writes the program state of a name."""

    operands = ("value",)
    attributes = {"parameter_name": str}


@builtin.op("shadow_output", Trait.SIDE_EFFECT)
class ShadowOutput:
    """A result of the program."""

    operands = ("value",)
    attributes = {"output_name": str}


@builtin.op("combine", IrTrait.PURE)
class Combine:
    """Several values as one vector."""

    operands = ("*values",)
    results = {"out": VectorType}

    def verify(op):
        _expect("results", _types(op.results()), [VectorType(_types(op.operands_source()))])


@builtin.op("split", IrTrait.PURE)
class Split:
    """A vector, taken apart."""

    operands = {"vector": VectorType}
    results = ("*out",)

    def verify(op):
        vector = op.operand_source(0).type()
        assert isinstance(vector, VectorType)
        _expect("results", _types(op.results()), list(vector.types))


cf = register_dialect(Dialect("cf"))


@cf.op("yield", IrTrait.TERMINATOR)
class Yield:
    """Ends a region: its operands are what the region gives to the operation that owns it."""

    operands = ("*values",)


@cf.op("stack_create")
class StackCreate:
    """A new stack, and its two ends."""

    results = {end: StackType(end) for end in StackType.ENDS}


@cf.op("stack_take", IrTrait.READS_STATE)
class StackTake:
    """The stack that another program gave as an output called `name`, and the end that pops it."""

    results = {"stack": StackType("stack"), "outlet": StackType("outlet")}
    attributes = {"name": str}


@cf.op("tuple_push", Trait.SIDE_EFFECT)
class TuplePush:
    """Pushes its values, as one tuple, onto the stack of the inlet."""

    operands = {"inlet": StackType("inlet"), "*values": Type}

    def verify(op):
        pushes = [u for u in op.operand_source(0).uses if u.owner().name() == "cf.tuple_push"]
        if len(pushes) != 1:
            raise ValueError(f"expected one tuple_push per stack, got {len(pushes)}; create a stack for each region")


@cf.op("tuple_pop", Trait.SIDE_EFFECT)
class TuplePop:
    """Takes the last tuple off the stack of the outlet."""

    operands = {"outlet": StackType("outlet")}
    results = ("*values",)

    def verify(op):
        pushed = pushed_values(op)
        if pushed is None and is_taken(op.operand_source(0)):       # another program has pushed, and knows the types
            return
        if pushed is None:
            raise ValueError("operand 0: expected the outlet of a stack onto which a tuple is pushed, got one without "
                             "push")
        _expect("results", _types(op.results()), _types(pushed))


@cf.op("has_elements", Trait.SIDE_EFFECT)
class HasElements:
    """Whether there is a tuple on the stack."""

    operands = {"stack": StackType("stack")}
    results = {"out": is_condition}


def pushed_values(pop: Operation) -> list[Value] | None:
    """The values that the matching `cf.tuple_push` pushes; None if there is no push."""
    create = origin(pop.operand_source(0)).get_defining_op()
    if create is None or create.name() != "cf.stack_create":
        return None
    for use in create.result(StackType.ENDS.index("inlet")).uses:
        if use.owner().name() == "cf.tuple_push":
            return use.owner().operands_source()[1:]
    return None


def origin(value: Value) -> Value:
    """The value itself; for one that was popped, the value that was pushed."""
    while (op := value.get_defining_op()) is not None and op.name() == "cf.tuple_pop":
        pushed = pushed_values(op)
        if pushed is None or len(pushed) != op.num_results():
            break
        value = pushed[op.results().index(value)]       # type: ignore[arg-type]
    return value


def is_taken(value: Value) -> bool:
    """Whether an end of a stack comes from another program, by itself or on such a stack."""
    while (op := value.get_defining_op()) is not None and op.name() == "cf.tuple_pop":
        value = op.operand_source(0)
    return op is not None and op.name() == "cf.stack_take"


def yielded(block: Block) -> list[Value]:
    """What the block of a region yields."""
    end = block.back()
    return end.operands_source() if end is not None and end.name() == "cf.yield" else []


pd_op = register_dialect(Dialect("pd_op"))


@pd_op.op("data")
class Data:
    """An input of the program."""

    results = {"out": TensorType}
    attributes = {"name": str, "shape": tuple, "dtype": "dtype"}

    def verify(op):
        shape, dtype = op.attributes["shape"].value, op.attributes["dtype"].value
        got = op.result(0).type()
        assert isinstance(got, TensorType)
        if (got.shape, got.dtype) != (shape, dtype):
            raise ValueError(f"result 0: expected the declared shape {list(shape)} and dtype {dtype}, got {got}")


@pd_op.op("fetch", Trait.SIDE_EFFECT, Trait.VIEW, IrTrait.SAME_OPERANDS_AND_RESULT_TYPE)
class Fetch:
    """A result of a run, by name."""

    operands = ("x",)
    results = ("out",)
    attributes = {"name": str, "col": int}


@pd_op.op("if")
class If:
    """What one of its regions yields."""

    operands = {"cond": is_condition}
    results = ("*out",)
    regions = ("true", "false")

    def verify(op):
        for name, region in zip(op.info.region_names, op.regions, strict=True):
            _expect(f"what the {name} region yields", _types(yielded(region.front())), _types(op.results()))


@pd_op.op("while")
class While:
    """Runs its region as long as the condition holds; what it carries enters as arguments, and leaves as results."""

    operands = {"cond": is_condition, "*inputs": Type}
    results = ("*out",)
    regions = ("body",)

    def verify(op):
        inputs = _types(op.operands_source())[1:]
        body = op.regions[0].front()
        _expect("the arguments of the body", _types(body.args()), inputs)
        ends = _types(yielded(body))
        if not ends:
            raise ValueError("what the body yields: expected whether to go on, and the values carried, got nothing")
        if not is_condition(ends[0]):
            raise ValueError(f"what the body yields first: expected {is_condition.__doc__}, got {ends[0]}")
        _expect("what the body yields after its condition (a loop cannot change the type of what it carries)",
                ends[1:], inputs)
        _expect("results", _types(op.results()), inputs)
