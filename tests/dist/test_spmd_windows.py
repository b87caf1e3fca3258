"""Rules of operators that look through windows: what may be split, and that data parallelism only reduces gradients."""

import numpy as np
import pytest

import minipd as paddle
from minipd.dist.api import dtensor_from_local, shard_tensor
from minipd.dist.mesh import parse_mesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.spmd import infer
from minipd.framework.meta import Meta
from minipd.framework.rank import current
from minipd.framework.row import ROWS
from minipd.nn import functional as F
from tests.dist.ranks import on_mesh

R, P = Replicate(), Partial()
F32 = np.dtype("float32")
CONV = {"strides": (1, 1), "paddings": (1, 1, 1, 1), "dilations": (1, 1), "groups": 1}
POOL = {"kernel_size": (2, 2), "strides": (2, 2), "paddings": (0, 0, 0, 0)}


def answer(name, shapes, placements, attrs):
    """(placements that the operands must have, placements of the results), on one mesh axis."""
    metas = tuple(Meta(s, F32) for s in shapes)
    got = infer(ROWS[name], metas, tuple((p,) for p in placements), attrs, parse_mesh("x=2"))
    return tuple(p for (p,) in got.inputs), tuple(p for (p,) in got.outputs)


@pytest.mark.parametrize("given, inputs, output", [
    ((Shard(0), R), (Shard(0), R), Shard(0)),               # over the batch
    ((R, Shard(0)), (R, Shard(0)), Shard(1)),               # over the output channels
    ((Shard(1), R), (Shard(1), Shard(1)), P),               # over the input channels: a part of the sum each
    ((Shard(2), R), (R, R), R),                             # rows of the image are gathered
])
def test_convolution(given, inputs, output):
    assert answer("conv2d", [(8, 4, 6, 6), (2, 4, 3, 3)], given, CONV) == (inputs, (output,))


def test_groups_of_channels_are_split_together_where_every_rank_gets_as_many():
    attrs = CONV | {"groups": 4}
    shapes = [(8, 4, 6, 6), (8, 1, 3, 3)]
    assert answer("conv2d", shapes, (R, Shard(0)), attrs) == ((Shard(1), Shard(0)), (Shard(1),))
    assert answer("conv2d", shapes, (Shard(0), R), attrs) == ((Shard(0), R), (Shard(0),))
    assert answer("conv2d", [(8, 6, 6, 6), (3, 2, 3, 3)], (R, Shard(0)), CONV | {"groups": 3}) == ((R, R), (R,))
    metas = [Meta(s, F32) for s in shapes]
    got = infer(ROWS["conv2d"], metas, [(Shard(1), R), (R, R)], attrs, parse_mesh("x=2,y=2"))
    assert got.attributes(attrs, parse_mesh("x=2,y=2"), 0)["groups"] == 2


def test_a_split_batch_leaves_the_gradient_of_the_filter_partial():
    shapes = [(8, 4, 6, 6), (8, 2, 6, 6), (2, 4, 3, 3)]
    assert answer("conv2d_filter_grad", shapes, (Shard(0), Shard(0), R), CONV) == ((Shard(0), Shard(0), R), (P,))


def test_pooling_and_padding():
    assert answer("pool2d", [(8, 4, 6, 6)], (Shard(1),), POOL) == ((Shard(1),), (Shard(1),))
    assert answer("pool2d", [(8, 4, 6, 6)], (P,), POOL) == ((P,), (P,))                     # averages are linear
    assert answer("max_pool2d_with_index", [(8, 4, 6, 6)], (P,), POOL) == ((R,), (R, R))    # maxima are not
    assert answer("max_pool2d_with_index", [(8, 4, 6, 6)], (Shard(3),), POOL) == ((R,), (R, R))
    pad = {"paddings": (0, 0, 1, 0)}
    assert answer("pad", [(8, 4)], (Shard(0),), pad) == ((Shard(0),), (Shard(0),))
    assert answer("pad", [(8, 4)], (Shard(1),), pad) == ((R,), (R,))
    assert answer("pad", [(8, 4)], (P,), pad | {"pad_value": 1.0}) == ((R,), (R,))


def test_data_parallelism_communicates_gradients_of_filters_only():
    """Two ranks, a batch of 4 split between them: nothing moves until the filter's gradient is asked for whole."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(4, 2, 5, 5)), rng.normal(size=(3, 2, 3, 3))

    def run(mesh):
        rank = current().rank
        images = dtensor_from_local(x[2 * rank:2 * rank + 2], mesh, [Shard(0)], x.shape)
        filters = dtensor_from_local(w.copy(), mesh, [R], w.shape)
        filters.stop_gradient = False
        out = F.max_pool2d(F.conv2d(images, filters, padding=1), 2)
        assert out.payload.placements == (Shard(0),)
        out.sum().backward()
        assert not current().comm.counts
        gradient = filters.grad.numpy()
        return dict(current().comm.counts), gradient

    single = paddle.to_tensor(w, stop_gradient=False)
    F.max_pool2d(F.conv2d(paddle.to_tensor(x), single, padding=1), 2).sum().backward()
    for moved, gradient in on_mesh("x=2", run):
        assert moved == {"all_reduce": 1}
        np.testing.assert_allclose(gradient, single.grad.numpy(), rtol=1e-12)


PATCHES = CONV | {"strides": (2, 3), "paddings": (0, 0, 0, 0)}


@pytest.mark.parametrize("shapes, attrs, split", [
    ([(8, 4, 4, 6), (2, 4, 2, 3)], PATCHES, True),
    ([(8, 4, 4, 6), (2, 4, 1, 1)], PATCHES | {"strides": (1, 1)}, True),
    ([(8, 4, 6, 6), (2, 4, 2, 3)], PATCHES, False),                                 # 3 windows for 2 ranks
    ([(8, 4, 5, 6), (2, 4, 2, 3)], PATCHES, False),                                 # a row is left over
    ([(8, 4, 4, 6), (2, 4, 2, 3)], PATCHES | {"paddings": (0, 1, 0, 0)}, False),
    ([(8, 4, 4, 6), (2, 4, 2, 3)], PATCHES | {"strides": (1, 3)}, False),           # they overlap
    ([(8, 4, 8, 6), (2, 4, 2, 3)], PATCHES | {"strides": (3, 3)}, False),           # and here they leave something out
    ([(8, 4, 4, 6), (2, 4, 2, 3)], PATCHES | {"dilations": (2, 1)}, False)])
def test_windows_side_by_side_are_split_where_every_rank_gets_as_many(shapes, attrs, split):
    there = Shard(2) if split else R
    assert answer("conv2d", shapes, (Shard(2), R), attrs) == ((there, R), (there,))


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("n, groups", [(1, 1), (2, 1), (2, 2), (3, 1)])
def test_patches_of_an_image_that_is_split_are_those_of_the_whole(n, groups, transposed):
    """Values and gradients; nothing is communicated but the sum of the filter's gradient."""
    rng = np.random.default_rng(n)
    sizes = (4, 6, 8)[-n:]
    x0, w0 = rng.normal(size=(2, 4, *sizes)), rng.normal(size=(4, 4 // groups, *(2,) * n))
    function = getattr(F, f"conv{n}d" + "_transpose" * transposed)

    def step(x, w):
        y = function(x, w, stride=2, groups=groups)
        (y * y * y).sum().backward()
        return y.numpy(), x.grad.numpy(), w.grad.numpy()
    want = step(*(paddle.to_tensor(t, stop_gradient=False) for t in (x0, w0)))

    def run(mesh):
        x, w = (shard_tensor(t, mesh, [p, R], stop_gradient=False) for t, p in ((x0, Shard(n + 1)), (w0, R)))
        y = function(x, w, stride=2, groups=groups)
        return step(x, w), y.placements, current().comm.counts["all_reduce"]
    for found, placements, sums in on_mesh("x=2,y=1", run):
        assert (placements, sums) == ([Shard(n + 1), R], 1)
        for g, t in zip(found, want, strict=True):
            np.testing.assert_allclose(g, t, rtol=1e-11)
