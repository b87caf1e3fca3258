"""What the rules of larger families answer, on one mesh axis: what stays split, what a Partial is made of."""

import numpy as np
import pytest

import minipd as paddle
from minipd.dist.api import shard_tensor
from minipd.dist.mesh import parse_mesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.spmd import DECOMPOSE, infer
from minipd.framework.meta import Meta
from minipd.framework.rank import current
from minipd.framework.row import ROWS
from tests.dist.ranks import on_mesh

R, P, S0, S1, S2 = Replicate(), Partial(), Shard(0), Shard(1), Shard(2)
F, I, C, B = (np.dtype(t) for t in ("float64", "int64", "complex128", "bool"))


def answer(name, operands, placements, attrs):
    """(placements that the operands must have, placements of the results), or DECOMPOSE."""
    metas = tuple(Meta(shape, dtype) for shape, dtype in operands)
    got = infer(ROWS[name], metas, tuple((p,) for p in placements), attrs, parse_mesh("x=2"))
    return got if got is DECOMPOSE else (tuple(p for (p,) in got.inputs), tuple(p for (p,) in got.outputs))


def x(*shape):
    return shape, F


def i(*shape):
    return shape, I


@pytest.mark.parametrize("name, operands, attrs, given, inputs, outputs", [
    # along an axis
    ("topk", [x(4, 6)], {"k": 2, "axis": 1}, [S0], [S0], [S0, S0]),
    ("topk", [x(4, 6)], {"k": 2, "axis": 1}, [S1], [R], [R, R]),
    ("cumsum", [x(4, 6)], {"axis": 0}, [P], [P], [P]),
    ("cumprod", [x(4, 6)], {"axis": 0}, [P], [R], [R]),
    ("roll", [x(4, 6)], {"shifts": (1,), "axis": (0,)}, [Partial("max")], [Partial("max")], [Partial("max")]),
    # parts of a whole
    ("any", [((4, 6), B)], {"axis": (0,)}, [S0], [S0], [Partial("any")]),
    ("all", [((4, 6), B)], {"axis": (0,)}, [S1], [S1], [S0]),
    ("prod", [x(4, 6)], {"axis": (0, 1)}, [S1], [S1], [Partial("prod")]),
    ("isin", [x(4), x(6)], {}, [R, S0], [R, S0], [Partial("any")]),
    ("isin", [x(4), x(6)], {"invert": True}, [R, S0], [R, S0], [Partial("all")]),
    ("isin", [x(4), x(6)], {}, [S0, S0], [S0, R], [S0]),
    ("searchsorted", [x(6), x(4, 2)], {}, [S0, R], [S0, R], [P]),
    # by number
    ("gather", [x(4, 6), i(8)], {"axis": 1}, [R, S0], [R, S0], [S1]),
    ("gather", [x(4, 6), i(8)], {"axis": 1}, [S1, R], [R, R], [R]),
    ("gather_nd", [x(4, 6, 2), i(8, 2)], {}, [S2, R], [S2, R], [S1]),
    ("index_add", [x(4, 6), i(8), x(8, 6)], {"axis": 0}, [S0, R, R], [S0, R, R], [S0]),
    ("index_add", [x(4, 6), i(8), x(8, 6)], {"axis": 0}, [R, S0, S0], [P, S0, S0], [P]),
    ("scatter_nd_reduce", [x(4), i(8, 1), x(8)], {"reduce": "amax"}, [R, S0, S0],
     [Partial("max"), S0, S0], [Partial("max")]),
    ("index_put", [x(4, 6), i(8, 1), x(8, 6)], {}, [R, S0, S0], [R, R, R], [R]),
    ("index_put", [x(4, 6), i(8, 1), x(8, 6)], {}, [S0, R, R], [S0, R, R], [S0]),
    ("put_along_axis", [x(4, 6), i(4, 2), x(4, 2)], {"axis": 1}, [R, S0, R], [S0, S0, S0], [S0]),
    # matrices of a batch, columns of an equation
    ("svd", [x(4, 3, 3)], {}, [S0], [S0], [S0, S0, S0]),
    ("svd", [x(4, 3, 3)], {}, [S1], [R], [R, R, R]),
    ("solve", [x(4, 3, 3), x(4, 3, 6)], {}, [R, S2], [R, S2], [S2]),
    ("solve", [x(3, 3), x(4, 3, 6)], {}, [R, P], [R, P], [P]),
    # transforms
    ("fft_c2c", [((4, 6), C)], {"axes": (1,)}, [S0], [S0], [S0]),
    ("fft_c2c", [((4, 6), C)], {"axes": (1,)}, [P], [P], [P]),
    ("view_dtype", [((4, 6), F)], {"dtype": np.dtype("int32")}, [S1], [S1], [S1]),
    ("view_dtype", [((4, 6), np.dtype("int32"))], {"dtype": F}, [S1], [R], [R]),         # 3 ints are no floats
    ("diagonal", [x(4, 6, 2)], {}, [S2], [S2], [S0]),
    # draws, attention
    ("multinomial", [x(4, 6), i(2)], {"num_samples": 2}, [S0, R], [S0, R], [S0]),
    ("poisson", [x(4, 6), i(2)], {}, [S0, R], [R, R], [R]),
    ("flash_attn", [x(2, 5, 4, 3), x(2, 5, 2, 3), x(2, 5, 2, 3)], {}, [S2, R, R], [S2, S2, S2], [S2]),
    ("flash_attn", [x(2, 5, 3, 3), x(2, 5, 1, 3), x(2, 5, 1, 3)], {}, [S2, R, R], [R, R, R], [R]),
])
def test_what_stays_split(name, operands, attrs, given, inputs, outputs):
    assert answer(name, operands, given, attrs) == (tuple(inputs), tuple(outputs))


@pytest.mark.parametrize("name, attrs", [("logsumexp", {"axis": (1,)}), ("p_norm", {"axis": (1,), "porder": 2.0})])
def test_what_is_taken_apart_where_the_reduced_dimension_is_split(name, attrs):
    assert answer(name, [x(4, 6)], [S1], attrs) is DECOMPOSE
    assert answer(name, [x(4, 6)], [S0], attrs) == ((S0,), (S0,))


def test_a_local_window_says_what_of_the_numbered_dimensions_a_rank_has():
    mesh = parse_mesh("x=2,y=2")
    got = infer(ROWS["index_put"], (Meta((5, 7, 3), F), Meta((8, 2), I), 0.0), [(S0, S1), None, None], {}, mesh)
    assert [got.attributes({}, mesh, rank)["window"] for rank in range(4)] == [
        ((5, 0), (7, 0)), ((5, 0), (7, 4)), ((5, 3), (7, 0)), ((5, 3), (7, 4))]


def communicated(function):
    """What rank 0 of two has communicated."""
    def run(mesh):
        function(mesh)
        return dict(current().comm.counts)
    return on_mesh("x=2", run)[0]


def test_tokens_that_are_split_choose_experts_without_communication():
    """What a router does for each token stays where the token is, the gradient too."""
    def route(mesh):
        scores = shard_tensor(np.random.default_rng(0).normal(size=(6, 4)), mesh, [S0])
        scores.stop_gradient = False
        best, which = paddle.topk(scores, 2, axis=1)
        chosen = paddle.put_along_axis(paddle.zeros_like(scores), which, best, 1)
        chosen.cumsum(1).sum(1).backward(paddle.ones_like(chosen.sum(1)))
        assert scores.grad.payload.placements == (S0,)
    assert communicated(route) == {}


def test_the_gradient_of_a_table_whose_numbers_are_split_is_one_all_reduce():
    def look_up(mesh):
        table, index = shard_tensor(np.ones((4, 3)), mesh, [R]), shard_tensor(np.array([0, 3, 3, 1]), mesh, [S0])
        table.stop_gradient = False
        paddle.gather(table, index).sum().backward()
        assert table.grad.tolist() == [[1] * 3, [1] * 3, [0] * 3, [2] * 3]
    assert communicated(look_up) == {"all_reduce": 1}


def test_a_cache_that_is_split_is_written_where_it_is():
    def write(mesh):
        cache = shard_tensor(np.zeros((6, 4)), mesh, [S0])
        cache = paddle.scatter(cache, paddle.to_tensor([1, 5]), paddle.ones([2, 4], "float64"))
        assert cache.payload.placements == (S0,)
    assert communicated(write) == {}
