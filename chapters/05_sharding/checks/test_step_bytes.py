"""How much a rank gives to others in each kind of step: 5 x 8 numbers, and sets of positions as the witness."""

import itertools

import numpy as np

from minipd.dist.mesh import parse_mesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.reshard.cost import sent
from minipd.dist.reshard.steps import Exchange, Step
from tools.course.checking import check

R, P, S = Replicate(), Partial(), Shard


def amounts(step, now, shape, mesh):
    return [sent(step, tuple(now), mesh, shape, rank) for rank in mesh.process_ids]


def expect(expected, before, after, shape=(5, 8), mesh="tp=4", axis=0, now=None):
    """On an axis that goes from `before` to `after`."""
    grid = parse_mesh(mesh)
    now = [before] if now is None else now
    check(expected, lambda: amounts(Step(axis, before, after), now, shape, grid),
          f"shape {shape} on {mesh}, placed as {list(now)}; {grid.names[axis]} goes from {before} to {after}: how many "
          "numbers each rank sends")


def test_what_is_local_sends_nothing():
    expect([0, 0, 0, 0], R, S(0))
    expect([0, 0, 0, 0], R, P)
    expect([0, 0, 0, 0], S(0), P)


def test_all_gather():
    """Each gives its rows to the three others: 16, 16, 8 and 0 numbers."""
    expect([48, 48, 24, 0], S(0), R)
    expect([6, 6], S(0), R, (4, 3), "tp=2")


def test_reduce_scatter():
    """Each has 40 numbers and gives away all but the rows that it keeps."""
    expect([24, 24, 32, 40], P, S(0))
    expect([6, 6], P, S(0), (4, 3), "tp=2")


def test_all_to_all():
    """Rank 0 has 2 rows of 8, and keeps 2 columns of them."""
    expect([12, 12, 6, 0], S(0), S(1))


def test_all_reduce():
    """A reduce-scatter and an all-gather of a row of 12 numbers, 6 for each: 6 there and 6 back."""
    expect([12, 12], P, R, (4, 3), "tp=2")
    expect([18, 18, 18, 18], P, R, (4, 3), "tp=4")


def test_all_reduce_of_few():
    """5 numbers over 4 ranks are 2, 2, 1, 0: 3 + 3 * 2, the same, 4 + 3 * 1, and 5."""
    expect([9, 9, 7, 5], P, R, (5,), "tp=4")


def test_an_axis_of_one():
    for before, after in ((S(0), R), (P, R), (P, S(0)), (S(0), S(1))):
        expect([0], before, after, mesh="tp=1")


def test_others_split_it_already():
    """Over dp a rank has half of the columns: it gathers half as much."""
    expect([12] * 4, S(0), R, (4, 6), "dp=2,tp=2", 1, [R, S(0)])
    expect([6] * 4, S(0), R, (4, 6), "dp=2,tp=2", 1, [S(1), S(0)])
    expect([6] * 4, P, S(0), (4, 6), "dp=2,tp=2", 0, [P, S(1)])


def test_an_exchange():
    """Rows to columns over both axes: half of the ranks have what they will hold."""
    mesh = parse_mesh("a=2,b=2")
    step = Exchange((S(0), S(1)), (S(1), S(0)))
    check([0, 6, 6, 0], lambda: amounts(step, step.src, (4, 6), mesh),
          "shape (4, 6) on a=2,b=2, [Shard(0), Shard(1)] to [Shard(1), Shard(0)]: how many numbers each rank sends")


def held(shape, p, index, ways):
    """The positions that a member has."""
    rows = [range(n) for n in shape]
    if isinstance(p, Shard):
        step = -(-shape[p.dim] // ways)
        rows[p.dim] = rows[p.dim][index * step:(index + 1) * step]
    return set(itertools.product(*rows))


def witness(shape, before, after, index, ways):
    """For every other member: what it gets of this one."""
    mine = held(shape, before, index, ways)
    others = [i for i in range(ways) if i != index]
    if isinstance(before, Partial) and isinstance(after, Replicate):
        flat = [len(held((int(np.prod(shape)),), S(0), i, ways)) for i in range(ways)]
        return sum(flat[i] for i in others) + len(others) * flat[index]
    if before is R or after is P:
        return 0
    return sum(len(mine & held(shape, after, i, ways)) for i in others)


def test_random_steps():
    for shape in ((1, 2), (3, 4), (5, 7), (6, 6)):
        for ways in (1, 2, 3, 5):
            for before, after in itertools.permutations([R, P, S(0), S(1)], 2):
                amount = [witness(shape, before, after, i, ways) for i in range(ways)]
                expect(amount, before, after, shape, f"tp={ways}")
