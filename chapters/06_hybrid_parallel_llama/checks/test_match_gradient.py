"""What a gradient owes its parameter: the parameter's placements."""

import numpy as np

import minipd.distributed as dist
from minipd.dist.api import dtensor_from_local
from minipd.dist.dialect import placement_text
from minipd.dist.mesh import parse_mesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.simulate import simulate
from minipd.dist.spmd import infer
from minipd.framework.rank import current
from minipd.framework.row import ROWS
from tools.course.checking import check

R, P, S = Replicate(), Partial(), Shard
MATCH = ROWS["match"]


def text(placements):
    return ", ".join(map(placement_text, placements))


def expect(gradient, parameter, result, mesh="dp=2"):
    def placed():
        got = infer(MATCH, (np.zeros((4, 6)), np.zeros((4, 6))), (gradient, parameter), {}, parse_mesh(mesh))
        return f"becomes {text(got.inputs[0])}, and is {text(got.outputs[0])}"
    check(f"becomes {text(result)}, and is {text(result)}", placed,
          f"a gradient placed [{text(gradient)}] of a parameter placed [{text(parameter)}] on {mesh}")


def test_parts_of_a_replicated_parameters_gradient_are_summed():
    expect([P], [R], [R])


def test_where_all_ranks_have_the_same_nothing_is_summed():
    expect([R], [R], [R])


def test_a_sharded_parameter_has_a_sharded_gradient():
    expect([S(0)], [S(0)], [S(0)])


def test_parts_of_a_sharded_parameters_gradient():
    """That is ZeRO: each rank gets the sum of its own rows only, by a reduce_scatter."""
    expect([P], [S(0)], [S(0)])


def test_a_whole_gradient_of_a_sharded_parameter_is_sliced():
    expect([R], [S(1)], [S(1)])


def test_what_is_partial_itself_reads_as_replicated():
    """A hidden state may be Partial; were its gradient too, every operator further back would add it up anew."""
    expect([P], [P], [R])
    expect([R], [P], [R])


def test_every_axis_by_itself():
    expect([P, R], [R, R], [R, R], "dp=2,tp=2")
    expect([P, S(1)], [R, S(1)], [R, S(1)], "dp=2,tp=2")
    expect([P, P], [R, S(0)], [R, S(0)], "dp=2,tp=2")


def after(parts, gradient, parameter):
    """(what each rank holds in the end, what ran) for a gradient of which the ranks hold `parts`."""
    log = []

    def run(mesh):
        g = dtensor_from_local(np.array(parts[current().rank]), mesh, [gradient])
        p = dist.shard_tensor(np.zeros(len(parts[0])), mesh, [parameter])
        return MATCH(g, p)._local_value().tolist()
    return simulate(f"dp={len(parts)}", run, log=log), [line.partition("#")[0] for line in log]


def test_a_sum_and_not_a_mean():
    """The loss is divided by the tokens of the *whole* batch, so the parts add up; a mean would be half of it."""
    check(([[40.0, 50.0]] * 2, ["all_reduce"]), lambda: after([[4.0, 7.0], [36.0, 43.0]], P, R),
          "parts [4, 7] | [36, 43] of the gradient of a replicated parameter: what the ranks hold, and what ran")


def test_nothing_to_do_runs_nothing():
    check(([[40.0, 50.0]] * 2, []), lambda: after([[40.0, 50.0]] * 2, R, R),
          "a gradient [40, 50] that both ranks have, of a replicated parameter: what the ranks hold, and what ran")


def test_half_the_traffic_for_a_sharded_parameter():
    check(([[40.0], [50.0]], ["reduce_scatter"]), lambda: after([[4.0, 7.0], [36.0, 43.0]], P, S(0)),
          "parts [4, 7] | [36, 43] of the gradient of a parameter split over the ranks: what they hold, and what ran")


def test_the_weight_of_a_norm_whose_rows_are_split():
    """The case that confuses people: the weight is the same everywhere, its gradient is not."""
    def run(mesh):
        x = dist.shard_tensor(np.arange(8.0).reshape(4, 2), mesh, [S(0)])
        g = dist.shard_tensor(np.repeat([[1.0], [2.0], [3.0], [4.0]], 2, axis=1), mesh, [S(0)])
        w = dist.shard_tensor(np.ones(2), mesh, [R], stop_gradient=False)
        (x * w * g).sum().backward()
        return MATCH(w.grad, w)._local_value().tolist()
    check([[40.0, 50.0]] * 2, lambda: simulate("tp=2", run),
          "y = x w with x = arange(8) in 4 rows split over two ranks, "
          "gradient of y 1, 2, 3, 4 row by row: that of w on each rank")
