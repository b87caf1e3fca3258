"""Operators that stand for several become kernels, each by itself: the kernel of a fused row is its decomposition,
compiled.

`apply_cinn_pass` fuses whatever it finds in a program.  Here what is one kernel has been decided, by the rules of
floor 3 or by whoever wrote `softmax`; an operator is taken apart, and what its parts make of loops goes into one group
for each nest:

    (%3) = "pd_op.fused_gemm_epilogue" (%0, %1, %2) {activation:"gelu"}

    (%3) = "pd_op.matmul" (%0, %1)                          the library's
    (%4) = "cinn_runtime.jit_kernel" (%3, %2)               %3 + %2 and its gelu, over the memory of %3

An operator stays as it is where this would not be all of it: where a part that could be in a loop is left beside the
groups, so that it would be a pass over memory of its own, or where the loops cannot be scheduled.
"""

from __future__ import annotations

from collections.abc import Hashable

from minipd.cinn.compile import compile_groups, function_of
from minipd.cinn.compute.table import Indexed, compute_of
from minipd.cinn.dialect import FUSION
from minipd.cinn.frontend import build_groups
from minipd.cinn.lower import CannotLower
from minipd.cinn.parts import WHOLE, prepare
from minipd.cinn.schedule import ScheduleError
from minipd.decomposition.table import stands_for_several
from minipd.framework.row import Row, Trait
from minipd.ir.builder import Builder
from minipd.ir.dce import remove_dead_ops
from minipd.ir.mapping import IrMapping, clone_operation
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.schema import op_attrs, result_values, tensor_operands
from minipd.ir.traits import IrTrait
from minipd.ir.types import TensorType
from minipd.passes.rewriter import inherited
from minipd.passes.table import create_pass

__all__ = ["compile_fused_rows"]

#: operations of a template that are not put into the program
FRAME = ("pd_op.data", "builtin.shadow_output")
#: operators whose own kernel finishes what the library computes while it is near: apart, the rest is one more call, and
#: pays where numpy goes over it many times, or slowly
FINISHED = ("fused_gemm_epilogue", "fused_conv2d_add_act", "fused_conv2d_residual_add_act")
DEAR = ("gelu", "gelu_tanh", "quick_gelu", "silu", "hardswish")


def compile_fused_rows(program: Program) -> int:
    """Replace each operator that is several in one by its kernels, in place; returns how many have been replaced."""
    templates: dict[Hashable, Program | None] = {}
    replaced = 0
    for op in list(program.walk()):
        if not _stands_for_several(op):
            continue
        key = _call_of(op)
        if key not in templates:
            templates[key] = _template(program, op)
        template = templates[key]
        if template is not None:
            _put(template, op)
            replaced += 1
    if replaced:
        remove_dead_ops(program)
        create_pass("common_subexpression_elimination_pass").run(program)       # what templates repeat
        for group in program.walk():
            if group.name() == FUSION:
                _list_each_once(group)
        compile_groups(program)
    return replaced


def _list_each_once(group: Operation) -> None:
    """An operator may be given one value twice (a layer norm whose scale is its bias); a group lists it once."""
    values = group.operands_source()
    for i in reversed(range(len(values))):
        if values[i] in values[:i]:
            group.erase_operand(i)


def _stands_for_several(op: Operation) -> bool:
    row = op.row
    if row is None or row.dialect != "pd_op" or not stands_for_several(row) or row.name in WHOLE:
        return False
    if row.name in FINISHED and op_attrs(op)["activation"] not in DEAR:
        return False
    if op.info.traits & {Trait.COMM, Trait.RANDOM, Trait.SIDE_EFFECT}:
        return False
    return all(isinstance(v.type(), TensorType) for v in (*tensor_operands(op), *result_values(op)))


def _call_of(op: Operation) -> Hashable:
    """Equal for calls that get equal kernels."""
    assert op.row is not None
    attrs = tuple((name, repr(value)) for name, value in sorted(op_attrs(op).items()))
    return op.row.name, attrs, tuple(v.type() for v in tensor_operands(op))


def _template(program: Program, op: Operation) -> Program | None:
    """The operator alone, as a program of groups and of what the library computes; None if it should stay."""
    row = op.row
    assert row is not None
    found = Program()
    for c in program.constraints:
        found.constraints.add(c)
    build = Builder(found.global_block())
    inputs = [build.data(f"x{i}", v.shape, v.dtype) for i, v in enumerate(tensor_operands(op))]
    with found.constraints.collect():
        for i, result in enumerate(build.call(row, inputs, op_attrs(op))):
            build.output(f"y{i}", result)
        prepare(found)
        build_groups(found)
    groups = [each for each in found.global_block() if each.name() == FUSION]
    if not groups or any(_could_be_in_a_loop(each) for each in found.global_block()):
        return None
    try:
        for group in groups:
            function_of(group)
    except (CannotLower, ScheduleError):
        return None
    return found


def _could_be_in_a_loop(op: Operation) -> bool:
    row: Row | None = op.row
    if row is None or row.view or IrTrait.CONSTANT in op.info.traits:
        return False
    return not isinstance(compute_of(row), Indexed | None)


def _put(template: Program, op: Operation) -> None:
    """A copy of what is in the template, in the place of `op`."""
    block = op.parent
    assert block is not None
    mapping, facts = IrMapping(), inherited(op)
    operands = iter(tensor_operands(op))
    for each in template.global_block():
        if each.name() == "pd_op.data":
            mapping.add(each.result(0), next(operands))
        elif each.name() not in FRAME:
            copy = clone_operation(each, mapping)
            copy.attributes.update(facts)
            block.insert_before(op, copy)
    made = [mapping.look_up(v) for each in template.global_block() if each.name() == "builtin.shadow_output"
            for v in each.operands_source()]
    for old, new in zip(result_values(op), made, strict=True):
        new.stop_gradient = old.stop_gradient
        old.replace_all_uses_with(new)
    op.erase()
