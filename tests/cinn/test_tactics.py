"""Tactics: which nests and passes a group gets, and that every step of every schedule keeps what the function means."""


import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import minipd as paddle
from minipd.cinn.ir.ast import For
from minipd.cinn.ir.verify import verify
from minipd.cinn.ir.walk import statements
from minipd.cinn.lower import CannotLower
from minipd.cinn.optim import finalize
from minipd.cinn.schedule.config import ScheduleConfig
from minipd.cinn.schedule.scheduler import schedule
from minipd.cinn.schedule.trace import Trace
from tests.cinn.groups import BF16, group, run
from tests.cinn.test_lower import F32, F64, I32, KINDS, normal, random_groups

#: every rule fires, on sizes that the interpreter can take
EAGER = ScheduleConfig(row_bytes=1 << 20, keep_cost=1, chunks=3, least_rows=1, most_rows=2, flat_chunks=4,
                       least_elements=1, parallel_elements=0, block=2, block_from=2, tile=2)
NO_ROWS = ScheduleConfig(row_bytes=0, chunks=2, flat_chunks=2, least_elements=3, parallel_elements=0, block=3,
                         block_from=0, tile=3)
CONFIGS = [ScheduleConfig(), EAGER, NO_ROWS]

#: groups beyond one nest of rows
OTHERS = [
    (lambda x: (x.sum(1), x.sum(2)), [(2, 3, 4)]),
    (lambda x: x - x.max(0, keepdim=True), [(5, 4)]),
    (lambda x: x.sum(1), [(2, 3, 4)]),
    (lambda x: (x.sum(0) * x.sum(0)).sum(), [(3, 4)]),
    (lambda x: paddle.exp(x - x.max()) / paddle.exp(x - x.max()).sum(), [(3, 4)]),
    (lambda x, w: (x - x.sum([0, 2, 3], keepdim=True)) * w, [(3, 5, 2, 4), (1, 5, 1, 1)]),
    (lambda x, y: x.transpose([1, 0]) + y, [(3, 5), (5, 3)]),
    (lambda x: paddle.concat([-x[:, 3:], x[:, :3]], -1) * x, [(4, 6)]),
    (lambda x: paddle.concat([x, x.sum(-1, keepdim=True)], -1).sum(0), [(4, 6)]),
    (lambda x: (x.reshape([2, 3, 4]) - x.reshape([2, 3, 4]).sum([0, 2], keepdim=True)).reshape([2, 12]), [(2, 12)]),
    (lambda x: x + x.sum(1), [(3, 3)]),
]


def same(g, function, other, *arrays, rtol=1e-6, atol=1e-6):
    for a, b in zip(run(function, g, *arrays), run(other, g, *arrays), strict=True):
        np.testing.assert_allclose(b.astype(F64), a.astype(F64), rtol=rtol, atol=atol)


def kinds_of(function):
    return [s.kind for s in statements(function.body) if isinstance(s, For)]


@pytest.mark.parametrize("fn, shapes", [*(x[1:] for x in KINDS), *OTHERS])
@pytest.mark.parametrize("config", CONFIGS)
def test_a_schedule_keeps_the_meaning_after_every_step(fn, shapes, config):
    g = group(fn, *((s, F32) for s in shapes))
    arrays = [normal(*s, seed=i) for i, s in enumerate(shapes)]
    for lowered in (g.blocks(), g.blocks(any_rows=True)):
        made = schedule(lowered, config)
        for n in range(len(made.trace.steps) + 1):
            function = Trace(made.trace.steps[:n]).replay(lowered).function
            verify(function)
            same(g, lowered, function, *arrays, rtol=2e-5)
        assert function == made.function
        same(g, lowered, finalize(function), *arrays, rtol=2e-5)


@pytest.mark.parametrize("dtype, rtol", [(F32, 2e-4), (F64, 1e-10), (I32, 0), (BF16, 2 ** -7)])
@settings(max_examples=40)
@given(data=st.data())
def test_random_groups(dtype, rtol, data):
    fn, arrays = data.draw(random_groups(dtype))
    g = group(fn, *((a.shape, dtype) for a in arrays))
    try:
        lowered = g.blocks()
    except CannotLower:
        assume(False)
    for config in CONFIGS:
        function = schedule(lowered, config).function
        same(g, lowered, function, *arrays, rtol=rtol, atol=rtol)
        same(g, lowered, finalize(function), *arrays, rtol=rtol, atol=rtol)
