"""What the lesson claims, and its examples do not show."""

import re
import runpy
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

import minipd as paddle
from minipd.cinn.compile import apply_cinn_pass, prepare
from minipd.cinn.frontend import build_groups, bytes_moved, run_group
from minipd.cinn.ir.interpreter import interpret
from minipd.cinn.lower import lower
from minipd.cinn.optim import finalize
from minipd.cinn.overwriting import overwritable
from minipd.cinn.schedule import ScheduleConfig, schedule
from minipd.executor import Executor, Scope
from minipd.ir.traced import trace
from minipd.nn import functional as F
from minipd.static import InputSpec

FOLDER = Path(__file__).parents[1]
RNG = np.random.default_rng(0)


def traced(f, *arrays):
    specs = [InputSpec(list(a.shape), str(a.dtype), f"x{i}") for i, a in enumerate(arrays)]
    return trace(f, *specs).program, {f"x{i}": a for i, a in enumerate(arrays)}


def compiled(f, *arrays):
    """The outputs of f's program, as kernels."""
    program, feed = traced(f, *arrays)
    apply_cinn_pass(program)
    out = Executor(program).run(feed, Scope())
    return [out[name] for name in sorted(out)]


def group_of(f, *arrays):
    """The only group of f's program."""
    program, _ = traced(f, *arrays)
    prepare(program)
    group, = build_groups(program)
    return group


def loops(lowered):
    return finalize(schedule(lowered).function)


# ------------------------------------------------------------------------------------ every level means the same
def norm(x, w):
    return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * w


def columns(x, w):
    return (x * w).sum(0)


def whole(x, w):
    return (x * x + w).sum()


@pytest.mark.parametrize("rows, size", [(1, 1), (3, 7), (4, 8), (5, 9)])
@pytest.mark.parametrize("f", [norm, columns, whole])
def test_group_loops_and_schedule_mean_the_same(f, rows, size):
    arrays = RNG.standard_normal((rows, size)), RNG.standard_normal(size)
    want = f(*map(paddle.to_tensor, arrays)).numpy()
    group = group_of(f, *arrays)
    operands = [arrays[int(v.get_defining_op().attrs()["name"][1:])] for v in group.operands_source()]
    np.testing.assert_allclose(run_group(group, operands)[0], want, rtol=1e-12)
    lowered = lower(group)
    small = ScheduleConfig(least_rows=1, chunks=2, flat_chunks=2, least_elements=2, parallel_elements=1, block=2,
                           block_from=2)
    blocks = schedule(lowered, small).function
    for function in (lowered, loops(lowered), blocks, finalize(blocks)):
        out = np.empty(want.shape)
        interpret(function, operands, [out])
        np.testing.assert_allclose(out, want, rtol=1e-12)
    np.testing.assert_allclose(compiled(f, *arrays)[0], want, rtol=1e-12)


def test_the_way_down_prints_a_section_for_each_step(tmp_path):
    code = re.search(r"```python\n(import minipd.*?)```", (FOLDER / "README.md").read_text(encoding="utf-8"), re.S)
    done = subprocess.run([sys.executable, "-c", code[1]], capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for word in ("forward_fusion", "graph_passes", "decompose", "group", "loops of", "source of"):
        assert word in done.stdout


# ------------------------------------------------------------------------------------------------------ numbers
def test_a_softmax_of_large_numbers_and_a_loss_of_small_ones():
    x = np.array([[1000.0, 1001.0], [-1000.0, -1001.0]])
    p = 1 / (1 + np.exp(1.0))
    np.testing.assert_allclose(compiled(F.softmax, x)[0], [[p, 1 - p], [1 - p, p]], rtol=1e-12)
    logits, label = np.array([[0.0, 800.0]]), np.array([0])
    np.testing.assert_allclose(compiled(lambda x, y: F.cross_entropy(x, y), logits, label)[0], 800.0, rtol=1e-12)


def test_nan_and_infinity_mean_in_a_kernel_what_they_mean_in_numpy():
    x = np.array([[1.0, np.nan, 2.0], [np.inf, 1.0, 0.0], [-np.inf, 0.0, 0.0]])
    top, masked = compiled(lambda x: ((x * 1.0).max(-1), (x - 1.0).exp()), x)
    np.testing.assert_array_equal(top, [np.nan, np.inf, 0.0])
    np.testing.assert_allclose(masked, np.exp(x - 1.0), rtol=1e-12)
    np.testing.assert_array_equal(compiled(lambda x: (x * 1.0).rsqrt() + 0.0, np.array([0.0, np.inf, 4.0]))[0],
                                  [np.inf, 0.0, 0.5])


def test_a_reshape_between_a_reduction_and_a_broadcast():
    """CINN PR #1489."""
    def f(x):
        s = paddle.expand(x.sum(1, keepdim=True), [2, 3])
        return paddle.expand(s.reshape([3, 2]), [4, 3, 2]) * 1.0
    out, = compiled(f, np.array([[0.0, 1, 2], [3, 4, 5]]))
    assert out[0].tolist() == [[3, 3], [3, 12], [12, 12]]


@pytest.mark.parametrize("size", [1, 31, 32, 33, 257, 1025])
def test_a_sum_over_everything_that_every_element_reads(size):
    """Paddle PR #76619."""
    x = np.abs(RNG.standard_normal((1, size))) + 0.1
    np.testing.assert_allclose(compiled(lambda x: x * 2.0 / (x * 2.0).sum(), x)[0], x / x.sum(), rtol=1e-12)


# ------------------------------------------------------------------------------------------- groups and schedules
def test_a_group_that_moves_no_fewer_bytes_is_none():
    program, _ = traced(lambda x, y: x + y, np.ones((4, 4)), np.ones((4, 4)))
    before = bytes_moved(program)
    assert build_groups(program) == [] and bytes_moved(program) == before == 3 * 4 * 4 * 8


def test_an_exponential_is_kept_only_if_that_is_worth_it():
    function = lower(group_of(F.softmax, np.ones((4, 8), np.float32)))
    assert "set_buffer" in str(schedule(function).trace)
    assert "set_buffer" not in str(schedule(function, ScheduleConfig(keep_cost=100)).trace)


def test_a_softmax_may_be_written_over_its_input_and_a_weight_may_not():
    assert overwritable(loops(lower(group_of(F.softmax, np.ones((4, 8)))))) == {0: (0,)}
    assert overwritable(loops(lower(group_of(norm, np.ones((8, 8)), np.ones(8))))) == {0: (0,)}


# ---------------------------------------------------------------------------------------------------- pictures
def test_the_pictures_are_what_the_script_draws():
    for name, picture in runpy.run_path(str(FOLDER / "img" / "draw.py"))["pictures"]().items():
        drawn = (FOLDER / "img" / name).read_text(encoding="utf-8")
        ElementTree.fromstring(drawn)
        drawn = re.sub("<style>.*?</style>\n", "", drawn, flags=re.S)      # the look may change
        assert drawn == picture.inline(), f"{name} is old: python chapters/04_compiler/img/draw.py"


# ------------------------------------------------------------------------------------------------------- figures
def test_the_roofline_is_that_of_the_benchmarks():
    """The lesson says about 10 ms and 13 GB/s, and 115 GFLOP/s."""
    figures = (FOLDER.parents[1] / "benchmarks" / "README.md").read_text(encoding="utf-8")
    assert "115 GFLOP/s" in re.sub(r"\s+", " ", figures)
    milliseconds = float(re.search(r"\| RMSNorm 4096x4096, forward +\| +([\d.]+)", figures)[1])
    speed = 2 * 4096 * 4096 * 4 / (milliseconds / 1e3) / 1e9
    assert 13 / 1.6 < speed < 13 * 1.6, f"{speed:.1f} GB/s: say so in README.md and in img/draw.py"
