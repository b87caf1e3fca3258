"""The values of the members of a group, combined: in their order, in enough digits, without touching them."""

import ml_dtypes
import numpy as np

from minipd.dist.comm.reduction import fold
from minipd.dist.comm.sim import World
from tools.course.checking import check

f16, f32 = np.float16, np.float32


def arrays(*values, dtype="float64"):
    return [np.array(v, dtype) for v in values]


def test_a_sum():
    check([111.0, 222.0], lambda: fold(arrays([1, 2], [10, 20], [100, 200]), "sum"),
          "fold([[1, 2], [10, 20], [100, 200]], 'sum')")


def test_other_reductions():
    parts = [[3, -1], [2, 5]]
    for op, expected in (("max", [3.0, 5.0]), ("min", [2.0, -1.0]), ("prod", [6.0, -5.0])):
        check(expected, lambda op=op: fold(arrays(*parts), op), f"fold({parts}, {op!r})")


def test_the_members_keep_their_values():
    values = arrays([1, 2], [10, 20])
    fold(values, "sum")
    check([[1.0, 2.0], [10.0, 20.0]], values, "the values after fold([[1, 2], [10, 20]], 'sum')")


def test_the_result_is_nobodys_memory():
    for dtype in ("float16", "float64"):
        values = arrays([1.0], [0.0], dtype=dtype)
        fold(values, "sum")[...] = 99.0
        check([[1.0], [0.0]], values, f"the {dtype} values 1 and 0, after their sum was overwritten with 99")


def test_the_dtype_stays():
    for dtype in ("float16", "float32", "float64", "int32", "int64"):
        got = fold(arrays([1, 2], [3, 4], dtype=dtype), "sum")
        check((dtype, [4, 6]), (str(got.dtype), got.tolist()), f"two {dtype} arrays, [1, 2] and [3, 4]: dtype and sum")


def test_numbers_without_dimensions():
    got = fold(arrays(1.0, 2.0), "sum")
    check(((), 3.0), (np.shape(got), float(got)), "the 0-D arrays 1 and 2: shape and sum")


def test_the_order_is_that_of_the_group():
    """float32 has 24 bits: next to 1e8 a 1 is lost."""
    for values, expected in (([1e8, 1, -1e8], 0.0), ([1e8, -1e8, 1], 1.0), ([1, 1e8, -1e8], 0.0)):
        check(expected, lambda values=values: float(fold(arrays(*values, dtype=f32), "sum")),
              f"float32 {values}, added from the left")
    values = [1e8, 1.0, 1.0, -1e8]
    check(0.0, lambda: float(fold(arrays(*values, dtype=f32), "sum")), f"float32 {values}, added from the left")


def test_to_the_bit():
    random = np.random.default_rng(5)
    for n in (2, 3, 4, 5, 8) * 20:
        values = [(random.normal(size=2) * 10.0 ** random.integers(-4, 4)).astype(f32) for _ in range(n)]
        total = values[0]
        for x in values[1:]:
            total = total + x
        check(total, lambda values=values: fold(values, "sum"),
              f"float32 {[v.tolist() for v in values]}, added from the left, to the last bit", rtol=0)


def test_low_precision_is_rounded_once():
    """In float16, 1 + 2^-11 is 1 again, and so is that plus 2^-11; but 1 + 2 * 2^-11 is representable."""
    small = 2.0 ** -11
    values = [np.array([1.0], f16), np.array([small], f16), np.array([small], f16)]
    check(1 + 2 * small, lambda: float(fold(values, "sum")[0]), "float16 1 + 2**-11 + 2**-11")
    values = [np.ones(1, ml_dtypes.bfloat16)] + [np.full(1, 2.0 ** -8, ml_dtypes.bfloat16)] * 16
    check(1.0625, lambda: float(fold(values, "sum")[0]), "bfloat16 1 and sixteen times 2**-8")


def test_wide_numbers_stay_wide():
    """float32 has 24 bits, which would do for neither."""
    check(1 + 2.0 ** -40, lambda: float(fold(arrays(1.0, 2.0 ** -40), "sum")), "float64 1 + 2**-40", rtol=0)
    check(2 ** 53 + 1, lambda: int(fold(arrays(2 ** 53, 1, dtype="int64"), "sum")), "int64 2**53 + 1")


def test_nan_is_not_swallowed():
    for op in ("max", "min"):
        check(True, lambda op=op: bool(np.isnan(fold(arrays([1.0], [np.nan], [2.0]), op)[0])),
              f"whether fold([[1], [nan], [2]], {op!r}) is nan")


def test_all_ranks_get_the_same_bits():
    def step(comm):
        mine = np.random.default_rng(comm.rank).normal(size=100).astype(f32)
        return comm.all_reduce(mine, (0, 1, 2)).tobytes()
    results = World(3).run(step)
    check(1, len(set(results)), "how many different results three ranks have after an all_reduce")


def test_it_writes_where_it_is_told():
    for dtype in ("float16", "float64"):
        values, out = arrays([1, 2], [10, 20], [100, 200], dtype=dtype), np.zeros(2, dtype)
        got = fold(values, "sum", out=out)
        check([111.0, 222.0], out, f"out, after fold([[1, 2], [10, 20], [100, 200]], 'sum', out=out) of {dtype}")
        check(True, got is out, f"whether the result of fold(..., out=out) of {dtype} is out")
