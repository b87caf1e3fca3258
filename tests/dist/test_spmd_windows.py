"""Rules of operators that look through windows: what may be split, and that data parallelism only reduces gradients."""

import numpy as np
import pytest

import minipd as paddle
from minipd.dist.api import dtensor_from_local
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
