"""One element of a buffer: the interpreter of loops checks everything."""

import numpy as np

from minipd.cinn.ir.ast import INT64, Const, Dim, For, Function, Load, Param, Seq, Store, Var
from minipd.cinn.ir.build import binary
from minipd.cinn.ir.interpreter import LoopError, interpret
from tools.course.checking import check

F32, I = np.dtype("float32"), Var("i")
X = np.arange(6, dtype=F32).reshape(2, 3) + 10


def number(n):
    return Const(n, INT64)


def read(*index, array=X, buffer="x"):
    """x[index] as a Function reads it, or the name of the error."""
    body = Store("y", (), Load(buffer, tuple(number(n) for n in index), F32))
    function = Function("read", (Param("x", F32, array.ndim), Param("y", F32, 0, output=True)), body)
    y = np.empty((), F32)
    return _run(function, array, y)


def written(*index, shape=(2, 3)):
    """y[index] = 1, after all of y has been set to 0; all of y, or the name of the error."""
    loops = Store("y", tuple(Var(f"i{k}") for k in range(len(shape))), Const(0.0, F32))
    for k in reversed(range(len(shape))):
        loops = For(f"i{k}", number(shape[k]), loops)
    body = Seq((loops, Store("y", tuple(number(n) for n in index), Const(1.0, F32))))
    function = Function("write", (Param("x", F32, 2), Param("y", F32, len(shape), output=True)), body)
    return _run(function, X, np.empty(shape, F32))


def _run(function, x, y):
    try:
        interpret(function, [x], [y])
    except LoopError:
        return "LoopError"
    return y.tolist()


def test_inside():
    check(10.0, lambda: read(0, 0), "x[0, 0] of x = [[10, 11, 12], [13, 14, 15]]")
    check(15.0, lambda: read(1, 2), "x[1, 2] of x = [[10, 11, 12], [13, 14, 15]]")


def test_a_number():
    check(7.0, lambda: read(array=np.array(7, F32)), "x[()] of the number 7")


def test_one_too_far():
    check("LoopError", lambda: read(2, 0), "x[2, 0] of x with 2 rows")
    check("LoopError", lambda: read(0, 3), "x[0, 3] of x with 3 columns")


def test_negative():
    check("LoopError", lambda: read(-1, 0), "x[-1, 0]: numpy would take the last row")
    check("LoopError", lambda: read(0, -3), "x[0, -3]")


def test_too_few_and_too_many():
    check("LoopError", lambda: read(1), "x[1] of x with two axes: numpy would take a row")
    check("LoopError", lambda: read(), "x[()] of x with two axes")
    check("LoopError", lambda: read(1, 1, 0), "x[1, 1, 0] of x with two axes")


def test_no_such_buffer():
    check("LoopError", lambda: read(0, 0, buffer="z"), "z[0, 0], where there is no z")


def test_stores():
    check([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]], lambda: written(1, 1), "y[1, 1] = 1 in zeros of shape (2, 3)")
    check("LoopError", lambda: written(-1, 1), "y[-1, 1] = 1")
    check("LoopError", lambda: written(2, 0), "y[2, 0] = 1 in y of shape (2, 3)")


def test_computed_indices():
    """y[i] = x[1, n - 1 - i]."""
    index = binary("sub", binary("sub", Dim("x", 1), 1), I)
    body = For("i", Dim("x", 1), Store("y", (I,), Load("x", (number(1), index), F32)))
    function = Function("turned", (Param("x", F32, 2), Param("y", F32, 1, output=True)), body)
    check([15.0, 14.0, 13.0], lambda: _run(function, X, np.empty(3, F32)), "y[i] = x[1, 2 - i]")


def test_every_index():
    for n in range(1, 5):
        x = np.arange(n, dtype=F32)
        for at in range(-n - 1, n + 2):
            want = float(at) if 0 <= at < n else "LoopError"
            check(want, lambda at=at, x=x: read(at, array=x), f"x[{at}] of x with {n} elements")
