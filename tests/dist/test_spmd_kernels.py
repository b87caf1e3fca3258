"""Local attributes against the rows' own kernels: on shards, with the attributes of each rank, they give the whole."""

import numpy as np
import pytest

from minipd.dist.mesh import parse_mesh
from minipd.dist.placements import Replicate, Shard
from minipd.dist.spmd import infer
from minipd.framework.row import ROWS
from tests.dist.simulated import check_rule, join

R = Replicate()
MESHES = ["x=4", "x=2,y=3"]
KEY = np.array([7, 11])


def floats(rng, *shape):
    return np.asarray(rng.integers(-5, 6, shape), np.float64)


def calls(rng):
    """(row name, operands, attributes, shape-only operands), sizes uneven on purpose."""
    ids, label = rng.integers(0, 10, (3, 5)), rng.integers(0, 7, (5, 1))
    return [
        ("embedding", (ids, floats(rng, 10, 3)), {}, ()),
        ("embedding_grad", (ids, floats(rng, 3, 5, 2), floats(rng, 10, 2)), {}, (2,)),
        ("take_along_axis", (floats(rng, 5, 7), label), {"axis": 1}, ()),
        ("take_along_axis_grad", (floats(rng, 5, 1), label, floats(rng, 5, 7)), {"axis": 1}, (2,)),
        ("cross_entropy_with_softmax_grad", (label, floats(rng, 5, 7), floats(rng, 5, 1)), {"axis": 1}, ()),
        ("dropout", (floats(rng, 5, 6), KEY), {"p": 0.5}, ()),
        ("reshape", (floats(rng, 6, 4),), {"shape": (6, 2, 2)}, ()),
        ("expand", (floats(rng, 5, 1),), {"shape": (2, 5, 3)}, ()),
        ("slice", (floats(rng, 5, 6),), {"axes": (0, 1), "starts": (0, 1), "ends": (5, 4)}, ()),
        ("strided_slice", (floats(rng, 5, 6),), {"axes": (0, 1), "starts": (4, 0), "ends": (-1, 6),
                                                 "strides": (-2, 1)}, ()),
        ("set_value", (floats(rng, 5, 6), floats(rng, 6)), {"axes": (0, 1), "starts": (1, 0), "ends": (3, 6),
                                                            "strides": (1, 1)}, ()),
        ("tril", (floats(rng, 2, 5, 7),), {"diagonal": -1}, ()),
        ("triu", (floats(rng, 5, 7),), {"diagonal": 2}, ()),
        ("expand_as", (floats(rng, 1, 6), floats(rng, 5, 6)), {}, (1,)),
        ("reduce_as", (floats(rng, 5, 6), floats(rng, 1, 6)), {}, (1,)),
        ("full_like", (floats(rng, 5, 6),), {"value": 3.0}, (0,)),
        ("rms_norm", (floats(rng, 5, 6), floats(rng, 6)), {"epsilon": 1e-3}, ()),
        ("fused_rotary_position_embedding", (floats(rng, 3, 5, 4), floats(rng, 5, 2), floats(rng, 5, 2)), {}, ()),
    ]


@pytest.mark.parametrize("mesh", MESHES)
def test_rows_run_on_shards(mesh):
    rng = np.random.default_rng(30)
    for _ in range(15):
        for name, operands, attrs, shape_only in calls(rng):
            check_rule(name, operands, attrs, ROWS[name].kernel, parse_mesh(mesh), rng, shape_only)


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("name", ["uniform", "gaussian"])
@pytest.mark.parametrize("axis", [R, Shard(0), Shard(1)])
def test_random_tensors_are_slices_of_the_single_ranks(name, axis, mesh):
    mesh, attrs = parse_mesh(mesh), {"shape": (5, 6), "dtype": np.dtype("float32")}
    wanted = (axis, Shard(0), R)[:mesh.ndim]
    got = infer(ROWS[name], (KEY,), ((R,) * mesh.ndim,), attrs, mesh, wanted)
    pieces = [ROWS[name].kernel(KEY, **got.attributes(attrs, mesh, rank)) for rank in mesh.process_ids]
    np.testing.assert_array_equal(join(pieces, mesh, wanted), ROWS[name].kernel(KEY, **attrs))
