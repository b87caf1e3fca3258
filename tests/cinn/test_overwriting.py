"""Which inputs a kernel may write over: never one that is read again later."""

import numpy as np
import pytest

from minipd.cinn.compile import function_of
from minipd.cinn.ir.ast import For, Function, IfThenElse, Load, Param, Seq, Store, Var
from minipd.cinn.ir.build import binary, const
from minipd.cinn.lower import lower
from minipd.cinn.optim import finalize
from minipd.cinn.overwriting import overwritable
from minipd.cinn.runtime.kernel import compile_function
from minipd.nn import functional as F
from tests.cinn.programs import grouped, traced

X = np.random.default_rng(0).normal(size=(6, 9))
ROW = np.linspace(0.5, 1.5, 9)


def function(fn, *arrays, scheduled=True):
    program, _ = traced(fn, *arrays)
    group, = grouped(program)
    return function_of(group) if scheduled else finalize(lower(group))


@pytest.mark.parametrize("fn, arrays, allowed", [
    (lambda x, y: x.exp() * y, (X, X), {0: (0, 1)}),                        # each element read where it is written
    (lambda x: F.softmax(x), (X,), {0: (0,)}),                              # row after row
    (lambda x, w: x * w + 1.0, (X, ROW), {0: (0,)}),                        # w is read in every row
    (lambda x: x / x.sum(), (X,), {0: (0,)}),                               # one long row
    (lambda x, y: (x.exp() * y, x.tanh() * y), (X, X), {0: (0, 1), 1: (0, 1)}),     # both are read first
])
def test_allowed(fn, arrays, allowed):
    """Of loops that nobody has scheduled."""
    assert overwritable(function(fn, *arrays, scheduled=False)) == allowed


@pytest.mark.parametrize("fn, arrays", [
    (lambda x, y: x.exp() * y, (X, X + 1)), (lambda x: F.softmax(x * 2.0), (X,)),
    (lambda x, y: F.softmax(x) * y.mean(-1, keepdim=True) + y, (X, X * 3)),
    (lambda x, w: F.rms_norm(x, [9], w), (X, ROW)), (lambda x: x / x.sum() + x.max(), (X,)),
    (lambda x, y: (x.exp() * y, (x * y).sum(0)), (X, X + 1)),
    (lambda x, y: (x.exp() * y, x.tanh() * y + 1.0), (X, X + 1)),
])
def test_what_is_allowed_is_harmless(fn, arrays):
    """The compiled kernel, called with each input it may write over as its result."""
    f = function(fn, *arrays)
    kernel = compile_function(f)
    shapes = [tuple(r.shape) for r in grouped(traced(fn, *arrays)[0])[0].results()]
    want = [np.empty(s) for s in shapes]
    kernel(arrays, want)
    for result, inputs in overwritable(f).items():
        for i in inputs:
            if arrays[i].shape != shapes[result]:
                continue
            copies = [a.copy() for a in arrays]
            outs = [np.empty(s) for s in shapes]
            outs[result] = copies[i]
            kernel(copies, outs)
            for got, expected in zip(outs, want, strict=True):
                np.testing.assert_allclose(got, expected, rtol=1e-13)


def test_a_result_that_is_stored_before_the_input_is_read_again_needs_memory_of_its_own():
    """The first loop stores y, the second reads x again."""
    i, f64 = Var("i"), np.dtype("float64")
    x, y, z = (Param(name, f64, 1, name != "x") for name in "xyz")
    once = For("i", const(4, np.dtype("int64")), Store("y", (i,), Load("x", (i,), f64)))
    again = For("i", const(4, np.dtype("int64")), Store("z", (i,), Load("x", (i,), f64)))
    assert overwritable(Function("f", (x, y, z), Seq((once, again)), ())) == {1: (0,)}


def test_another_element_is_none_of_its_own():
    """y[i] = x[3 - i], and y[i] = x[0] in every iteration."""
    i, f64, n = Var("i"), np.dtype("float64"), const(4, np.dtype("int64"))
    x, y = (Param(name, f64, 1, name == "y") for name in "xy")
    for index in (binary("sub", const(3, i.dtype), i), const(0, i.dtype)):
        turned = For("i", n, Store("y", (i,), Load("x", (index,), f64)))
        assert overwritable(Function("f", (x, y), turned, ())) == {}


def test_what_is_read_in_an_arm_or_a_scope_of_its_own_counts():
    i, f64, n = Var("i"), np.dtype("float64"), const(4, np.dtype("int64"))
    x, y = (Param(name, f64, 1, name == "y") for name in "xy")
    own, other = (Store("y", (i,), Load("x", (at,), f64)) for at in (i, binary("sub", const(3, i.dtype), i)))
    for then, orelse, allowed in ((own, None, {0: (0,)}), (other, None, {}), (own, other, {})):
        arms = IfThenElse(binary("lt", i, 2), then, orelse)
        for body in (arms, Seq((Seq((arms,)),))):
            assert overwritable(Function("f", (x, y), For("i", n, body), ())) == allowed


def test_block_form_is_refused():
    with pytest.raises(TypeError, match=r"expected a function in flat form, found ScheduleBlock"):
        overwritable(lower(grouped(traced(lambda x: x.exp() * 2.0, X)[0])[0]))
