"""The memory plan: nothing that lives at once overlaps, and little is wasted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minipd.executor.plan import Interval, Plan, check, make_plan

intervals = st.lists(st.builds(lambda start, length, size: Interval(start, start + length, size),
                               st.integers(0, 30), st.integers(0, 10), st.integers(0, 1000)), max_size=40)


@given(intervals)
def test_plans_are_right(intervals):
    plan = make_plan(intervals)
    check(plan, intervals)
    alive = [sum(-(-i.size // 64) * 64 for i in intervals if i.start <= at <= i.end) for at in range(50)]
    assert plan.bound == max(alive) <= plan.size <= sum(-(-i.size // 64) * 64 for i in intervals)


def test_nested_lifetimes_waste_nothing():
    plan = make_plan([Interval(i, 20 - i, 64 * (i + 1)) for i in range(10)])
    assert plan.size == plan.bound == 64 * 55


def test_gaps_are_reused_best_fit():
    """Two gaps are left when the small buffer comes; it takes the one that it fills."""
    a, b, c, d = Interval(0, 4, 128), Interval(0, 9, 640), Interval(0, 4, 64), Interval(0, 9, 576)
    plan = make_plan([a, b, c, d, Interval(5, 9, 64), Interval(5, 9, 128)])
    assert plan.size == plan.bound == 128 + 640 + 64 + 576


def test_check_finds_what_overlaps():
    with pytest.raises(ValueError, match="buffers 0 and 1 live at once and overlap, at 0 and 64"):
        check(Plan([0, 64], 256, 256), [Interval(0, 1, 128), Interval(1, 2, 128)])
    with pytest.raises(ValueError, match="buffer 0 of 128 bytes at 0 does not lie in an arena of 64"):
        check(Plan([0], 64, 64), [Interval(0, 1, 128)])
