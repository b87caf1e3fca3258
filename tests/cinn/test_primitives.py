"""Primitives that move a block into another nest, copy buffers, and mark: same meaning, or ScheduleError."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minipd as paddle
from minipd.cinn.ir.ast import Alloc
from minipd.cinn.ir.printer import text
from minipd.cinn.ir.verify import verify
from minipd.cinn.ir.walk import blocks, loops, statements
from minipd.cinn.optim import finalize
from minipd.cinn.schedule.errors import ScheduleError
from minipd.cinn.schedule.ir_schedule import IRSchedule
from minipd.cinn.schedule.trace import Trace
from tests.cinn.groups import group, run
from tests.cinn.test_lower import random_groups, rms_norm_gradient, softmax

F32, I64 = np.dtype("f4"), np.dtype("i8")


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(F32)


class Case:
    """A group in block form, and arrays to compare it with library kernels after each primitive."""

    def __init__(self, fn, *arrays):
        self.group = group(fn, *((a.shape, a.dtype) for a in arrays))
        self.arrays = arrays
        self.expected = self.group.reference(*arrays)
        self.lowered = self.group.lower()
        self.s = IRSchedule(self.lowered)

    def check(self, rtol=2e-5, atol=1e-5):
        verify(self.s.function)
        for f in (self.s.function, finalize(self.s.function)):
            for got, want in zip(run(f, self.group, *self.arrays), self.expected, strict=True):
                np.testing.assert_allclose(got.astype("f8"), want.astype("f8"), rtol=rtol, atol=atol)
        return self.s.function

    def check_trace(self):
        assert Trace.from_json(self.s.trace.to_json()).replay(self.lowered).function == self.s.function


# ----------------------------------------------------------------------------------------------------- compute_at
def test_compute_at_computes_a_row_where_it_is_read():
    """exp of a row in front of its sum: over all of j, as both the sum and the quotient read it."""
    case = Case(softmax, normal(3, 5))
    s = case.s
    s.compute_at("subtract_1", "i_exp_2")
    assert s.get_loops("subtract_1") == ["i_exp_2", "j_subtract_1_at"]
    case.check()
    s.compute_at("max_0", "i_exp_2")
    with pytest.raises(ScheduleError, match="subtract_1 reads max_0 too, outside of j_exp_2"):
        s.compute_at("max_0__reduce_init", "j_exp_2")
    case.check_trace()


def test_compute_at_an_inner_loop_leaves_one_element():
    case = Case(lambda x: paddle.tanh(x * 2) + 1, normal(3, 5))
    s = case.s
    s.compute_at("multiply_1", s.get_loops("tanh_2")[-1])
    assert s.get_loops("multiply_1") == s.get_loops("tanh_2")
    case.check()


def test_compute_at_a_tile_computes_a_tile():
    """i_0 * 4 + i_1 of 10: what lies behind the end is left out."""
    case = Case(lambda x: paddle.tanh(x * 2) + 1, normal(10, 3))
    s = case.s
    outer, _ = s.split(s.get_loops("tanh_2")[0], [-1, 8])
    s.compute_at("multiply_1", outer)
    assert [text(x.extent) for x in loops(s.function.body) if x.var.endswith("multiply_1_at")] == ["8"]
    case.check()
    case.check_trace()


def test_compute_at_keeps_a_shifted_read():
    case = Case(lambda x: (lambda t: t[1:] - t[:-1])(paddle.tanh(x)), normal(6, 2))
    s = case.s
    s.compute_at("tanh_0", s.get_loops(s.get_all_blocks()[1])[0])
    case.check()


def test_compute_at_refuses():
    s = Case(softmax, normal(3, 5)).s
    with pytest.raises(ScheduleError, match="divide_4 reads exp_2 too, outside of i_sum_3"):
        s.compute_at("exp_2", "i_sum_3")
    with pytest.raises(ScheduleError, match="y0 is an output"):
        s.compute_at("y0", "i_sum_3")
    with pytest.raises(ScheduleError, match="nothing in i_max_0 reads subtract_1|reads subtract_1 too"):
        s.compute_at("subtract_1", "i_max_0")
    with pytest.raises(ScheduleError, match="is in i_exp_2 already"):
        s.compute_at("exp_2", "i_exp_2")
    with pytest.raises(ScheduleError, match="no loop 'k'"):
        s.compute_at("exp_2", "k")


def test_a_reduction_is_not_run_twice_for_an_element():
    """In the loop over j, the sum of a row would be added up again for each element."""
    case = Case(lambda x: x / x.sum(-1, keepdim=True), normal(3, 5))
    s = case.s
    with pytest.raises(ScheduleError, match="would run more than once|after that any more"):
        s.compute_at("sum_0", s.get_loops("divide_1")[1])
    s.compute_at("sum_0", s.get_loops("divide_1")[0])
    s.compute_at("sum_0__reduce_init", s.get_loops("divide_1")[0])
    assert s.get_child_blocks(s.get_loops("divide_1")[0]) == ["sum_0__reduce_init", "sum_0", "divide_1"]
    case.check()


# --------------------------------------------------------------------------------------------- reverse_compute_at
def test_reverse_compute_at_goes_on_with_the_row():
    case = Case(softmax, normal(3, 5))
    s = case.s
    s.reverse_compute_at("exp_2", "i_subtract_1")
    assert s.get_loops("exp_2") == ["i_subtract_1", "j_exp_2_at"]
    case.check()
    s.reverse_compute_at("sum_3", "i_subtract_1")
    case.check()
    s.reverse_compute_at("divide_4", "i_subtract_1")
    s.reverse_compute_at("y0", "i_subtract_1")
    case.check()
    case.check_trace()


def test_reverse_compute_at_waits_for_the_last_element():
    case = Case(softmax, normal(3, 5))
    s = case.s
    with pytest.raises(ScheduleError, match="after that any more"):
        s.reverse_compute_at("divide_4", "i_exp_2")         # its sum is a nest behind
    with pytest.raises(ScheduleError, match="after that any more"):
        s.reverse_compute_at("subtract_1", "j_max_0")       # the largest of a row is known behind it
    with pytest.raises(ScheduleError, match="reads nothing that is written in"):
        s.reverse_compute_at("y0", "i_exp_2")
    case.check()


def test_reverse_compute_at_a_tile():
    case = Case(lambda x: (x * 2).sum(0), normal(10, 3))
    s = case.s
    outer, _ = s.split(s.get_loops("multiply_1")[0], [-1, 4])
    s.reverse_compute_at("sum_2", outer)
    case.check()


# ---------------------------------------------------------------------------------------------------------- copies
def test_cache_read_makes_a_copy_in_front():
    case = Case(softmax, normal(3, 5))
    s = case.s
    made = s.cache_read("max_0", "x0", "shared")
    assert made == "x0_shared" and s.get_all_blocks()[:2] == ["max_0__reduce_init", "x0_shared"]
    assert [a.memory for a in statements(s.function.body) if isinstance(a, Alloc) and a.buffer == made] == ["shared"]
    s.cache_read("sum_3", "exp_2", "local")
    case.check()
    case.check_trace()


def test_cache_write_refuses_what_is_written_in_part():
    """Who needs the first column only has only that computed: the copy would read what nobody wrote."""
    case = Case(lambda x: (paddle.exp(x)[:, :1] + 1.0) * 2.0, normal(4, 6))
    s = case.s
    s.compute_at("exp_0", s.get_loops("add_3")[0])
    s.compute_inline("add_3")
    with pytest.raises(ScheduleError, match="exp_0 may be written in part, and the copy would read all of it"):
        s.cache_write("exp_0", "local")
    case.check()


def test_cache_write_copies_behind_the_last_writer():
    case = Case(lambda x: x.sum(-1) * 2, normal(3, 5))
    s = case.s
    made = s.cache_write("sum_0", "local")
    assert made == "sum_0_local_copy"
    order = s.get_all_blocks()
    assert order.index("sum_0") < order.index(made) < order.index("y0")
    s.cache_write("y0", "global")
    case.check()
    case.check_trace()


def test_copies_refuse():
    s = Case(softmax, normal(3, 5)).s
    with pytest.raises(ScheduleError, match="max_0 does not read exp_2; it reads x0"):
        s.cache_read("max_0", "exp_2", "local")
    with pytest.raises(ScheduleError, match="expected one of local, shared, global"):
        s.cache_read("max_0", "x0", "registers")
    s.simple_compute_at("exp_2", "i_subtract_1")
    with pytest.raises(ScheduleError, match="subtract_1 writes to subtract_1 in the nest of exp_2"):
        s.cache_read("exp_2", "subtract_1", "local")


# ----------------------------------------------------------------------------------------------------------- marks
def test_annotations():
    case = Case(softmax, normal(3, 5))
    s = case.s
    s.annotate("exp_2", "origin", "softmax")
    s.annotate("i_exp_2", "pragma", 1)
    s.annotate("i_exp_2", "pragma", 2)
    assert s.get_block("exp_2").annotations == (("origin", "softmax"),)
    assert next(x for x in loops(s.function.body) if x.var == "i_exp_2").annotations == (("pragma", 2),)
    case.check()
    case.check_trace()
    s.unannotate("i_exp_2", "pragma")
    with pytest.raises(ScheduleError, match="j_exp_2 says nothing of 'pragma'; it has no annotations"):
        s.unannotate("j_exp_2", "pragma")
    with pytest.raises(ScheduleError, match="no block 'z'"):
        s.annotate("z", "a", 1)


def test_threads_meet_between_a_store_and_a_read():
    """Each thread reads what its neighbour wrote."""
    case = Case(lambda x: paddle.flip(paddle.tanh(x), [0]) + 1, normal(6))
    s = case.s
    with pytest.raises(ScheduleError, match="bound to a threadIdx axis"):
        s.sync_threads("tanh_0")
    first = s.get_loops("tanh_0")[0]
    s.set_buffer("tanh_0", "global")
    s.bind(first, "threadIdx.x")
    s.sync_threads("tanh_0")
    assert any(type(x).__name__ == "SyncThreads" for x in statements(s.function.body))
    verify(s.function)
    for got, want in zip(run(s.function, case.group, *case.arrays), case.expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)
    case.check_trace()


def test_what_is_there():
    s = Case(softmax, normal(3, 5)).s
    assert s.get_root_block()[:2] == ["i_max_0__reduce_init", "i_max_0"]
    assert s.get_child_blocks("i_exp_2") == ["exp_2"]


# ---------------------------------------------------------------------------------------------------------- random
STEPS = ["compute_at", "reverse_compute_at", "cache_read", "cache_write", "split", "fuse", "reorder",
         "simple_compute_at", "compute_inline", "reverse_compute_inline", "parallel", "rfactor"]


def step(s, what, a, b):
    """One primitive on some block and loop."""
    names, all_loops = s.get_all_blocks(), [x.var for x in loops(s.function.body)]
    if not all_loops:
        return
    block, loop = names[a % len(names)], all_loops[b % len(all_loops)]
    own = s.get_loops(block)
    match what:
        case "compute_at" | "reverse_compute_at" | "simple_compute_at":
            getattr(s, what)(block, loop)
        case "cache_read":
            read = sorted({"x0", *names})
            s.cache_read(block, read[b % len(read)], "local")
        case "cache_write":
            s.cache_write(block, "shared")
        case "split":
            s.split(loop, [-1, 2 + a % 2])
        case "fuse" if len(own) > 1:
            s.fuse(own[b % (len(own) - 1):][:2])
        case "reorder" if len(own) > 1:
            s.reorder([own[-1], own[0]])
        case "compute_inline" | "reverse_compute_inline":
            getattr(s, what)(block)
        case "parallel" | "rfactor":
            getattr(s, what)(loop)


def check_random(data, most):
    dtype = data.draw(st.sampled_from([I64, F32]))
    fn, arrays = data.draw(random_groups(dtype, sizes=(2, 3, 5, 1)))
    recipe = data.draw(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 60), st.integers(0, 60)),
                                min_size=2, max_size=most))
    with np.errstate(all="ignore"):
        case = Case(fn, *arrays)
    tolerance = 0 if dtype == I64 else 3e-4
    for what, a, b in recipe:
        before = case.s.function
        try:
            step(case.s, what, a, b)
        except ScheduleError:
            assert case.s.function == before
            continue
        case.check(tolerance, tolerance)
    case.check_trace()


@settings(max_examples=40)
@given(data=st.data())
def test_random_steps_keep_the_meaning(data):
    check_random(data, 8)


@pytest.mark.long
@settings(max_examples=1500)
@given(data=st.data())
def test_many_random_steps_keep_the_meaning(data):
    check_random(data, 14)


def test_a_gradient_is_scheduled_by_hand():
    """RMSNorm's gradient: rows gathered by reverse_compute_at, the column sum behind."""
    case = Case(rms_norm_gradient, normal(6, 5), normal(5, seed=1), normal(6, 5, seed=2))
    s = case.s
    s.reverse_compute_at("sum_1", "i_multiply_0")
    case.check(1e-4)
    assert {b.name for b in blocks(s.function.body)} == {b.name for b in blocks(case.lowered.body)}
