"""From a program to kernels: decompose, group, lower, build.

`build_cinn_pass` is the whole of it.  What cannot become a kernel stays what it was: a group that cannot be lowered or
built goes back into the program as library kernels, with one warning that names its operators.
"""

from __future__ import annotations

from minipd.cinn.compute.table import compute_of
from minipd.decomposition import DecomposePass
from minipd.framework.dim import same
from minipd.ir.dce import remove_dead_ops
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.schema import op_attrs

__all__ = ["prepare"]

#: rows that take a shape from another tensor, which would have to live for it, whatever `compute` says of them
SHAPES = ("expand_as", "full_like", "reduce_as")
#: rows whose parts would not fuse: they move halves of a tensor
WHOLE = ("fused_rotary_position_embedding",)
#: rows that need all of `axis` before they know any of their result; loops have that only along rows
ALONG_AXIS = {"softmax": 0, "cross_entropy_with_softmax": 0, "cross_entropy_with_softmax_grad": 1}


def prepare(program: Program) -> int:
    """Decompose what has no `compute` entry; returns how many operations have been replaced."""
    replaced = DecomposePass(wants_rule).run(program)
    remove_dead_ops(program)
    return replaced


def wants_rule(op: Operation) -> bool:
    """Whether the compiler wants an operation in parts: as a whole it cannot be in a group, but the parts can."""
    row = op.row
    assert row is not None
    if row.name in SHAPES:
        return True
    if compute_of(row) is not None or row.name in WHOLE:
        return False
    if row.name in ALONG_AXIS:
        after = op.operand_source(ALONG_AXIS[row.name]).shape[op_attrs(op)["axis"] + 1:]
        return all(same(d, 1) for d in after)
    if row.name == "take_along_axis":       # comparing with every position pays where the whole axis is read anyhow
        origin = op.attributes.get("comp_op_name")
        return origin is not None and origin.value == "pd_op.cross_entropy_with_softmax"
    return True
