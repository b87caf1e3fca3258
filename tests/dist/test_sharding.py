"""The split rule (D9, D10, D11): ceil chunks, outer mesh axis first; the windows of all ranks are a partition."""

import itertools

import numpy as np
import pytest

from minipd.dist.mesh import parse_mesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.sharding import check_local_shape, chunk, chunk_sizes, local_window, sharding_text
from minipd.framework.constraints import Constraints
from minipd.framework.dim import symbol
from tests.dist.simulated import split

R = Replicate()


@pytest.mark.parametrize("n, ways, sizes", [
    (5, 4, (2, 2, 1, 0)), (6, 4, (2, 2, 2, 0)), (8, 4, (2, 2, 2, 2)), (1, 4, (1, 0, 0, 0)), (0, 3, (0, 0, 0)),
    (7, 2, (4, 3)), (10, 4, (3, 3, 3, 1)), (3, 1, (3,)),
])
def test_chunks_are_ceil_sized(n, ways, sizes):
    assert chunk_sizes(n, ways) == sizes
    assert [chunk(n, ways, i)[1] for i in range(ways)] == [sum(sizes[:i]) for i in range(ways)]


def test_d9_five_rows_on_four_ranks():
    """pytorch #103306: (5, 10) on 4 ranks has 2, 2, 1 and 0 rows."""
    mesh = parse_mesh("x=4")
    assert [local_window((5, 10), mesh, (Shard(0),), r)[0] for r in range(4)] == [(2, 10), (2, 10), (1, 10), (0, 10)]


def test_d9_pieces_that_do_not_follow_the_rule_are_refused():
    """pytorch #144109: user-made pieces of 2, 3, 4, 5 rows."""
    mesh = parse_mesh("x=4")
    check_local_shape((4, 2), (14, 2), mesh, (Shard(0),), 0)
    with pytest.raises(ValueError, match=r"expected a local shape \[4, 2\] on rank 0 for \[14_x, 2\].*got \[2, 2\]"):
        check_local_shape((2, 2), (14, 2), mesh, (Shard(0),), 0)


def test_d10_two_mesh_axes_on_one_dimension():
    """pytorch #161368: 2 elements on a 2 x 4 mesh: ranks 0 and 4 have one each."""
    mesh = parse_mesh("x=2,y=4")
    windows = [local_window((2,), mesh, (Shard(0), Shard(0)), r) for r in range(8)]
    assert [w[0][0] for w in windows] == [1, 0, 0, 0, 1, 0, 0, 0]
    assert windows[0][1] == (0,) and windows[4][1] == (1,)


def test_d11_the_outer_axis_splits_first():
    """pytorch #166598: four rows on a 2 x 2 mesh lie on ranks 0, 1, 2, 3 in order."""
    mesh = parse_mesh("x=2,y=2")
    placed = (Shard(0), Shard(0))
    assert [local_window((4, 2), mesh, placed, r)[1] for r in range(4)] == [(0, 0), (1, 0), (2, 0), (3, 0)]


@pytest.mark.parametrize("text", ["x=3", "x=2,y=2", "x=2,y=3", "x=2,y=1,z=3"])
def test_windows_are_a_partition_in_the_order_of_the_pieces(text):
    """Against splitting the array itself, axis by axis."""
    mesh = parse_mesh(text)
    for shape in ((7, 5), (1, 2), (0, 3), (12, 6)):
        x = np.arange(np.prod(shape)).reshape(shape)
        for placed in itertools.product((R, Shard(0), Shard(1)), repeat=mesh.ndim):
            for rank, piece in enumerate(split(x, mesh, placed, None)):
                size, at = local_window(shape, mesh, placed, rank)
                np.testing.assert_array_equal(x[tuple(slice(a, a + n) for a, n in zip(at, size, strict=False))], piece)
                assert size == piece.shape


def test_partial_ranks_hold_the_whole_extent():
    assert local_window((5, 3), parse_mesh("x=2"), (Partial(),), 1) == ((5, 3), (0, 0))


def test_symbolic_dimensions_divide_exactly_and_say_so():
    b, mesh = symbol("B"), parse_mesh("dp=2,tp=2")
    with Constraints().collect() as assumed:
        assert local_window((b, 6), mesh, (Shard(0), Shard(0)), 3) == ((b / 4, 6), (b * 3 / 4, 0))
        assert local_window((2 * b, 6), mesh, (Shard(0), R), 3) == ((b, 6), (b, 0))
    assert [(str(c.left), c.right, c.what) for c in assumed] == [      # from which it follows that 2 divides B
        ("B/2", 2, "dimension B/2 split 2 ways")]
    with pytest.raises(ValueError, match="no trace is recording assumptions"):
        local_window((b,), mesh, (Shard(0), R), 0)
    assert chunk(b, 1, 0) == (b, 0)


def test_the_notation():
    mesh = parse_mesh("dp=2,tp=2")
    f32 = np.dtype("float32")
    assert sharding_text((16, 128, 64), f32, mesh, (Shard(0), Shard(2))) == "f32[16_dp, 128, 64_tp]"
    assert sharding_text((16, 64), f32, mesh, (Partial(), Shard(1))) == "f32[16, 64_tp]{P_dp}"
    assert sharding_text((16,), np.dtype("int64"), mesh, (Shard(0), Shard(0))) == "i64[16_dp_tp]"
    assert sharding_text((), f32, mesh, (Partial("max"), Partial())) == "f32[]{Pmax_dp, P_tp}"
    assert sharding_text((symbol("B"), 8), None, mesh, (Shard(0), R)) == "[B_dp, 8]"
