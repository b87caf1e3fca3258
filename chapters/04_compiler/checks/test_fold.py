"""A reduction is two blocks: one that starts, one that folds."""

import itertools

import numpy as np

from minipd.cinn.compile import prepare
from minipd.cinn.ir.ast import ScheduleBlock
from minipd.cinn.ir.interpreter import interpret
from minipd.cinn.ir.verify import verify
from minipd.cinn.ir.walk import statements
from minipd.cinn.lower import lower_group
from minipd.cinn.optim import finalize
from minipd.cinn.schedule import IRSchedule, schedule
from minipd.ir.traced import trace
from minipd.static import InputSpec
from tools.course.checking import check


def lowered(f, x):
    """The function, in block form, of f(x), whose operators are one group."""
    program = trace(f, InputSpec(list(x.shape), str(x.dtype), "x")).program
    prepare(program)
    ops = list(program.global_block())
    inner = [op for op in ops if op.name() not in ("pd_op.data", "builtin.shadow_output")]
    data = next(op for op in ops if op.name() == "pd_op.data").result(0)
    results = [op.operand_source(0) for op in ops if op.name() == "builtin.shadow_output"]
    return lower_group(inner, [data], results), results[0]


def value(f, x):
    function, result = lowered(f, x)
    verify(function)
    out = np.empty(result.shape, result.dtype)
    interpret(function, [x], [out])
    return out


def scheduled(f, x):
    """The same after the schedule and the last passes."""
    function, result = lowered(f, x)
    out = np.empty(result.shape, result.dtype)
    interpret(finalize(schedule(function).function), [x], [out])
    return out


def loops_around(f, x):
    """For each block of the reduction what its iter vars are, and how many loops are around it."""
    function, _ = lowered(f, x)
    s = IRSchedule(function)
    blocks = {b.name: b for b in statements(function.body) if isinstance(b, ScheduleBlock)}
    found = [name for name in blocks if name.endswith("__reduce_init")]
    start, = found
    name = start.removesuffix("__reduce_init")
    return {"the start": ("".join(v.kind for v in blocks[start].iter_vars), len(s.get_loops(start))),
            "the fold": ("".join(v.kind for v in blocks[name].iter_vars), len(s.get_loops(name)))}


def test_rows():
    x = np.array([[1.0, 2, 3], [4, 5, 6]])
    check([6.0, 15.0], lambda: value(lambda x: x.sum(1), x), "sum(1) of [[1, 2, 3], [4, 5, 6]]")


def test_its_loops():
    x = np.ones((2, 3))
    check({"the start": ("S", 1), "the fold": ("SR", 2)}, lambda: loops_around(lambda x: x.sum(1), x),
          "the kinds of iter vars, and the number of loops, for sum(1) of f64[2, 3]")
    check({"the start": ("S", 1), "the fold": ("RS", 2)}, lambda: loops_around(lambda x: x.sum(0), x),
          "the kinds of iter vars, and the number of loops, for sum(0) of f64[2, 3]")


def test_columns():
    x = np.array([[1.0, 2, 3], [4, 5, 6]])
    check([5.0, 7.0, 9.0], lambda: value(lambda x: x.sum(0), x), "sum(0) of [[1, 2, 3], [4, 5, 6]]")


def test_the_largest_of_negative_numbers():
    check([-1.0, -4.0], lambda: value(lambda x: x.max(1), np.array([[-1.0, -2], [-5, -4]])),
          "max(1) of [[-1, -2], [-5, -4]]")


def test_a_product():
    check([2.0, 12.0], lambda: value(lambda x: x.prod(1), np.array([[1.0, 2], [3, 4]])), "prod(1) of [[1, 2], [3, 4]]")


def same(want, name, axis, x):
    check(want, lambda: value(lambda x: getattr(x, name)(list(axis)), x),
          f"{name} of a random x: f64[2, 3, 4] over {axis}")


def test_everything():
    check(10.0, lambda: value(lambda x: x.sum(), np.array([[1.0, 2], [3, 4]])), "sum() of [[1, 2], [3, 4]]")


def test_all_of_them():
    """Over each set of axes of three, and each way of folding."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 3, 4))
    ways = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod}
    for name, n in itertools.product(ways, (1, 2, 3)):
        for axis in itertools.combinations(range(3), n):
            same(ways[name](x, axis=axis), name, axis, x)


def test_behind_a_reduction():
    x = np.array([[1.0, 3], [2, 2]])
    check(x / x.sum(1, keepdims=True), lambda: value(lambda x: x / x.sum(1, keepdim=True), x),
          "x / sum(1) of [[1, 3], [2, 2]]")


def test_schedules():
    x = np.random.default_rng(0).standard_normal((5, 7))
    for axis in (0, 1, None):
        check(x.sum(axis), lambda axis=axis: scheduled(lambda x: x.sum(axis), x),
              f"sum({axis}) of a random x: f64[5, 7], scheduled")
