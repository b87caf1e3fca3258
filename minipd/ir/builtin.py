"""The dialects of the program itself: `builtin` (state, vectors, outputs), `cf` (control flow) and what `pd_op` has
besides the operator table (`data`, `fetch`, `if`, `while`).

Program state is read by `builtin.parameter` and written by `builtin.set_parameter`, by name.  Values in between are
functional: nothing in a program changes in place.

A gradient region needs values of its forward region, which no longer exist as values there.  They travel on a stack:

    (%stack_0, %inlet_0, %outlet_0) = "cf.stack_create" () {} : () -> cf.stack, cf.inlet, cf.outlet
    () = "cf.tuple_push" (%inlet_0, %8, %9) {} : ...           at the end of the forward region
    (%18, %19) = "cf.tuple_pop" (%outlet_0) {} : ...           at the start of the gradient region

The inlet remembers nothing by itself; the stack is what `stack_create` made, and both ends name it.  A stack is a value
too: one that is made anew in every iteration of a loop is itself pushed, and popped where its contents are wanted.

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


def _expect(op: Operation, what: str, got: list[Type], expected: list[Type]) -> None:
    if [t.logical for t in got] != [t.logical for t in expected]:
        raise ValueError(f"{what}: expected {_list(expected)}, got {_list(got)}")


def _list(types: list[Type]) -> str:
    return f"({', '.join(map(str, types))})"


def check_data(op: Operation) -> None:
    shape, dtype = op.attributes["shape"].value, op.attributes["dtype"].value
    got = op.result(0).type()
    if not isinstance(got, TensorType) or (got.shape, got.dtype) != (shape, dtype):
        raise ValueError(f"result 0: expected the declared shape {list(shape)} and dtype {dtype}, got {got}")


def check_fetch(op: Operation) -> None:
    _expect(op, "results", _types(op.results()), _types(op.operands_source()))


def check_combine(op: Operation) -> None:
    _expect(op, "results", _types(op.results()), [VectorType(tuple(_types(op.operands_source())))])


def check_split(op: Operation) -> None:
    vector = op.operand_source(0).type()
    if not isinstance(vector, VectorType):
        raise ValueError(f"operand 0: expected a vector of values, got {vector}")
    _expect(op, "results", _types(op.results()), list(vector.types))


def check_stack_create(op: Operation) -> None:
    _expect(op, "results", _types(op.results()), [StackType(end) for end in StackType.ENDS])


def check_push(op: Operation) -> None:
    _expect(op, "operand 0", _types(op.operands_source()[:1]), [StackType("inlet")])
    pushes = [u for u in op.operand_source(0).uses if u.owner().name() == "cf.tuple_push"]
    if len(pushes) != 1:
        raise ValueError(f"expected one tuple_push per stack, got {len(pushes)}; create a stack for each region")


def check_pop(op: Operation) -> None:
    _expect(op, "operand 0", _types(op.operands_source()), [StackType("outlet")])
    pushed = pushed_values(op)
    if pushed is None:
        raise ValueError("operand 0: expected the outlet of a stack onto which a tuple is pushed, got one without push")
    _expect(op, "results", _types(op.results()), _types(pushed))


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


def check_has_elements(op: Operation) -> None:
    _expect(op, "operand 0", _types(op.operands_source()), [StackType("stack")])
    _expect(op, "results", _types(op.results()), [DenseTensorType((1,), np.dtype(np.bool_))])


def _expect_condition(what: str, got: Type) -> None:
    if not isinstance(got, TensorType) or got.dtype != np.bool_ or got.shape not in ((), (1,)):
        raise ValueError(f"{what}: expected a condition of type tensor<b>, got {got}")


def yielded(block: Block) -> list[Value]:
    """What the block of a region yields."""
    end = block.back()
    return end.operands_source() if end is not None and end.name() == "cf.yield" else []


def check_if(op: Operation) -> None:
    _expect_condition("operand 0", op.operand_source(0).type())
    for name, region in zip(("true", "false"), op.regions, strict=True):
        _expect(op, f"what the {name} region yields", _types(yielded(region.front())), _types(op.results()))


def check_while(op: Operation) -> None:
    condition, *inputs = _types(op.operands_source())
    _expect_condition("operand 0", condition)
    body = op.regions[0].front()
    _expect(op, "the arguments of the body", _types(body.args()), inputs)
    ends = _types(yielded(body))
    if not ends:
        raise ValueError("what the body yields: expected whether to go on, and the values carried, got nothing")
    _expect_condition("what the body yields first", ends[0])
    _expect(op, "what the body yields after its condition (a loop cannot change the type of what it carries)",
            ends[1:], inputs)
    _expect(op, "results", _types(op.results()), inputs)


builtin = register_dialect(Dialect("builtin"))
builtin.define("parameter", (), ("out",), ("parameter_name",), traits=frozenset({IrTrait.READS_STATE}))
builtin.define("constant", (), ("out",), ("tensor_name",), traits=frozenset({IrTrait.READS_STATE}))
builtin.define("set_parameter", ("value",), (), ("parameter_name",), traits=frozenset({IrTrait.SIDE_EFFECT}))
builtin.define("shadow_output", ("value",), (), ("output_name",), traits=frozenset({IrTrait.SIDE_EFFECT}))
builtin.define("combine", ("*values",), ("out",), check=check_combine)
builtin.define("split", ("vector",), ("*out",), check=check_split)
#: further attributes of a parameter, one entry per result as Paddle has it
PARAMETER_FLAGS = ("is_distributed", "is_parameter", "need_clip", "trainable")

cf = register_dialect(Dialect("cf"))
cf.define("yield", ("*values",), (), traits=frozenset({IrTrait.TERMINATOR}))
cf.define("stack_create", (), StackType.ENDS, check=check_stack_create)
cf.define("tuple_push", ("inlet", "*values"), (), check=check_push, traits=frozenset({IrTrait.SIDE_EFFECT}))
cf.define("tuple_pop", ("outlet",), ("*values",), check=check_pop, traits=frozenset({IrTrait.SIDE_EFFECT}))
cf.define("has_elements", ("stack",), ("out",), check=check_has_elements, traits=frozenset({IrTrait.SIDE_EFFECT}))

pd_op = register_dialect(Dialect("pd_op"))
pd_op.define("data", (), ("out",), ("name", "shape", "dtype"), check=check_data)
pd_op.define("fetch", ("x",), ("out",), ("name", "col"), check=check_fetch,
             traits=frozenset({IrTrait.SIDE_EFFECT, Trait.VIEW}))
pd_op.define("if", ("cond",), ("*out",), regions=2, check=check_if)
pd_op.define("while", ("cond", "*inputs"), ("*out",), regions=1, check=check_while)
