"""What inference does with any rule: orders and factors of shards, backwards, rows without a rule, refusals."""

import warnings

import numpy as np
import pytest

import minipd as paddle
from minipd.dist.api import shard_tensor
from minipd.dist.mesh import parse_mesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.spmd import infer, infer_backward
from minipd.framework.meta import Meta
from minipd.framework.row import ROWS, Row, op
from tests.dist.ranks import on_mesh

R, P = Replicate(), Partial()
INNER_FIRST = (Shard(0, shard_order=1), Shard(0))
PARTED = (R, Shard(1, split_factor=3))
X = np.arange(96.0).reshape(8, 12)


def placed(array, mesh, placements):
    return shard_tensor(np.array(array), mesh, list(placements))


@pytest.mark.parametrize("function, there, after", [
    (lambda x, y: -x, INNER_FIRST, INNER_FIRST),
    (lambda x, y: x.t(), INNER_FIRST, (Shard(1, shard_order=1), Shard(1))),
    (lambda x, y: x * 2 + 1, PARTED, PARTED),
    (lambda x, y: x.t(), PARTED, (R, Shard(0, split_factor=3))),
    (lambda x, y: x + paddle.ones([12], "float64"), INNER_FIRST, INNER_FIRST),
    (lambda x, y: x + y, INNER_FIRST, (Shard(0), Shard(0))),            # y is split outer axis first: x becomes so
    (lambda x, y: paddle.concat([x, x], 1), INNER_FIRST, INNER_FIRST),
    (lambda x, y: x.reshape([8, 3, 4]), INNER_FIRST, (Shard(0), Shard(0))),     # looks at blocks of rows
    (lambda x, y: x.max(1), INNER_FIRST, (Shard(0), Shard(0))),
    (lambda x, y: x.sum(1), PARTED, (R, P)),
])
def test_orders_and_factors_stay_where_all_operands_agree(function, there, after):
    def run(mesh):
        out = function(placed(X, mesh, there), placed(X, mesh, (Shard(0), Shard(0))))
        return tuple(out.placements), out.numpy()
    plain = function(paddle.to_tensor(X), paddle.to_tensor(X)).numpy()
    for placements, values in on_mesh("x=2,y=2", run):
        assert placements == after and (values == plain).all()


def test_d11_products_over_a_dimension_split_in_two_orders():
    a = np.arange(16.0).reshape(4, 4)

    def run(mesh):
        return [(placed(a, mesh, (Shard(1), Shard(1))) @ placed(a, mesh, rows)).numpy()
                for rows in ((Shard(0), Shard(0)), INNER_FIRST)]
    for found in on_mesh("x=2,y=2", run):
        assert all((product == a @ a).all() for product in found)


@pytest.mark.parametrize("name, metas, attrs, shape", [
    ("relu", [(6, 12)], {}, (6, 12)), ("add", [(6, 12, 24), (12, 1)], {}, (6, 12, 24)),
    ("transpose", [(6, 12, 24)], {"perm": (2, 0, 1)}, (24, 6, 12)), ("matmul", [(6, 12), (12, 24)], {}, (6, 24)),
    ("reshape", [(6, 12, 24)], {"shape": (72, 4, 6)}, (72, 4, 6)), ("reshape", [(72, 24)], {"shape": (6, 12, 24)},
                                                                   (6, 12, 24)),
    ("sum", [(6, 12, 24)], {"axis": (1,)}, (6, 24)), ("softmax", [(6, 12)], {"axis": 1}, (6, 12)),
    ("concat", [(6, 12), (6, 24)], {"axis": 1}, (6, 36)),
])
def test_what_is_asked_for_backwards_comes_out_forwards(name, metas, attrs, shape):
    mesh = parse_mesh("x=2,y=3")
    metas = [Meta(m, np.dtype("float32")) for m in metas]
    choices = [R, P, *map(Shard, range(len(shape)))]
    for wish in ((a, b) for a in choices for b in choices):
        asked = infer_backward(ROWS[name], metas, [wish], attrs, mesh)
        assert infer(ROWS[name], metas, asked.inputs, attrs, mesh).outputs == asked.outputs
        assert all(got in (wanted, R) for got, wanted in zip(asked.outputs[0], wish, strict=True)) or name == "reshape"


@pytest.fixture
def twice():
    """A row that a user adds, without a rule."""
    @op("twice_by_a_user")
    class Twice:
        """Two of x."""

        def infer_meta(x):
            return Meta(x.shape, x.dtype)

        def kernel(xp, x):
            return x + x

        def vjp_x(g):
            return g + g
    yield Twice
    del ROWS[Twice.name]


def test_a_users_row_replicates_with_one_warning(twice: Row):
    def run(mesh):
        x = placed(X, mesh, (Shard(0),))
        x.stop_gradient = False
        out = twice(twice(x))
        out.sum().backward()
        return out.placements, out.numpy(), x.grad.numpy()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = on_mesh("x=2", run)
    for placements, values, g in found:
        assert placements == [R] and (values == 4 * X).all() and (g == 4).all()
    assert ["twice_by_a_user" in str(w.message) for w in said] == [True] * 2          # one on each rank


def test_a_users_layer_with_a_gradient_of_its_own():
    class Cube(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, g):
            x, = ctx.saved_tensor()
            return g * 3 * x * x

    def run(mesh):
        x = placed(X, mesh, (Shard(1),))
        x.stop_gradient = False
        out = Cube.apply(x)
        out.sum().backward()
        return out.placements, x.grad.placements, x.grad.numpy()
    for placements, g_placements, g in on_mesh("x=2", run):
        assert placements == [Shard(1)] == g_placements and (g == 3 * X * X).all()


def test_a_joined_operand_moves_to_another_dimension_and_is_not_gathered():
    """x is split along the joined dimension, y is not: both are split over the other one."""
    def run(mesh):
        out = paddle.concat([placed(X, mesh, (Shard(1),)), placed(X, mesh, (R,))], 1)
        odd = paddle.concat([placed(X[:7], mesh, (Shard(1),)), placed(X[:7], mesh, (R,))], 1)     # 7 does not divide
        return out.placements, out.numpy(), odd.placements, odd.numpy()
    for placements, values, odd, seven in on_mesh("x=2", run):
        assert placements == [Shard(0)] and odd == [R]
        assert (values == np.hstack([X, X])).all() and (seven == np.hstack([X, X])[:7]).all()


def test_what_paddle_refuses_raises_if_the_flag_says_so():
    def run(mesh):
        x, y = placed(X, mesh, (Shard(0), R)), placed(X, mesh, (R, Shard(0)))
        both = (x + y).placements
        paddle.set_flags({"FLAGS_refuse_as_paddle": True})
        with pytest.raises(ValueError, match="multiply: Paddle refuses a dimension that x splits .* and y in another"):
            x * y
        return both
    assert on_mesh("x=2,y=2", run) == [[Shard(0), Shard(0)]] * 4
