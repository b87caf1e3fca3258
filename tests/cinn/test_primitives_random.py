"""Every primitive on random functions: it keeps what they mean, or refuses."""

import random
from collections import Counter

import numpy as np
import pytest

from minipd.cinn.ir.printer import text
from minipd.cinn.ir.verify import verify
from minipd.cinn.ir.walk import loops
from minipd.cinn.schedule.errors import ScheduleError
from minipd.cinn.schedule.ir_schedule import PRIMITIVES, IRSchedule
from minipd.cinn.schedule.trace import Trace
from tests.cinn.block_functions import WEIGHTS, RandomFunction, arguments


def check(seed, steps):
    """How often each primitive has changed something, in `steps` attempts on the random function of that seed."""
    rng = random.Random(seed)
    f = RandomFunction(rng)
    verify(f.function)
    s = IRSchedule(f.function)
    done = Counter()
    for _ in range(steps):
        primitive, = rng.choices(list(WEIGHTS), WEIGHTS.values())
        args = arguments(rng, s, primitive)
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
        told = f"seed {seed}\n{s.trace}"
        try:
            verify(s.function)
            assert not any(loops(x.body) for x in loops(s.function.body) if x.kind == "vector")
            got = f.run(s.function, shuffle=seed)
        except Exception as error:
            raise AssertionError(f"{error}\n{text(f.function)}\n{told}\n{text(s.function)}") from error
        for a, b in zip(got, f.want, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=told)
    again = Trace.from_json(s.trace.to_json()).replay(f.function)
    assert again.function == s.function and again.trace == s.trace
    return done


def test_primitives_keep_what_functions_mean():
    done = sum((check(seed, 16) for seed in range(100)), Counter())
    assert done.keys() == WEIGHTS.keys() <= PRIMITIVES.keys()


@pytest.mark.long
@pytest.mark.parametrize("part", range(8))
def test_primitives_keep_what_many_functions_mean(part):
    for seed in range(1000 + part, 5000, 8):
        check(seed, 24)
