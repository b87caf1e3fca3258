"""What the lesson claims, held to account: on simulated ranks, under MINIPD_FLOOR=5."""

import itertools
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import minipd as paddle
import minipd.distributed as dist
from minipd.dist.api import dtensor_from_local
from minipd.dist.comm.sim import World
from minipd.dist.completion import complete
from minipd.dist.mesh import parse_mesh
from minipd.dist.partition import partition
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.reshard.plan import collectives, plan
from minipd.dist.sharding import local_window
from minipd.dist.simulate import simulate
from minipd.executor import Executor
from minipd.framework.context import using
from minipd.framework.meta import Meta
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.ir.program import Program
from minipd.ir.trace import Trace

F = paddle.nn.functional
R, P, S = Replicate(), Partial(), Shard
F64 = np.dtype("float64")


def names(log):
    return [line.partition("#")[0] for line in log]


@pytest.mark.parametrize("x, w, result", [(S(0), R, S(0)), (R, S(1), S(1)), (S(1), S(0), P), (R, R, R)])
def test_the_four_ways_to_split_a_product_need_no_message(x, w, result):
    log = []
    found = simulate("tp=2", lambda mesh: (dist.shard_tensor(np.ones((4, 6)), mesh, [x])
                                           @ dist.shard_tensor(np.ones((6, 8)), mesh, [w])).placements, log=log)
    assert found == [[result]] * 2
    assert log == []


def test_two_layers_of_a_perceptron_need_one_all_reduce():
    """Column parallel, then row parallel: what is between them is split, and never whole."""
    random = np.random.default_rng(5)
    x, w, v = random.normal(size=(3, 4)), random.normal(size=(4, 8)), random.normal(size=(8, 4))
    log = []

    def layers(mesh):
        h = F.silu(dist.shard_tensor(x, mesh, [R]) @ dist.shard_tensor(w, mesh, [S(1)]))
        return h.placements, (h @ dist.shard_tensor(v, mesh, [S(0)])).numpy()
    for placed, y in simulate("tp=2", layers, F64, log):
        h = x @ w
        np.testing.assert_allclose(y, (h / (1 + np.exp(-h))) @ v, rtol=1e-12)
        assert placed == [S(1)]
    assert names(log) == ["all_reduce"]


def test_windows_tile_the_tensor():
    for mesh, shape in itertools.product(("dp=2,tp=2", "dp=3", "dp=2,tp=3"), ((5, 4), (1, 7), (6, 6))):
        grid = parse_mesh(mesh)
        for placements in itertools.product([S(0), S(1)], repeat=grid.ndim):
            owned = np.zeros(shape, int)
            for rank in grid.process_ids:
                sizes, offsets = local_window(shape, grid, placements, rank)
                owned[tuple(slice(o, o + n) for o, n in zip(offsets, sizes, strict=True))] += 1
            assert (owned == 1).all()


def test_the_mean_divides_by_the_global_count():
    def means(mesh):
        uneven = dist.shard_tensor(np.arange(12.0).reshape(3, 4), mesh, [S(0)]).mean().item()
        with_an_empty_rank = dist.shard_tensor(np.arange(4.0).reshape(1, 4), mesh, [S(0)]).mean().item()
        return uneven, with_an_empty_rank
    assert simulate("dp=2", means, F64) == [(5.5, 1.5)] * 2


@pytest.mark.parametrize("function, parts, expected", [
    (lambda x: x + 10, (10.0, 35.0), 55.0), (lambda x: 10 - x, (10.0, 35.0), -35.0),
    (F.relu, (-3.0, 5.0), 2.0), (paddle.square, (1.0, 2.0), 9.0), (lambda x: x * 2, (10.0, 35.0), 90.0)])
def test_what_a_partial_meets(function, parts, expected):
    def run(mesh):
        return function(dtensor_from_local(np.array(parts[current().rank]), mesh, [P])).item()
    assert simulate("tp=2", run, F64) == [expected] * 2


def test_a_loss_over_split_classes_sends_three_numbers_for_each_row():
    random = np.random.default_rng(5)
    x, labels = random.normal(size=(3, 7)), np.array([6, 0, 3])
    log = []

    def loss(mesh):
        split = dist.shard_tensor(x, mesh, [S(1)])
        return F.cross_entropy(split, paddle.to_tensor(labels), reduction="none").numpy()
    right = np.log(np.exp(x).sum(1)) - x[range(3), labels]
    np.testing.assert_allclose(simulate("tp=3", loss, F64, log), [right] * 3, rtol=1e-12)
    assert [line.partition(")")[0] for line in log] == [
        "all_reduce#0(f64[3, 1], op=max", "all_reduce#1(f64[3, 1], op=sum", "all_reduce#2(f64[3, 1], op=sum"]


def test_a_reshape_keeps_what_stays_in_a_row():
    def run(mesh):
        by = [dist.shard_tensor(np.arange(8.0).reshape(2, 4), mesh, [S(d)]).reshape([8]) for d in (0, 1)]
        return [(y.placements, y.numpy().tolist()) for y in by]
    assert simulate("tp=2", run, F64) == [[([S(0)], [*range(8)]), ([R], [*range(8)])]] * 2


@pytest.mark.parametrize("before, after, arrives, backward", [
    (R, S(0), S(0), "all_gather"), (S(0), R, P, "reduce_scatter"), (S(0), S(1), S(1), "all_to_all"),
    (P, S(0), S(0), "all_gather"), (P, R, R, "")])
def test_the_gradient_of_a_reshard_is_the_transposed_collective(before, after, arrives, backward):
    def run(mesh):
        def spread(placed):
            whole = np.arange(16.0).reshape(4, 4)
            return dtensor_from_local(whole / 2, mesh, [P]) if placed is P else dist.shard_tensor(whole, mesh, [placed])
        x, comm = spread(before), current().comm
        x.stop_gradient = False
        y, g = dist.reshard(x, mesh, [after]), spread(arrives)
        comm.counts.clear()
        y.backward(g)
        return " ".join(comm.counts), x.grad.placements, x.grad.numpy().tolist()
    placed = [R] if before is P else [before]
    assert simulate("tp=2", run, F64) == [(backward, placed, np.arange(16.0).reshape(4, 4).tolist())] * 2


def test_two_layers_send_twice_the_size_of_x_in_a_step():
    log = []

    def step(mesh):
        x = dist.shard_tensor(np.ones((4, 8)), mesh, [R], stop_gradient=False)
        w = dist.shard_tensor(np.ones((8, 32)), mesh, [S(1)], stop_gradient=False)
        v = dist.shard_tensor(np.ones((32, 8)), mesh, [S(0)], stop_gradient=False)
        y = dist.reshard(F.relu((x * 1.0) @ w) @ v, mesh, [R])
        y.sum().backward()
        return w.grad.placements, v.grad.placements
    assert simulate("tp=2", step, F64, log) == [([S(1)], [S(0)])] * 2
    assert [line.partition(",")[0] + line.partition(",")[2][:3] for line in log] == [
        "all_reduce#0(f64[4 8]", "all_reduce#1(f64[4 8]"]


def test_inner_axes_are_gathered_first():
    x = np.arange(4.0)
    steps = plan((S(0), S(0)), (R, S(0)), parse_mesh("dp=2,tp=2"), 1)
    assert collectives(steps) == ("all_gather", "all_gather")

    def run(mesh):
        return dist.reshard(dist.shard_tensor(x, mesh, [S(0), S(0)]), mesh, [R, S(0)])._local_value().tolist()
    assert simulate("dp=2,tp=2", run, F64) == [[0, 1], [2, 3], [0, 1], [2, 3]]


def test_the_gradient_of_a_replicated_weight_over_split_data():
    def run(mesh):
        w = dist.shard_tensor(np.array(1.0), mesh, [R], stop_gradient=False)
        ((w * w + 1) * dist.shard_tensor(np.array([0.0, 1.0]), mesh, [S(0)])).sum().backward()
        return w.grad.item()
    assert simulate("dp=2", run, F64) == [2.0, 2.0]


@pytest.mark.parametrize("x, w, forward, of_x", [
    ([S(1)], [S(0)], ["all_reduce"], [S(1)]),       # row parallel: the sum is due in forward
    ([R], [S(1)], [], [P])])                        # column parallel: in backward, for the gradient of x
def test_where_the_messages_of_a_layer_are(x, w, forward, of_x):
    def run(mesh):
        a = dist.shard_tensor(np.ones((4, 6)), mesh, x, stop_gradient=False)
        b = dist.shard_tensor(np.ones((6, 8)), mesh, w, stop_gradient=False)
        y = F.relu(a @ b)
        before = dict(current().comm.counts)
        y.sum().backward()
        return list(before), current().comm.counts == before, a.grad.placements, b.grad.placements
    # a Partial gradient of a leaf is not summed before somebody needs it
    assert simulate("tp=2", run, F64) == [(forward, True, of_x, w)] * 2


def test_a_partitioned_program_does_what_eager_ranks_do():
    random = np.random.default_rng(5)
    x, w = random.normal(size=(4, 2)), random.normal(size=(2, 6))
    program, mesh = Program(), parse_mesh("dp=2,tp=2")
    trace = Trace(program)
    with using(ground=trace, middle=None, grad=False):
        a, b = Tensor(trace.input("x", Meta((4, 2), F64))), Tensor(trace.input("w", Meta((2, 6), F64)))
        trace.build.output("y", F.relu(a @ b).payload)
    marks = {"x": (S(0), S(1)), "w": (R, S(0))}
    complete(program, mesh, lambda op: marks[op.attributes["name"].value])
    eager_log, static_log = [], []

    def eager(grid):
        y = F.relu(dist.shard_tensor(x, grid, marks["x"]) @ dist.shard_tensor(w, grid, marks["w"]))
        return y._local_value().numpy()

    def static(grid):
        rank = current().rank
        feed = {}
        for name, whole in (("x", x), ("w", w)):
            sizes, offsets = local_window(whole.shape, grid, marks[name], rank)
            feed[name] = whole[tuple(slice(o, o + n) for o, n in zip(offsets, sizes, strict=True))]
        return Executor(partition(program, grid, rank)).run(feed)["y"]
    np.testing.assert_array_equal(simulate(mesh, static, F64, static_log), simulate(mesh, eager, F64, eager_log))
    assert sorted(static_log) == sorted(eager_log) != []


def test_ranks_that_do_not_fit_together_are_told_so():
    call = r"rank {} called all_reduce#0\(f64\[{}\]"
    with pytest.raises(RuntimeError, match=call.format(0, 3) + r".*\n.*" + call.format(1, 4)):
        World(2).run(lambda comm: comm.all_reduce(np.ones(3 + comm.rank), (0, 1)))


def test_the_pictures_are_those_of_the_drawers():
    """But for the style sheet, which may change without the picture."""
    img = Path(__file__).parents[1] / "img"
    for name, picture in runpy.run_path(str(img / "draw.py"))["pictures"]().items():
        drawn, here = (re.sub("<style>.*?</style>", "", text, flags=re.DOTALL)
                       for text in (picture.svg, (img / name).read_text()))
        assert drawn == here, f"{name} is older than what draws it: run {img / 'draw.py'}"
