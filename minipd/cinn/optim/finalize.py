"""From block form to flat form: `finalize`, as a list of named passes, each of which keeps what the function means.

    remove_schedule_block       iter vars become loop variables
    unroll_loops                loops to be unrolled are written out
    simplify_indices            quotients and remainders of loop variables, where they are known
    if_fusion                   conditions in front of the loops that they don't depend on
    entail_loop_condition       conditions as bounds of loops
    forward_stores              what one iteration stores and reads again is a scalar in between
    update_buffer_axis          arrays as small, and as far inside, as they can be
    buffers_to_scalars          those of one element are scalars
    reduce_in_registers         elements that a loop adds to are scalars meanwhile
    lower_reduce                other reductions as loads and stores
    pick                        a sum with one term that is not 0 is that term
    fuse_loops                  neighbouring loops that read the same elements are one
    merge                       one name for one value
    rearrange_load_instruction  a statement for each element that is loaded
    share                       names for what is computed more than once
    eliminate_invariant_loop    what no iteration changes is computed before the loop
    short_names                 i and j

with `simplify` in between.  Where Paddle has such a pass, it has Paddle's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from minipd.cinn.ir.ast import Function
from minipd.cinn.ir.simplify import simplify
from minipd.cinn.optim.conditions import entail_loop_condition, if_fusion
from minipd.cinn.optim.forward_stores import forward_stores
from minipd.cinn.optim.fuse_loops import fuse_loops
from minipd.cinn.optim.hoist import eliminate_invariant_loop
from minipd.cinn.optim.merge import merge, rearrange_load_instruction
from minipd.cinn.optim.pick import pick
from minipd.cinn.optim.remove_schedule_block import remove_schedule_block
from minipd.cinn.optim.scalars import buffers_to_scalars, lower_reduce, reduce_in_registers
from minipd.cinn.optim.share import share
from minipd.cinn.optim.short_names import short_names
from minipd.cinn.optim.simplify_indices import simplify_indices
from minipd.cinn.optim.unroll_loops import unroll_loops
from minipd.cinn.optim.update_buffer_axis import update_buffer_axis

__all__ = ["PASSES", "finalize", "steps"]

Pass = Callable[[Function], Function]

#: in this order
PASSES: tuple[Pass, ...] = (
    remove_schedule_block, unroll_loops, simplify_indices, if_fusion, entail_loop_condition, merge, forward_stores,
    simplify, update_buffer_axis, buffers_to_scalars, reduce_in_registers, lower_reduce, pick, fuse_loops,
    merge, rearrange_load_instruction, share, eliminate_invariant_loop, simplify, short_names)


def finalize(function: Function) -> Function:
    """The flat form of a function in block form.

    >>> from minipd.cinn.ir.ast import Dim, For, IterVar, Load, Param, ScheduleBlock, Store, Var
    >>> import numpy as np
    >>> f32, n, vi = np.dtype("float32"), Dim("x", 0), Var("vi")
    >>> copy = ScheduleBlock("y", (IterVar("vi", n),), (Var("i_y"),), Store("y", (vi,), Load("x", (vi,), f32)))
    >>> from minipd.cinn.ir.printer import text
    >>> print(text(finalize(Function("copy", (Param("x", f32, 1), Param("y", f32, 1, True)), For("i_y", n, copy)))))
    function copy (x: f32[:], y: f32[:] out)
    {
      serial for (i, 0, x.shape[0])
      {
        v = x[i]
        y[i] = v
      }
    }
    <BLANKLINE>
    """
    *_, (_, final) = steps(function)
    return final


def steps(function: Function) -> Iterator[tuple[str, Function]]:
    """Each pass that changes something: its name, and the function after it.  The last function is in flat form."""
    for optimize in PASSES:
        new = optimize(function)
        if new != function or optimize is PASSES[-1]:
            function = new
            yield optimize.__name__, function
