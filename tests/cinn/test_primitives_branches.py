"""`compute_inline` of blocks with branches: joined tensors and written parts need no buffer."""

import numpy as np
import pytest

import minipd as paddle
from minipd.cinn.ir.ast import Alloc, IfThenElse
from minipd.cinn.ir.verify import verify
from minipd.cinn.ir.walk import blocks, statements
from minipd.cinn.optim import finalize
from minipd.cinn.schedule.errors import ScheduleError
from minipd.cinn.schedule.ir_schedule import IRSchedule
from tests.cinn.groups import group, run
from tests.cinn.test_lower_indexed import CASES, F32, counted, rope


def rope_gradient(x, cos, sin, g):
    x.stop_gradient = False
    return paddle.grad(rope(x, cos, sin), [x], g)[0]


def inlined(fn, shapes):
    """Everything inlined that can be: after each step the function means the same, in flat form too."""
    arrays = [counted(*s, start=n) for n, s in enumerate(shapes)]
    g = group(fn, *((s, F32) for s in shapes))
    s = IRSchedule(g.lower())
    expected = g.reference(*arrays)
    for block in s.get_all_blocks():
        try:
            s.compute_inline(block)
        except ScheduleError:
            continue
        verify(s.function)
        for got, want in zip(run(s.function, g, *arrays), expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5)
    flat = finalize(s.function)
    for got, want in zip(run(flat, g, *arrays), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)
    return s.function, flat


@pytest.mark.parametrize("case", CASES)
def test_inlining_keeps_the_meaning(case):
    inlined(*CASES[case])


@pytest.mark.parametrize("fn, shapes", [
    (rope, [(2, 3, 2, 8), (3, 1, 8), (3, 1, 8)]),
    (rope_gradient, [(2, 3, 2, 8), (3, 1, 8), (3, 1, 8), (2, 3, 2, 8)])])
def test_rope_is_one_block_and_two_loops_without_conditions(fn, shapes):
    function, flat = inlined(fn, shapes)
    assert [b.name for b in blocks(function.body)] == ["y0"]
    assert not any(isinstance(s, IfThenElse | Alloc) for s in statements(flat.body))


def test_a_condition_that_is_known_is_not_asked_again():
    """Two joined tensors that meet at one place: two arms, not four."""
    def fn(x, y):
        return paddle.concat([x, y], 0) * paddle.concat([y, x], 0)

    function, _ = inlined(fn, [(3, 2), (3, 2)])
    assert sum(isinstance(s, IfThenElse) for s in statements(function.body)) == 1


def test_readers_at_two_places_keep_the_buffer():
    def fn(x, y):
        both = paddle.concat([x, y], 0)
        return both + paddle.flip(both, [0])

    s = IRSchedule(group(fn, ((3, 2), F32), ((2, 2), F32)).lower())
    with pytest.raises(ScheduleError, match="to read concat_1 at one place"):
        s.compute_inline("concat_1")
