"""A mean over sharded dimensions: Partial where all ranks have as many elements, taken apart where they have not."""

import math
import random

import numpy as np

from minipd.dist.api import shard_tensor
from minipd.dist.mesh import parse_mesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.simulate import simulate
from minipd.dist.spmd import infer
from minipd.framework.dim import symbol
from minipd.framework.meta import Meta
from minipd.framework.row import ROWS
from tools.course.checking import check

R, S, AVG = Replicate(), Shard, Partial("avg")
APART = "taken apart into a sum and a division"


def placed(shape, placements, axis, mesh="tp=2", keepdim=False):
    """(placements that x gets first, those of the mean)."""
    x = Meta(shape, np.dtype("float32"))
    got = infer(ROWS["mean"], (x,), [tuple(placements)], {"axis": axis, "keepdim": keepdim},
                parse_mesh(mesh))
    return (list(got.inputs[0]), list(got.outputs[0])) if hasattr(got, "outputs") else APART


def expect(expected, shape, placements, axis, mesh="tp=2", **how):
    more = "".join(f", {name}={value}" for name, value in how.items())
    check(expected, lambda: placed(shape, placements, axis, mesh, **how),
          f"the mean over {axis} of shape {shape}, placed as {list(placements)} on {mesh}{more}: what x becomes, and "
          "the result")


def test_nobody_splits_what_is_averaged():
    expect(([S(0)], [S(0)]), (4, 3), [S(0)], (1,))
    expect(([S(1)], [S(0)]), (4, 6), [S(1)], (0,))
    expect(([S(1)], [S(1)]), (4, 6), [S(1)], (0,), keepdim=True)
    expect(([R], [R]), (4, 3), [R], (0,))


def test_all_have_as_many():
    """Two ranks with two rows each: the mean of their means is the mean."""
    expect(([S(0)], [AVG]), (4, 3), [S(0)], (0,))
    expect(([S(1)], [AVG]), (4, 6), [S(1)], (0, 1))
    expect(([S(0)], [AVG]), (4, 3), [S(0)], (0,), keepdim=True)


def test_one_has_fewer():
    """Three rows and two: the mean of their means is something else."""
    expect(APART, (5, 3), [S(0)], (0,))
    expect(APART, (5, 3), [S(0)], (0, 1))
    expect(APART, (1, 3), [S(0)], (0,))


def test_what_is_not_averaged_may_be_uneven():
    expect(([S(0)], [S(0)]), (5, 3), [S(0)], (1,))


def test_two_axes():
    expect(([S(0), S(1)], [AVG, AVG]), (4, 6), [S(0), S(1)], (0, 1), "dp=2,tp=2")
    expect(([S(0), S(1)], [S(0), AVG]), (5, 6), [S(0), S(1)], (1,), "dp=2,tp=2")
    expect(APART, (4, 5), [S(0), S(1)], (0, 1), "dp=2,tp=2")


def test_two_axes_on_one_dimension():
    """6 rows over 2 x 2 are 2, 1, 2, 1: even for each axis alone, and uneven for both."""
    expect(([S(0), S(0)], [AVG, AVG]), (8,), [S(0), S(0)], (0,), "dp=2,tp=2")
    expect(APART, (6,), [S(0), S(0)], (0,), "dp=2,tp=2")


def test_of_nothing_there_is_no_mean():
    expect(([R], [R]), (0, 3), [S(0)], (0,))


def test_a_symbol_counts_as_even():
    expect(([S(0)], [AVG]), (symbol("N"), 3), [S(0)], (0,))


def value(x, placements, axis, mesh):
    log = []

    def run(grid):
        t = shard_tensor(x, grid, placements)
        return t.mean(axis=list(axis)).numpy()
    return simulate(mesh, run, log=log)[0], len(log)


def test_the_values():
    """pytorch #162692: 6.5 where 5.5 is right."""
    x = np.arange(12.0).reshape(3, 4)
    check(5.5, lambda: value(x, [S(0)], (0, 1), "tp=2")[0], "the mean of arange(12) in 3 rows over 2 ranks")
    check(1.5, lambda: value(np.arange(4.0).reshape(1, 4), [S(0)], (0, 1), "tp=2")[0],
          "the mean of arange(4) in 1 row over 2 ranks: one of them has nothing")
    check(1, lambda: value(x, [S(1)], (0, 1), "tp=2")[1], "how many messages the mean of 3 x 4 over two columns each "
          "takes (the sum over ranks, when the number is read)")


def test_random_means():
    random.seed(5)
    for _ in range(60):
        sizes = [random.randint(1, 3) for _ in range(2)]
        shape = tuple(random.randint(1, 6) for _ in range(2))
        placements = [random.choice([R, S(0), S(1)]) for _ in sizes]
        axis = random.choice([(0,), (1,), (0, 1)])
        mesh = f"dp={sizes[0]},tp={sizes[1]}"
        x = np.arange(float(math.prod(shape))).reshape(shape) ** 2
        check(x.mean(axis=axis), lambda x=x, p=placements, axis=axis, mesh=mesh: value(x, p, axis, mesh)[0],
              f"the mean over {axis} of arange({x.size})**2 as {shape}, placed as {placements} on {mesh}")
