"""Sums that are one term: classes taken from logits without a comparison for each."""

import numpy as np
import pytest

import minipd as paddle
from minipd.cinn.ir.ast import Accumulate, Const, Dim, For, Function, Init, Let, Load, Param, Seq, Store, Var
from minipd.cinn.ir.build import binary, cast, const, select
from minipd.cinn.ir.interpreter import interpret
from minipd.cinn.ir.printer import text
from minipd.cinn.ir.walk import statements
from minipd.cinn.optim.pick import pick
from minipd.cinn.overwriting import overwritable

F32, I32, I64 = np.dtype("f4"), np.dtype("i4"), np.dtype("i8")
i, j = Var("i"), Var("j")
LABEL = Load("x1", (i,), I64)


def picking(columns=5, position=None, cond=None, value=None, last=None):
    """y0[i] = sum over j of (j == x1[i] ? x0[i, j] + 1 : 0), and last."""
    value = binary("add", Var("v", F32), const(1, F32)) if value is None else value
    cond = binary("eq", cast(j, I32), cast(LABEL, I32)) if cond is None else cond
    inner = [Let("v", Load("x0", (i, j), F32)), Let("c", cond),
             Accumulate("s", "add", select(Var("c", np.dtype(bool)), value, const(0, F32)))]
    body = Seq((Init("s", const(0, F32)), For("j", Const(columns, I64) if isinstance(columns, int) else columns,
                                              Seq((*inner, *([last] if last else [])))),
                Store("y0", (i,), Var("s", F32))))
    params = Param("x0", F32, 2), Param("x1", I64, 1), Param("y0", F32, 1, True)
    return Function("picking", params, For("i", Dim("x0", 0), body), ())


def loops_in(function):
    return [s for s in statements(function.body) if isinstance(s, For)]


def run(function, x, labels):
    y = np.empty(len(x), np.float32)
    interpret(function, [x, labels], [y])
    return y


X = np.random.default_rng(0).standard_normal((6, 5)).astype(np.float32)
LABELS = np.array([0, 4, 2, -1, 5, 10**12])


def test_the_term_is_taken_where_it_is():
    function = picking()
    new = pick(function)
    assert len(loops_in(new)) == 1                              # over rows
    np.testing.assert_array_equal(run(new, X, LABELS), run(function, X, LABELS))
    assert run(new, X, LABELS)[3:].tolist() == [0, 0, 0]        # no such class


def test_what_else_the_loop_does_stays():
    function = picking(last=Accumulate("s", "add", Var("v", F32)))
    new = pick(function)
    assert len(loops_in(new)) == 2 and "==" not in text(new)
    np.testing.assert_allclose(run(new, X, LABELS), run(function, X, LABELS), rtol=1e-6)


def test_a_block_of_a_long_sum():
    shifted = binary("eq", binary("add", binary("mul", i, const(0, I64)), j), LABEL)
    other = binary("eq", binary("add", const(2, I64), j), LABEL)
    for cond in (shifted, other):
        function = picking(columns=3, cond=cond)
        new = pick(function)
        assert new != function
        np.testing.assert_array_equal(run(new, X, LABELS), run(function, X, LABELS))


@pytest.mark.parametrize("function", [
    picking(columns=Dim("x0", 1)),                              # may have no elements
    picking(columns=binary("min", const(5, I64), binary("sub", const(5, I64), i))),
    picking(cond=binary("lt", j, LABEL)),
    picking(cond=binary("eq", binary("mul", j, const(2, I64)), LABEL)),
    picking(value=Var("s", F32)),
    picking(cond=binary("eq", cast(j, F32), cast(LABEL, F32))),
])
def test_sums_that_are_no_single_term_for_sure_stay(function):
    assert pick(function) is function


def test_blocks_that_have_elements():
    """A block of 2 of 5 columns, the last of 1; of 4 columns the third has none."""
    def blocks(columns):
        k, left = Var("k"), binary("sub", const(columns, I64), binary("mul", Var("k"), const(2, I64)))
        at = binary("add", binary("mul", k, const(2, I64)), j)
        term = select(binary("eq", at, LABEL), Load("x0", (i, at), F32), const(0, F32))
        block = For("j", binary("min", const(2, I64), left), Accumulate("s", "add", term))
        row = Seq((Init("s", const(0, F32)), For("k", const(3, I64), block), Store("y0", (i,), Var("s", F32))))
        return Function("blocks", picking().params, For("i", Dim("x0", 0), row), ())
    new = pick(blocks(5))
    assert len(loops_in(new)) == 2
    np.testing.assert_array_equal(run(new, X, LABELS), run(blocks(5), X, LABELS))
    assert pick(blocks(4)) == blocks(4)


def test_logits_may_still_be_overwritten():
    """Their class is read before their row is written."""
    body = picking().body
    row = Seq((*body.body.stmts, For("j", Const(5, I64), Store("y1", (i, j), Load("x0", (i, j), F32)))))
    params = (*picking().params, Param("y1", F32, 2, True))
    function = pick(Function("both", params, For("i", Dim("x0", 0), row), ()))
    assert overwritable(function)[1] == (0,)


@pytest.mark.parametrize("classes", [7, 5000])
def test_cross_entropy(classes):
    r = np.random.default_rng(1)
    x, labels = r.standard_normal((40, classes)).astype(np.float32), r.integers(0, classes, (40, 1))

    def loss(x, label):
        z = x - x.max(-1, keepdim=True)
        return (paddle.log(paddle.exp(z).sum(-1, keepdim=True)) - paddle.take_along_axis(z, label, -1)).mean()
    compiled = paddle.jit.to_static(loss, backend="CINN")
    wide = x.astype(np.float64)
    expected = np.mean(np.log(np.exp(wide).sum(-1)) - np.take_along_axis(wide, labels, -1)[:, 0])
    np.testing.assert_allclose(compiled(paddle.to_tensor(x), paddle.to_tensor(labels)).numpy(), expected, rtol=1e-5)
