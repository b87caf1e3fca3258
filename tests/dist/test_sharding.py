"""The split rule (D9, D10, D11): ceil chunks, outer mesh axis first; the windows of all ranks are a partition."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minipd.dist.api import reshard, shard_tensor
from minipd.dist.mesh import parse_mesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.sharding import (
    check_local_shape,
    chunk,
    chunk_sizes,
    local_blocks,
    local_part,
    local_runs,
    local_shape,
    local_window,
    sharding_text,
    split_axes,
)
from minipd.dist.simulate import simulate
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


# ------------------------------------------------------------------- orders and factors, against arrays of indices
def indices(n, mesh, placements, dim, rank):
    """The elements of dimension `dim`, of extent n, that a rank holds: an array of all is split axis by axis."""
    held = np.arange(n)
    axes = [axis for axis in range(mesh.ndim) if isinstance(placements[axis], Shard) and placements[axis].dim == dim]
    for axis in sorted(axes, key=lambda axis: placements[axis].order):
        ways, factor = mesh.sizes[axis], placements[axis].factor
        parts = np.split(held, factor)
        at = mesh.coordinate(rank)[axis]
        held = np.concatenate([part[-(-len(part) // ways) * at:][:-(-len(part) // ways)] for part in parts])
    return held


@st.composite
def layouts(draw):
    """A mesh, a shape, and placements of any order and factor that fit it."""
    mesh = parse_mesh(",".join(f"a{i}={draw(st.integers(1, 3))}" for i in range(draw(st.integers(1, 3)))))
    shape = tuple(draw(st.integers(0, 13)) for _ in range(draw(st.integers(1, 3))))
    placed = [R] * mesh.ndim
    for axis in draw(st.permutations(range(mesh.ndim))):
        dim = draw(st.integers(-1, len(shape) - 1))
        if dim < 0:
            continue
        order = draw(st.integers(0, 2))
        factor = draw(st.sampled_from([1, 1, 2, 3]))
        trial = placed[:axis] + [Shard(dim, shard_order=order, split_factor=factor)] + placed[axis + 1:]
        try:
            for rank in mesh.process_ids:
                indices(shape[dim], mesh, trial, dim, rank)
        except ValueError:                              # np.split: a part that the factor does not divide
            trial[axis] = Shard(dim, shard_order=order)
            if any(p.is_shard(dim) and p.factor > 1 for p in trial if p is not trial[axis]):
                continue
        placed = trial
    return mesh, shape, tuple(placed)


@given(layouts())
def test_whatever_the_order_and_the_factors_a_rank_holds_what_splitting_gives_it(layout):
    mesh, shape, placed = layout
    whole = np.arange(np.prod(shape)).reshape(shape)
    for rank in mesh.process_ids:
        held = [indices(n, mesh, placed, dim, rank) for dim, n in enumerate(shape)]
        expected = whole[np.ix_(*held)]
        runs = local_runs(shape, mesh, placed, rank)
        for elements, of_dim in zip(held, runs, strict=True):
            assert [i for o, n in of_dim for i in range(o, o + n)] == elements.tolist()
            assert len(of_dim) == 1 or all(n > 0 and a + n != b for (a, n), (b, _) in itertools.pairwise(of_dim))
        assert local_shape(shape, mesh, placed, rank) == expected.shape
        np.testing.assert_array_equal(local_part(whole, mesh, placed, rank), expected)
        blocks = local_blocks(shape, mesh, placed, rank)
        assert sum(np.prod(b.shape) for b in blocks) == expected.size and all(0 not in b.shape for b in blocks)
        for b in blocks:
            np.testing.assert_array_equal(b.of_whole(whole), b.of_local(expected))
        if all(len(r) == 1 for r in runs):
            size, at = local_window(shape, mesh, placed, rank)
            window = tuple(slice(a, a + n) for a, n in zip(at, size, strict=True))
            np.testing.assert_array_equal(whole[window], expected)


@given(layouts(), st.data())
def test_what_the_ranks_along_any_axes_hold_is_a_partition(layout, data):
    """Of what ranks hold that stand at one place of the other axes, each element is held by as many as the axes that
    replicate have ranks (D9, D10, D11)."""
    mesh, shape, placed = layout
    dim = data.draw(st.integers(0, len(shape) - 1))
    axes = split_axes(placed, dim)
    copies = mesh.size // int(np.prod([mesh.sizes[a] for a in axes]))
    count = np.zeros(shape[dim], int)
    for rank in mesh.process_ids:
        for offset, n in local_runs(shape, mesh, placed, rank)[dim]:
            count[offset:offset + n] += 1
    assert (count == copies).all()
    others = data.draw(st.sets(st.sampled_from(axes))) if axes else set()    # axes that stand still
    outer = [a for a in axes if a not in others]
    here = {}
    for rank in mesh.process_ids:
        at = mesh.coordinate(rank)
        held = indices(shape[dim], mesh, placed, dim, rank).tolist()
        line = here.setdefault(tuple(at[a] for a in range(mesh.ndim) if a not in outer), [])
        line.extend(held)
    assert all(len(set(line)) == len(line) for line in here.values())


def test_d11_the_other_order():
    """pytorch #166598: with the order swapped the ranks 0 to 3 hold rows 1, 3, 2, 4."""
    mesh = parse_mesh("x=2,y=2")
    swapped = (Shard(0, shard_order=1), Shard(0))
    assert [local_window((4, 2), mesh, swapped, r)[1][0] for r in range(4)] == [0, 2, 1, 3]
    assert split_axes(swapped, 0) == (1, 0) and split_axes(swapped, 1) == ()
    assert sharding_text((4, 2), None, mesh, swapped) == "[4_y_x, 2]"


def test_fused_weights_are_split_part_by_part():
    """q, k and v in one tensor of 6 columns, over 2 ranks: each has its column of each."""
    mesh = parse_mesh("tp=2")
    fused = (Shard(1, split_factor=3),)
    q, k, v = (np.full((2, 2), [10 * i, 10 * i + 1]) for i in (1, 2, 3))
    for rank in range(2):
        part = local_part(np.concatenate([q, k, v], 1), mesh, fused, rank)
        np.testing.assert_array_equal(part, np.full((2, 3), [10 + rank, 20 + rank, 30 + rank]))
    assert sharding_text((2, 6), np.dtype("float32"), mesh, fused) == "f32[2, 6_tp(3)]"
    with pytest.raises(ValueError, match=r"expected rank 1 to hold one block of \[2, 6_tp\(3\)\], got the runs"):
        local_window((2, 6), mesh, fused, 1)
    assert local_window((2, 6), parse_mesh("tp=1"), fused, 0) == ((2, 6), (0, 0))
    b = symbol("B")
    with Constraints().collect() as assumed:
        assert local_shape((2 * b, 6), mesh, (Shard(0, split_factor=2),), 1) == (2 * (b / 2), 6)
    assert len(assumed)


@pytest.mark.parametrize("placed, at", [((Shard(0, split_factor=4),), 6), ((Shard(0), Shard(0, split_factor=2)), 3)])
def test_a_factor_that_does_not_divide(placed, at):
    mesh = parse_mesh("x=2") if len(placed) == 1 else parse_mesh("y=2,x=2")
    for ask in (local_runs, local_shape, local_window, local_blocks):
        with pytest.raises(ValueError, match=rf"expected a dimension that Shard\(dim=0, split_factor=\d\) over x can "
                                             rf"see as \d equal parts, got {at} elements on rank 0 of dimension 0 of "
                                             rf".*; use a "
                                             rf"split_factor that divides {at}, or pad the tensor"):
            ask((6, 2), mesh, placed, 0)


def test_a_factor_that_does_not_divide_is_an_error_on_every_rank():
    """5 rows over y are 3 and 2: two parts of 2 there are, but not of 3."""
    def shard(mesh):
        with pytest.raises(ValueError, match="got 3 elements on rank 0"):
            shard_tensor(np.zeros((5, 2)), mesh, [Shard(0), Shard(0, split_factor=2)])
        x = shard_tensor(np.zeros((5, 2)), mesh, [Shard(0), R])
        with pytest.raises(ValueError, match="got 3 elements on rank 0"):
            reshard(x, mesh, [Shard(0), Shard(0, split_factor=2)])
    simulate("y=2,x=2", shard)
