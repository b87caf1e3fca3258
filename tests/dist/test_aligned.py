"""Compositions whose operands are brought into line before (`framework.whole.aligned`): where they end up, and values
and gradients, eagerly and in programs."""

import numpy as np
import pytest

import minipd as paddle
import minipd.nn.functional as F
from minipd.dist.api import shard_tensor
from minipd.dist.placements import Replicate, Shard
from minipd.framework.row import ROWS
from minipd.ops.creation import to_tensor
from tests.dist.both import both
from tests.dist.ranks import on_mesh

R, S0, S1, S2 = Replicate(), Shard(0), Shard(1), Shard(2)


def normal(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


def with_gradients(function):
    """The result and the gradients of the sum of its cubes."""
    def run(*xs):
        y = function(*xs)
        return [y, *paddle.grad([(y * y * y).sum()], list(xs))]
    return run


def einsum(equation):
    return lambda *xs: paddle.einsum(equation, *xs)


def batch_norm(training):
    return lambda x, w, b: F.batch_norm(x, paddle.zeros([3], "float64"), paddle.ones([3], "float64"), w, b,
                                        training=training)


CASES = {                               # sizes do not divide, operands disagree
    "product": (einsum("ij,jk->ik"), ((5, 7), [S1, S0]), ((7, 3), [S1, S0])),
    "three": (einsum("ij,jk,kl->il"), ((5, 7), [S0, R]), ((7, 3), [S1, S0]), ((3, 5), [R, S1])),
    "diagonal": (einsum("iij,jk->ik"), ((3, 3, 5), [S1, S2]), ((5, 2), [S1, R])),
    "dots": (einsum("...ij,...jk->...ik"), ((2, 1, 5, 3), [S0, S2]), ((3, 3, 2), [S2, S0])),
    "bmm": (paddle.bmm, ((3, 5, 2), [S1, S0]), ((3, 2, 7), [S2, S1])),
    "batch norm": (batch_norm(True), ((5, 3, 2), [R, S0]), ((3,), [S0, R]), ((3,), [R, S0])),
    "batch norm, channels": (batch_norm(True), ((5, 3, 2), [S1, S2]), ((3,), [R, S0]), ((3,), [S0, S0])),
    "batch norm, evaluation": (batch_norm(False), ((5, 3, 2), [R, S1]), ((3,), [S0, R]), ((3,), [R, R])),
}


@pytest.mark.parametrize("case", CASES)
def test_values_and_gradients(case):
    function, *given = CASES[case]
    given = [(normal(*shape), placed) for shape, placed in given]
    xs = [to_tensor(a, stop_gradient=False) for a, _ in given]
    want = [t.numpy() for t in with_gradients(function)(*xs)]
    for g, w in zip(both("x=2,y=2", with_gradients(function), *given), want, strict=True):
        np.testing.assert_allclose(g, w, atol=1e-12)


@pytest.mark.parametrize(("function", "given", "expected"), [
    (einsum("ij,jk->ik"), (((6, 4), [S0]), ((4, 6), [S1])), [S0]),         # the first decides, as in Paddle
    (paddle.matmul, (((6, 4), [S0]), ((4, 6), [S1])), [S1]),                # whose matmul prefers columns
    (paddle.bmm, (((2, 6, 4), [S1]), ((2, 4, 6), [S2])), [S1]),
    (paddle.bmm, (((2, 6, 4), [S1]), ((2, 4, 6), [S0])), [S0]),
    (batch_norm(True), (((4, 3, 2), [R]), ((3,), [S0]), ((3,), [S0])), [R]),
    (batch_norm(True), (((4, 3, 2), [S1]), ((3,), [R]), ((3,), [R])), [S1]),
])
def test_who_decides(function, given, expected):
    def run(mesh):
        return list(function(*(shard_tensor(normal(*shape), mesh, placed) for shape, placed in given)).placements)
    assert on_mesh("x=2", run) == [expected] * 2


def test_nothing_is_called_where_nothing_is_distributed(monkeypatch):
    monkeypatch.delitem(ROWS, "align")
    x = to_tensor(normal(2, 3, 3))
    assert paddle.bmm(x, x).shape == paddle.einsum("bij,bjk->bik", x, x).shape == [2, 3, 3]
