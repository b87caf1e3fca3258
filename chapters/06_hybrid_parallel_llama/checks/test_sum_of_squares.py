"""The sum of squares of all gradients: each element once, in enough digits, with one reduction per axis."""

import numpy as np

import minipd.distributed as dist
from minipd.dist.api import dtensor_from_local
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.simulate import simulate
from minipd.framework.rank import current
from minipd.nn.clip import ClipGradByGlobalNorm, global_norm, sum_of_squares
from minipd.ops.creation import to_tensor
from tools.course.checking import check

R, P, S = Replicate(), Partial(), Shard


def test_one_gradient():
    check(25.0, lambda: sum_of_squares([to_tensor([3.0, 4.0])]), "[[3, 4]]")


def test_several():
    check(29.0, lambda: sum_of_squares([to_tensor([3.0]), to_tensor([[4.0, 0.0]]), to_tensor(-2.0)]),
          "[3], [[4, 0]], -2")


def test_a_number_without_dimensions():
    check((), lambda: tuple(sum_of_squares([to_tensor([[3.0, 4.0]])]).shape), "[[3, 4]]: the shape of the sum")


def test_low_precision():
    """300 squared is 90000, and float16 ends at 65504."""
    check(("float32", 90000.0), lambda: described([to_tensor([300.0], "float16")]),
          "a float16 gradient [300]: dtype, sum")


def test_double_precision_stays():
    check(("float64", 1 + 1e-12), lambda: described([to_tensor([1.0, 1e-6], "float64")]),
          "float64 [1, 1e-6]: dtype, sum")
    check("float64", lambda: described([to_tensor([1.0]), to_tensor([1.0], "float64")])[0],
          "a float32 and a float64 gradient: the dtype of the sum")


def described(grads):
    total = sum_of_squares(grads)
    return str(total.numpy().dtype), float(total.numpy())


def placed(mesh, *pairs):
    """(the sum, how many collectives it took) on every rank, for gradients (values, placements)."""
    def run(grid):
        total = sum_of_squares([dist.shard_tensor(np.array(v), grid, list(p)) for v, p in pairs]).item()
        return total, sum(current().comm.counts.values())
    return simulate(mesh, run, np.dtype("float64"))


def test_what_all_ranks_have_counts_once():
    check([(9.0, 0)] * 2, lambda: placed("tp=2", ([3.0], [R])),
          "a replicated gradient [3] on two ranks: the sum on each, and "
          "how many reductions it took")


def test_a_gradient_in_shards():
    check([(16.0, 1)] * 2, lambda: placed("tp=2", ([4.0, 0.0], [S(0)])),
          "a gradient [4 | 0] split over two ranks: the sum "
          "on each, and how many reductions it took")


def test_both():
    """The norm is 5; it would be 5.83 if the replicated one counted on each rank."""
    check([(25.0, 1)] * 2, lambda: placed("tp=2", ([3.0], [R]), ([4.0, 0.0], [S(0)])),
          "a replicated gradient [3] and a split "
          "one [4 | 0] on two ranks: the sum on each, and how many reductions it took")


def test_parts_are_added_before_they_are_squared():
    """(1 + 2)^2 is not 1^2 + 2^2."""
    def run(grid):
        return sum_of_squares([dtensor_from_local(np.array([1.0 + current().rank]), grid, [P])]).item()
    check([9.0, 9.0], lambda: simulate("dp=2", run, np.dtype("float64")),
          "a gradient in the parts 1 | 2: the sum on each")


def test_all_sums_meet_before_they_are_reduced():
    """However many gradients are split over an axis, one reduction of one number serves all of them."""
    some = [([1.0, 2.0], [R, S(0)]), ([3.0], [R, R]), ([4.0, 5.0], [R, S(0)]), ([6.0], [R, R]), ([7.0, 8.0], [S(0), R])]
    check([(204.0, 2)] * 4, lambda: placed("dp=2,tp=2", *some),
          "five gradients, some split over dp, some over tp, some whole: "
          "the sum on each rank, and how many reductions it took (one for each axis will do)")


def test_clipping():
    def run(mesh):
        grads = [dist.shard_tensor(np.array([3.0]), mesh, [R]), dist.shard_tensor(np.array([4.0, 0.0]), mesh, [S(0)])]
        clipped = ClipGradByGlobalNorm(1.0).clip(grads)
        return global_norm(grads).item(), [g.tolist() for g in clipped]
    check([(5.0, [[0.6], [0.8, 0.0]])] * 2, lambda: simulate("tp=2", run, np.dtype("float64")),
          "the gradients [3] and [4 | 0] clipped to norm 1: their norm, and what becomes of them, on each rank")
