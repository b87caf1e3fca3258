"""One step of a reshard plan: the right call for each pair of placements, and the right arguments."""

import itertools

import numpy as np

from minipd.dist.api import dtensor_from_local, reshard, shard_tensor
from minipd.dist.mesh import parse_mesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.reshard.plan import collectives, plan
from minipd.dist.reshard.steps import COLLECTIVES
from minipd.dist.simulate import simulate
from minipd.framework.rank import current
from tools.course.checking import check

R, P, S = Replicate(), Partial(), Shard
X = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], "float32")


def moved(before, after, x=X, mesh="tp=2", locals_=None):
    """(what each rank holds after the reshard, the collectives that ran)."""
    log = []

    def run(grid):
        if locals_ is None:
            start = shard_tensor(x, grid, before)
        else:
            start = dtensor_from_local(np.array(locals_[current().rank], "float32"), grid, before, x.shape)
        return reshard(start, grid, after)._local_value().tolist()
    return simulate(mesh, run, log=log), [line.partition("#")[0] for line in log]


def expect(held, names, before, after, **how):
    x, mesh, locals_ = how.get("x", X), how.get("mesh", "tp=2"), how.get("locals_")
    given = "" if locals_ is None else f", of which the ranks hold {locals_},"
    check((held, names), lambda: moved([before], [after], **how),
          f"{x.astype(int).tolist()}{given} from {before} to {after} on {mesh}: what the ranks hold, and what ran")


def test_replicate_to_shard_is_a_slice():
    expect([[[1, 2, 3], [4, 5, 6]], [[7, 8, 9]]], [], R, S(0))
    expect([[[1, 2], [4, 5], [7, 8]], [[3], [6], [9]]], [], R, S(1))


def test_shard_to_replicate_gathers():
    expect([X.tolist()] * 2, ["all_gather"], S(0), R)
    expect([X.tolist()] * 2, ["all_gather"], S(1), R)


def test_shard_to_another_dimension_swaps():
    expect([[[1, 2], [4, 5], [7, 8]], [[3], [6], [9]]], ["all_to_all"], S(0), S(1))
    expect([[[1, 2, 3], [4, 5, 6]], [[7, 8, 9]]], ["all_to_all"], S(1), S(0))


def test_partial_to_replicate_adds():
    expect([[45.0]] * 2, ["all_reduce"], P, R, x=np.array([45.0]), locals_=[[10], [35]])


def test_partial_to_shard_adds_and_keeps_a_chunk():
    expect([[11.0, 22.0], [33.0]], ["reduce_scatter"], P, S(0), x=np.array([11.0, 22.0, 33.0]),
           locals_=[[1, 2, 3], [10, 20, 30]])


def test_replicate_to_partial_keeps_it_on_one_rank():
    parts, names = moved([R], [P], np.array([5.0]))
    check(([], 5.0), (names, sum(p[0] for p in parts)),
          f"[5] from {R} to {P} on tp=2: what ran, and the sum of what the ranks hold, {parts}")


def test_a_maximum_may_stay_everywhere():
    parts, names = moved([R], [Partial("max")], np.array([-5.0]))
    check(([], -5.0), (names, max(p[0] for p in parts)),
          f"[-5] from {R} to {Partial('max')} on tp=2: what ran, and the maximum of what the ranks hold, {parts}")


def test_an_axis_of_one_rank_needs_nothing():
    for before, after in ((S(0), R), (R, S(0)), (S(0), S(1)), (R, P)):
        expect([X.tolist()], [], before, after, mesh="tp=1")


def test_empty_chunks():
    x = np.array([[1], [2], [3], [4], [5]], "float32")
    expect([[[1], [2]], [[3], [4]], [[5]], []], [], R, S(0), x=x, mesh="tp=4")
    expect([x.tolist()] * 4, ["all_gather"], S(0), R, x=x, mesh="tp=4")


def test_two_axes_split_one_dimension():
    """A rank that has the rows 3 and 4 of 5 already cuts off the second of *them*."""
    x = np.arange(5, dtype="float32")
    check([[0, 1], [2], [3], [4]], lambda: moved([S(0), R], [S(0), S(0)], x, "dp=2,tp=2")[0],
          "arange(5) on dp=2,tp=2 from [Shard(0), Replicate()] to [Shard(0), Shard(0)]: what the ranks hold")
    check([[0, 1, 2], [0, 1, 2], [3, 4], [3, 4]], lambda: moved([S(0), S(0)], [S(0), R], x, "dp=2,tp=2")[0],
          "arange(5) on dp=2,tp=2 from [Shard(0), Shard(0)] to [Shard(0), Replicate()]: what the ranks hold")


def test_every_pair_on_two_axes():
    x, mesh = np.arange(15, dtype="float32").reshape(5, 3), parse_mesh("dp=2,tp=2")
    both = list(itertools.product([R, P, S(0), S(1)], repeat=2))
    for before, after in itertools.product(both, both):
        def run(grid, before=before, after=after):
            return reshard(shard_tensor(x, grid, before), grid, after).numpy()
        on = f"arange(15) as 5 x 3 on dp=2,tp=2 from {list(before)} to {list(after)}"
        check(x, lambda run=run: simulate(mesh, run)[3], f"{on}: the global value on rank 3")
        steps = collectives(plan(before, after, mesh, 2, x.shape))
        names = [name for name in moved(before, after, x, "dp=2,tp=2")[1] if name in COLLECTIVES]
        check(sorted(set(steps)), sorted(set(names)), f"{on}: the kinds of collectives that ran")
