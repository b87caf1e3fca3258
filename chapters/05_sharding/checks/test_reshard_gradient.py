"""The gradient of a reshard: the transposed communication, back to the placements and to the mesh that x has."""

import itertools

import numpy as np

from minipd.dist.api import dtensor_from_local, reshard, shard_tensor
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.simulate import simulate
from minipd.framework.rank import current
from tools.course.checking import check

R, P, S = Replicate(), Partial(), Shard
G = np.array([[1.0, 2.0], [3.0, 4.0]])


def spread(mesh, placements, stop_gradient=True):
    """G in these placements; as parts of a sum three quarters of it and a quarter."""
    if P not in placements:
        return shard_tensor(G, mesh, placements, stop_gradient=stop_gradient)
    t = dtensor_from_local(G * (0.25 if current().rank else 0.75), mesh, placements)
    t.stop_gradient = stop_gradient
    return t


def gradient(before, after, arrives):
    """(how the gradient of x is placed, its values, what ran in backward)."""
    def run(mesh):
        x = spread(mesh, [before], stop_gradient=False)
        y = reshard(x, mesh, [after])
        g = spread(mesh, [arrives])
        start = current().comm.counts.copy()
        y.backward(g)
        ran = sorted(current().comm.counts - start)
        return x.grad.placements[0], x.grad.numpy(), ran
    return simulate("tp=2", run, "float64")[1]


def expect(ran, before, after, arrives, placed=None):
    check((before if placed is None else placed, G, ran), lambda: gradient(before, after, arrives),
          f"x goes from {before} to {after} over tp=2, the gradient {G.astype(int).tolist()} comes back as {arrives}: "
          "how that of x is placed, its values on rank 1, and what ran for it")


def test_of_a_slice_it_is_a_gather():
    expect(["all_gather"], R, S(0), S(0))
    expect(["all_gather"], R, S(1), S(1))


def test_of_a_gather_it_is_a_reduce_scatter():
    """Each rank has used the whole, and has its own part of the gradient."""
    expect(["reduce_scatter"], S(0), R, P)
    expect(["reduce_scatter"], S(1), R, P)


def test_of_a_gather_whose_gradient_is_whole_it_is_a_slice():
    expect([], S(0), R, R)


def test_of_an_all_to_all_it_is_the_way_back():
    expect(["all_to_all"], S(0), S(1), S(1))
    expect(["all_to_all"], S(1), S(0), S(0))


def test_of_an_all_reduce_it_is_nothing():
    """y = a + b: the gradient of each part is that of y; nothing is to be sent, and it is no Partial."""
    expect([], P, R, R, placed=R)


def test_of_a_reduce_scatter_it_is_a_gather():
    expect(["all_gather"], P, S(0), S(0), placed=R)


def test_of_keeping_it_on_one_rank_it_is_the_whole():
    expect([], R, P, R)
    expect(["all_reduce"], R, P, P)


def test_every_pair():
    for before, after, arrives in itertools.product([R, P, S(0), S(1)], repeat=3):
        placed = R if before is P else before
        check((placed, G), lambda b=before, a=after, g=arrives: gradient(b, a, g)[:2],
              f"x goes from {before} to {after} over tp=2, the gradient {G.astype(int).tolist()} comes back as "
              f"{arrives}: how that of x is placed, and its values on rank 1")


def test_it_crosses_back_to_the_mesh_of_x():
    first, second = ProcessMesh([0, 1], ["tp"]), ProcessMesh([2, 3], ["tp"])

    def run(mesh):
        x = spread(first, [S(0)], stop_gradient=False)
        y = reshard(x, second, [S(1)])
        y.backward(spread(second, [S(1)]))
        g = x.grad
        return (g.process_mesh.process_ids, g.placements[0],
                g._local_value().tolist() if first.contains(current().rank) else "elsewhere")
    check([([0, 1], S(0), [[1.0, 2.0]]), ([0, 1], S(0), [[3.0, 4.0]]), ([0, 1], S(0), "elsewhere"),
           ([0, 1], S(0), "elsewhere")], lambda: simulate("x=4", run, "float64"),
          "x is Shard(0) on the ranks 0, 1, y is x as Shard(1) on the ranks 2, 3; the gradient of y is "
          f"{G.astype(int).tolist()}: of x's, by rank: its mesh, its placement, what is there")


def test_it_has_a_gradient_again():
    def run(mesh):
        from minipd.autograd.engine import grad
        x = spread(mesh, [S(0)], stop_gradient=False)
        y = reshard(x * x, mesh, [R])
        g, = grad([y.sum()], [x], create_graph=True)
        gg, = grad([(g * g).sum()], [x])            # g = 2 x, and of (2 x)^2 it is 8 x
        return gg.numpy()
    check(8 * G, lambda: simulate("tp=2", run, "float64")[0],
          f"x = {G.tolist()}, y = sum(reshard(x * x)), g = dy/dx: the gradient of sum(g * g), which is 8 x")
