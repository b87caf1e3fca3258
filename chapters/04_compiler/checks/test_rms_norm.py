"""RMSNorm in small operators: right, and one kernel that reads x once and writes y once."""

import numpy as np

from minipd.cinn.compile import prepare
from minipd.cinn.frontend import build_groups, bytes_moved
from minipd.decomposition import decompose
from minipd.executor import Executor, Scope
from minipd.ir.traced import trace
from minipd.ops.norm import RmsNorm
from minipd.static import InputSpec
from tools.course.checking import check


def program_of(x, w, eps, dtype="float64"):
    specs = [InputSpec(list(shape), dtype, name) for name, shape in (("x", x), ("w", w))]
    return trace(lambda x, w: RmsNorm(x, w, epsilon=eps), *specs).program


def rms_norm(x, w, eps=1e-5):
    """By the rule: the program, decomposed and run."""
    x, w = np.asarray(x, np.float64), np.asarray(w, np.float64)
    program = program_of(x.shape, w.shape, eps)
    decompose(program, [])
    return Executor(program).run({"x": x, "w": w}, Scope())["output_0"]


def by_hand(x, w, eps):
    """Row by row, with Python's own sums."""
    x, w = np.asarray(x, np.float64), np.asarray(w, np.float64)
    rows = x.reshape(-1, w.size)
    y = [[a * s / (sum(b * b for b in row) / len(row) + eps) ** 0.5 for a, s in zip(row, w.ravel(), strict=True)]
         for row in rows.tolist()]
    return np.array(y).reshape(x.shape)


def same(x, w, eps, on):
    check(by_hand(x, w, eps), lambda: rms_norm(x, w, eps), on)


def test_two_numbers():
    """3 and 4: the mean of the squares is 12.5."""
    check([[3 / 12.5 ** 0.5, 4 / 12.5 ** 0.5]], lambda: rms_norm([[3, 4]], [1, 1], 0.0),
          "x = [[3, 4]], scale = [1, 1], epsilon = 0")


def test_a_scale_for_each_column():
    same([[3, 4]], [10, 100], 0.0, "x = [[3, 4]], scale = [10, 100], epsilon = 0")


def test_each_row_by_itself():
    same([[3, 4], [30, 40]], [1, 1], 0.0, "x = [[3, 4], [30, 40]], scale = [1, 1], epsilon = 0")


def test_epsilon():
    """0.25 + 0.75 is 1, so nothing changes."""
    check([[0.5, 0.5]], lambda: rms_norm([[0.5, 0.5]], [1, 1], 0.75),
          "x = [[0.5, 0.5]], scale = [1, 1], epsilon = 0.75")


def test_a_row_of_zeros():
    same([[0, 0], [1, 2]], [1, 1], 1e-5, "x = [[0, 0], [1, 2]], scale = [1, 1], epsilon = 1e-5")


def test_the_mean_stays():
    """No mean is taken away: that is what makes it an RMSNorm."""
    same([[100.0, 101.0]], [1, 1], 1e-5, "x = [[100, 101]], scale = [1, 1], epsilon = 1e-5")


def test_a_scale_of_two_dimensions():
    x = np.arange(12.0).reshape(2, 2, 3)
    same(x, np.ones((2, 3)), 1e-5, "x = arange(12) as [2, 2, 3], scale = ones([2, 3]): the mean is over six numbers")


def test_random():
    rng = np.random.default_rng(0)
    for shape, w in (((1, 1), (1,)), ((5, 7), (7,)), ((2, 3, 9), (9,)), ((2, 3, 4), (3, 4))):
        same(rng.standard_normal(shape), rng.standard_normal(w), 1e-3, f"random x of shape {shape}, scale of {w}")


def target(rows, columns):
    """(kernels, bytes) of an RMSNorm of float32."""
    program = program_of((rows, columns), (columns,), 1e-5, "float32")
    prepare(program)
    left = [op.name() for op in program.walk() if op.name().startswith("pd_op.") and op.name().endswith("matmul")]
    groups = build_groups(program)
    return {"kernels launched": len(groups) + len(left), "bytes moved": bytes_moved(program)}


def test_one_kernel_and_33_point_6_megabytes():
    """x and y have 16,777,216 bytes each, the scale 8,192."""
    check({"kernels launched": 1, "bytes moved": 33_562_624}, lambda: target(2048, 2048),
          "x: f32[2048, 2048], with the scale f32[2048]")
