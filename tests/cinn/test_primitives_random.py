"""Every primitive on random functions: it keeps what they mean, or refuses."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minipd.cinn.ir.printer import text
from minipd.cinn.ir.verify import verify
from minipd.cinn.ir.walk import loops
from minipd.cinn.schedule.errors import ScheduleError
from minipd.cinn.schedule.ir_schedule import PRIMITIVES, IRSchedule
from minipd.cinn.schedule.trace import Trace
from tests.cinn.block_functions import WEIGHTS, RandomFunction, arguments

done = Counter()


def check(data, steps):
    f = RandomFunction(data.draw)
    verify(f.function)
    s = IRSchedule(f.function)
    names = [p for p, weight in WEIGHTS.items() if p in PRIMITIVES for _ in range(weight)]
    for _ in range(steps):
        primitive = data.draw(st.sampled_from(names))
        args = arguments(data.draw, s, primitive)
        if args is None:
            continue
        before = s.function
        try:
            s.apply(primitive, *args)
        except ScheduleError as error:
            assert str(error).startswith(primitive)
            assert s.function is before
            continue
        done[primitive] += 1
        told = f"{text(f.function)}\n{s.trace}\n{text(s.function)}"
        try:
            verify(s.function)
            assert not any(loops(x.body) for x in loops(s.function.body) if x.kind == "vector")
            got = f.run(s.function, shuffle=len(s.trace.steps))
        except Exception as error:
            raise AssertionError(f"{error}\n{told}") from error
        for a, b in zip(got, f.want, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=told)
    again = Trace.from_json(s.trace.to_json()).replay(f.function)
    assert again.function == s.function and again.trace == s.trace


@given(data=st.data())
@settings(max_examples=60)
def test_primitives_keep_what_functions_mean(data):
    check(data, 12)


@pytest.mark.long
@given(data=st.data())
@settings(max_examples=1500)
def test_primitives_keep_what_many_functions_mean(data):
    check(data, 20)
