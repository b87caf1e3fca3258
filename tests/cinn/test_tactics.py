"""Tactics: which nests and passes a group gets, and that every step of every schedule keeps what the function means."""


from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import minipd as paddle
from minipd.cinn.ir.ast import For
from minipd.cinn.ir.printer import text
from minipd.cinn.ir.verify import verify
from minipd.cinn.ir.walk import statements
from minipd.cinn.lower import CannotLower
from minipd.cinn.optim import finalize
from minipd.cinn.schedule import (
    BaseInfo,
    BucketInfo,
    ScheduleConfig,
    ScheduleError,
    Trace,
    arrangement_of,
    config_for,
    schedule,
)
from minipd.cinn.schedule.config import TACTICS
from minipd.cinn.schedule.tactics.arrangement import Kept
from minipd.framework.dim import symbol
from tests.cinn.groups import BF16, group, run
from tests.cinn.test_lower import F32, F64, I32, KINDS, normal, random_groups, rms_norm, rms_norm_gradient, softmax

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
def test_a_schedule_keeps_the_meaning(fn, shapes, config):
    """At the end, and where every rule fires after every second step."""
    g = group(fn, *((s, F32) for s in shapes))
    arrays = [normal(*s, seed=i) for i, s in enumerate(shapes)]
    lowered = g.lower(any_rows=config is not EAGER)
    made = schedule(lowered, config)
    for n in range(1, len(made.trace.steps), 2) if config is EAGER else ():
        function = Trace(made.trace.steps[:n]).replay(lowered).function
        verify(function)
        same(g, lowered, function, *arrays, rtol=2e-5)
    verify(made.function)
    same(g, lowered, made.function, *arrays, rtol=2e-5)
    same(g, lowered, finalize(made.function), *arrays, rtol=2e-5)


@pytest.mark.parametrize("dtype, rtol", [(F32, 2e-4), (F64, 1e-10), (I32, 0), (BF16, 2 ** -7)])
@settings(max_examples=40)
@given(data=st.data())
def test_random_groups(dtype, rtol, data):
    fn, arrays = data.draw(random_groups(dtype))
    g = group(fn, *((a.shape, dtype) for a in arrays))
    try:
        lowered = g.lower()
    except CannotLower:
        assume(False)
    for config in CONFIGS:
        function = schedule(lowered, config).function
        same(g, lowered, function, *arrays, rtol=rtol, atol=rtol)
        same(g, lowered, finalize(function), *arrays, rtol=rtol, atol=rtol)


def test_a_schedule_for_symbolic_sizes_suits_all_of_them():
    s, t = symbol("S0"), symbol("S1")
    g = group(rms_norm_gradient, ((s, t, 5), F32), ((5,), F32), ((s, t, 5), F32))
    for config in CONFIGS:
        function = finalize(schedule(g.lower(), config).function)
        assert "parallel" in kinds_of(function)
        for rows in ((2, 3), (7, 3), (1, 1), (0, 3)):
            arrays = normal(*rows, 5), normal(5, seed=2), normal(*rows, 5, seed=1)
            same(g, g.lower(), function, *arrays, rtol=1e-4)


# ------------------------------------------------------------------------------------------------- hard cases
@pytest.mark.parametrize("n", [1, 31, 32, 33, 257, 300, 511, 512, 768, 1025])
@pytest.mark.parametrize("config", CONFIGS[:2])
def test_c2_partial_results_that_nothing_went_into_are_the_identity(n, config):
    """Paddle PR 76619: y = x / sum(x) for inner sizes around the block."""
    g = group(lambda x: (x / x.sum(), x - x.max()), ((1, n), F32))
    x = -np.abs(normal(1, n)) - 1                          # a 0 instead of -inf would be the maximum
    outputs = run(finalize(schedule(g.lower(), config).function), g, x)
    np.testing.assert_allclose(outputs[0], x / x.sum(dtype=F64), rtol=1e-5)
    np.testing.assert_array_equal(outputs[1], x - x.max())


def compiled(g, config=None, **options):
    return finalize(schedule(g.lower(**options), config).function)


@pytest.mark.parametrize("shape", [(8, 4), (1, 1), (2, 5001)])
def test_c4_small_and_large_reductions(shape):
    """Paddle PRs 63411 and 63689.  The bound: 2^-23 sqrt(n), relative to the sum of the absolute values."""
    x = normal(*shape)
    for fn, axis in ((lambda x: x.sum(-1), -1), (lambda x: x.sum(), None)):
        g = group(fn, (shape, F32))
        y, = run(compiled(g), g, x)
        n = x.size if axis is None else shape[axis]
        bound = 2 ** -23 * n ** 0.5 * np.abs(x).sum(axis, dtype=F64)
        assert (np.abs(y - x.sum(axis, dtype=F64)) <= bound).all()


def test_the_error_of_a_long_sum_of_equal_numbers_is_that_of_its_blocks():
    """At most 2^-24 (1024 + n / 1024) of the sum, which is 2^-23 sqrt(n) for n = 2^20."""
    x = np.full(2 ** 14, 0.1, F32)
    g = group(lambda x: x.sum(), (x.shape, F32))
    exact = x.sum(dtype=F64)
    plain, = run(g.lower(), g, x)
    blocks, = run(compiled(g), g, x)
    assert abs(blocks - exact) / exact <= 2 ** -24 * (1024 + x.size / 1024)
    assert abs(blocks - exact) < abs(plain - exact) / 4


# ------------------------------------------------------------------------------------------------ what they choose
def test_the_number_of_chunks_is_part_of_the_function():
    """Parallel sums add up in the same order on any number of threads."""
    function = compiled(group(lambda x: x.sum(0), ((100, 3), F32)), replace(ScheduleConfig(), parallel_elements=0))
    chunks = [s for s in statements(function.body) if isinstance(s, For) and s.kind == "parallel"]
    assert chunks[0].extent.value == 15                 # of 7 rows


def test_few_long_rows_get_few_accumulators():
    """A sum over 8 rows in 16 chunks would write as much as it reads."""
    for rows, accumulators in ((8, 2), (100, 15)):
        function = compiled(group(lambda x: x.sum(0), ((rows, 4096), F32)))
        assert f"sum_0_rf := local f32[{accumulators}, 4096]" in text(function)
    assert "_rf" not in text(compiled(group(lambda x: x.sum(0), ((4, 8192), F32))))


def test_softmax_keeps_its_exponentials_in_its_output():
    """Two passes over the input and one exponential per element; in bfloat16 a local float32 row."""
    once = compiled(group(softmax, ((4, 7), F32)))
    assert text(once).count("exp(") == 1 and "local" not in text(once)
    narrow = compiled(group(softmax, ((4, 7), BF16)))
    assert text(narrow).count("exp(") == 1 and "exp_2_kept := local f32[7]" in text(narrow)


def test_a_value_of_three_passes_is_kept_once():
    """The gradient of softmax: exponentials in one row, for both passes behind."""
    def gradient(x, g):
        e = softmax(x) * g
        return e * (x - (e * e).sum(-1, keepdim=True)) / (e - e.sum(-1, keepdim=True)).max(-1, keepdim=True)
    g = group(gradient, ((3, 7), F32), ((3, 7), F32))
    function = compiled(g)
    assert text(function).count("exp(") == 1 and text(function).count("local") == 1
    same(g, g.lower(), function, normal(3, 7), normal(3, 7, seed=1), rtol=2e-5)


def test_nests_and_passes_of_an_arrangement():
    a = arrangement_of(group(rms_norm_gradient, ((4, 3, 5), F32), ((5,), F32), ((4, 3, 5), F32)).lower(),
                       ScheduleConfig())
    assert [(nest.rows, nest.passes) for nest in a.nests] == [
        (("i",), {"sum_1": 0, "sum_10": 1, "sum_17": 1, "y0": 2}), (("j",), {"y1": 0})]
    assert a.base_info == BaseInfo("SR", 12, 5, (2, 1))
    a = arrangement_of(group(softmax, ((4, 7), F32)).lower(), ScheduleConfig())
    assert a.kept == {"exp_2": Kept("output", "y0")}


def test_rows_are_what_is_not_reduced_wherever_it_stands():
    """Batch norm: c outside, n and h, w inside; softmax over the first axis: neighbours together."""
    norm = group(lambda x: x - x.sum([0, 2], keepdim=True), ((3, 5, 4), F32))
    assert [nest.rows for nest in arrangement_of(norm.lower(), ScheduleConfig()).nests] == [("j",)]
    first = schedule(group(lambda x: x - x.max(0, keepdim=True), ((3, 256), F32)).lower())
    assert "s.split('j_y0', [-1, 64])" in str(first.trace)
    assert kinds_of(finalize(first.function)).count("vector") == 3


# ----------------------------------------------------------------------------------------------------- overriding
def test_a_config_makes_choices_itself():
    g = group(softmax, ((5, 7), F32))
    lowered, x, base = g.lower(), normal(5, 7), ScheduleConfig(parallel_elements=0)
    again = schedule(lowered, replace(base, keep=(("exp_2", "again"),)))
    row = schedule(lowered, replace(base, keep=(("exp_2", "row"),)))
    serial = schedule(lowered, replace(base, without=("Bind", "Vectorize")))
    columns = schedule(lowered, replace(base, rows=("j",)))
    assert text(finalize(again.function)).count("exp(") == 2
    assert "exp_2_kept := local f32[7]" in text(finalize(row.function))
    assert set(kinds_of(serial.function)) == {"serial"} and "parallel" in kinds_of(schedule(lowered, base).function)
    assert columns.trace != schedule(lowered, base).trace
    for made in (again, row, serial, columns):
        out, = run(finalize(made.function), g, x)
        np.testing.assert_allclose(out, g.reference(x)[0], rtol=2e-5)
    with pytest.raises(ValueError, match="no tactic Bnid; there are AlignIterSpace"):
        ScheduleConfig(without=("Bnid",))
    with pytest.raises(ValueError, match="no place elsewhere"):
        ScheduleConfig(keep=(("exp_2", "elsewhere"),))


def test_a_trace_is_replayed_instead():
    lowered = group(softmax, ((4, 7), F32)).lower()
    made = schedule(lowered)
    again = schedule(lowered, trace=Trace.from_json(made.trace.to_json()))
    assert again.function == made.function and again.trace == made.trace and again.config is None
    with pytest.raises(ScheduleError, match="step 0 of the trace.*does not fit"):
        schedule(group(rms_norm, ((4, 7), F32), ((7,), F32)).lower(), trace=made.trace)


def test_configs_by_bucket():
    short, long = BucketInfo(row=(1, 1024)), BucketInfo(row=(1025, None))
    rules = {short: {"row_bytes": 0}, long: {"block": 256}}
    assert config_for(BaseInfo("SR", 4, 1024, (1, 0)), rules) == ScheduleConfig(row_bytes=0)
    assert config_for(BaseInfo("SR", None, 1025, (1, 0)), rules) == ScheduleConfig(block=256)
    assert config_for(BaseInfo("SR", None, None, (1, 0)), rules) == ScheduleConfig()
    lowered = group(softmax, ((4, 7), BF16)).lower()
    assert schedule(lowered, rules=rules).config == ScheduleConfig(row_bytes=0)
    assert ScheduleConfig.from_json(ScheduleConfig(rows=("i", "j"), without=("Tile",)).to_json()) == ScheduleConfig(
        rows=("i", "j"), without=("Tile",))


def test_tactics_say_which_steps_they_took():
    made = schedule(group(softmax, ((4, 7), F32)).lower())
    assert [name for name, _, _ in made.tactics] == list(TACTICS)
    steps = {name: [s.primitive for s in made.trace.steps[first:stop]] for name, first, stop in made.tactics}
    assert steps["ComputeInline"] == ["compute_inline"] * 2 and steps["ArrangeStorage"] == ["set_buffer"]
    assert sum(map(len, steps.values())) == len(made.trace.steps)
