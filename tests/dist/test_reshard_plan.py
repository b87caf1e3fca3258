"""Reshard plans, carried out on a list of ranks: every pair of placements keeps the global value (D9, D11, D12)."""

import numpy as np
import pytest

from minipd.dist.mesh import parse_mesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.reshard.plan import collectives, describe, plan
from tests.dist.simulated import REDUCE, all_placements, ceil_chunks, join, split

R, P = Replicate(), Partial()
MOST = {"x=2": 1, "x=4": 1, "x=2,y=2": 4, "x=2,y=3": 4}


def carry_out(steps, pieces, mesh):
    """Each step by its definition, on the pieces of the ranks of each group along the axis."""
    pieces = list(pieces)
    for axis, src, dst in steps:
        seen = set()
        for rank in mesh.process_ids:
            group = mesh.group(rank, axis)
            if group in seen:
                continue
            seen.add(group)
            mine = [pieces[r] for r in group]
            n = len(group)
            if isinstance(src, Shard):
                whole = [np.concatenate(mine, src.dim)] * n
            elif isinstance(src, Replicate):
                whole = mine
            elif src.op == "avg":
                whole = [sum(mine) / n] * n
            else:
                whole = [REDUCE[src.op].reduce(mine)] * n
            if isinstance(dst, Shard):
                new = [ceil_chunks(w, dst.dim, n)[i] for i, w in enumerate(whole)]
            elif isinstance(dst, Partial) and not dst.idempotent:
                new = [w if i == 0 else np.full_like(w, {"sum": 0, "prod": 1}[dst.op]) for i, w in enumerate(whole)]
            else:
                new = whole
            for r, piece in zip(group, new, strict=True):
                pieces[r] = piece
    return pieces


@pytest.mark.parametrize("mesh", MOST)
@pytest.mark.parametrize("shape", [(4, 6), (5, 3), (1, 7), (0, 2)])
def test_every_pair_keeps_the_value(mesh, shape):
    rng, mesh = np.random.default_rng(20), parse_mesh(mesh)
    x = np.asarray(rng.integers(-9, 9, shape), np.float64)
    placed = all_placements(2, mesh, ("sum", "max"))
    for src in placed:
        pieces = split(x, mesh, src, rng)
        for dst in placed:
            steps = plan(src, dst, mesh, 2)
            context = f"{src} -> {dst}:\n{describe(steps, mesh)}"
            after = carry_out(steps, pieces, mesh)
            np.testing.assert_array_equal(join(after, mesh, dst), x, err_msg=context)
            # each rank has just what splitting the value gives it, where that is determined
            if not any(isinstance(p, Partial) for p in dst):
                for piece, wanted in zip(after, split(x, mesh, dst, rng), strict=True):
                    np.testing.assert_array_equal(piece, wanted, err_msg=context)
            assert len(collectives(steps)) <= MOST[mesh.text()], context
            assert (not steps) == (src == dst), context


def test_three_axes():
    rng, mesh = np.random.default_rng(21), parse_mesh("x=2,y=2,z=2")
    x = np.arange(35.0).reshape(7, 5)
    placed = all_placements(2, mesh)
    for _ in range(600):
        src, dst = (placed[i] for i in rng.integers(len(placed), size=2))
        after = carry_out(plan(src, dst, mesh, 2), split(x, mesh, src, rng), mesh)
        np.testing.assert_array_equal(join(after, mesh, dst), x, err_msg=f"{src} -> {dst}")


ONE_AXIS = {
    ("R", "R"): (), ("R", "S0"): (), ("R", "P"): (), ("S0", "R"): ("all_gather",), ("S0", "S1"): ("all_to_all",),
    ("S0", "P"): (), ("P", "R"): ("all_reduce",), ("P", "S1"): ("reduce_scatter",), ("P", "P"): (),
    ("Pmax", "S0"): ("reduce_scatter",), ("Pmax", "P"): ("reduce_scatter",), ("Pavg", "R"): ("all_reduce",),
}
NAMED = {"R": R, "S0": Shard(0), "S1": Shard(1), "P": P, "Pmax": Partial("max"), "Pavg": Partial("avg")}


@pytest.mark.parametrize("src, dst", ONE_AXIS)
def test_one_axis_needs_at_most_one_collective(src, dst):
    steps = plan((NAMED[src],), (NAMED[dst],), parse_mesh("x=2"), 2)
    assert collectives(steps) == ONE_AXIS[src, dst]


@pytest.mark.parametrize("src, dst, text", [
    # a free slice first: the all-reduce then moves half as much
    ("P R", "R S0", "y: Replicate() -> Shard(dim=0)  (slice)\n"
                    "x: Partial(reduce_type=SUM) -> Replicate()  (all_reduce)"),
    # the gather last: it moves twice as much as the reduce-scatter, which it would make dearer
    ("P S0", "S1 R", "x: Partial(reduce_type=SUM) -> Shard(dim=1)  (reduce_scatter)\n"
                     "y: Shard(dim=0) -> Replicate()  (all_gather)"),
    # the inner axis of a dimension is undone before the outer, and redone after it
    ("S0 S0", "R S0", "y: Shard(dim=0) -> Replicate()  (all_gather)\nx: Shard(dim=0) -> Replicate()  (all_gather)\n"
                      "y: Replicate() -> Shard(dim=0)  (slice)"),
    ("R S0", "S0 S0", "y: Shard(dim=0) -> Replicate()  (all_gather)\nx: Replicate() -> Shard(dim=0)  (slice)\n"
                      "y: Replicate() -> Shard(dim=0)  (slice)"),
    ("S0 R", "S0 R", "nothing to do"),
])
def test_plans_read_and_take_the_cheapest_order(src, dst, text):
    mesh = parse_mesh("x=2,y=2")
    src, dst = (tuple(NAMED[name] for name in side.split()) for side in (src, dst))
    assert describe(plan(src, dst, mesh, 2), mesh) == text


def test_d11_leaving_the_inner_axis_does_not_permute_rows():
    """pytorch #166598: [S0, S0] -> [S0, R] on a 2 x 2 mesh gathers the inner axis: rows 1, 2 and 3, 4 in order."""
    mesh = parse_mesh("x=2,y=2")
    a = np.array([[1, 2], [3, 4], [5, 6], [7, 8]])
    pieces = split(a, mesh, (Shard(0), Shard(0)), None)
    assert [p.tolist() for p in pieces] == [[[1, 2]], [[3, 4]], [[5, 6]], [[7, 8]]]
    after = carry_out(plan((Shard(0), Shard(0)), (Shard(0), R), mesh, 2), pieces, mesh)
    assert [p.tolist() for p in after] == [[[1, 2], [3, 4]]] * 2 + [[[5, 6], [7, 8]]] * 2


def test_d12_the_placements_of_gradients():
    """Paddle PR #73236: forward P -> S (reduce-scatter) has backward S -> R (all-gather); P -> R has none; R -> S has
    an all-gather; S -> R a slice, or a reduce-scatter if the gradient is Partial; R -> P none."""
    mesh = parse_mesh("x=2")

    def backward(placement_of_x, gradient):
        """A gradient takes its primal's placements, Partial read as Replicate."""
        target = R if isinstance(placement_of_x, Partial) else placement_of_x
        return collectives(plan((gradient,), (target,), mesh, 1))

    assert backward(P, Shard(0)) == ("all_gather",)
    assert backward(P, R) == ()
    assert backward(R, Shard(0)) == ("all_gather",)
    assert backward(Shard(0), R) == () and backward(Shard(0), P) == ("reduce_scatter",)


def test_d15_an_axis_of_size_one_needs_nothing():
    """Paddle PR #67386."""
    mesh = parse_mesh("x=1,y=2")
    assert plan((P, R), (R, R), mesh, 1) == () == plan((Shard(0), R), (P, R), mesh, 1)
    assert collectives(plan((Shard(0), Shard(0)), (R, R), mesh, 1)) == ("all_gather",)


def test_wrong_placements_are_named():
    with pytest.raises(ValueError, match="reshard to: expected 2 placements, one for each axis of the mesh"):
        plan((R, R), (R,), parse_mesh("x=2,y=2"), 1)
    with pytest.raises(ValueError, match=r"reshard to: expected Shard\(dim=1\) to name one of its dimensions"):
        plan((R,), (Shard(1),), parse_mesh("x=2"), 1)
