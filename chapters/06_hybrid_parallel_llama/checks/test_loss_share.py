"""Each rank's part of the loss: the parts of all ranks add up to it."""

import itertools

import numpy as np

from minipd.dist.api import dtensor_from_local
from minipd.dist.placements import Partial, Replicate
from minipd.dist.simulate import simulate
from minipd.framework.rank import current
from minipd.parallel.step import Step
from tools.course.checking import check

R, P = Replicate(), Partial()


def shares(mesh, placements, held, read_first=False):
    """What each rank says of a loss of which it holds held[rank]."""
    def run(grid):
        loss = dtensor_from_local(np.array(held[current().rank]), grid, placements)
        if read_first:
            loss.item()                                     # which reduces it
        step = object.__new__(Step)
        step.mesh = grid
        return float(step.share(loss.payload))
    return simulate(mesh, run, np.dtype("float64"))


def expect(total, mesh, placements, held, **how):
    note = ", after somebody has read it" if how else ""
    got = shares(mesh, placements, held, **how)
    check(total, sum(got), f"a loss placed {placements} on {mesh}, of which the ranks hold {held}{note}: the sum of "
          f"what the ranks say, {got}")


def test_one_rank():
    expect(7.0, "dp=1", [R], [7.0])


def test_parts_of_a_sum():
    expect(7.0, "dp=2", [P], [3.0, 4.0])


def test_what_all_have_is_said_once():
    expect(7.0, "tp=2", [R], [7.0, 7.0])


def test_parts_over_dp_that_are_the_same_over_tp():
    expect(7.0, "dp=2,tp=2", [P, R], [3.0, 3.0, 4.0, 4.0])
    expect(7.0, "tp=2,dp=2", [R, P], [3.0, 4.0, 3.0, 4.0])


def test_parts_over_both():
    expect(10.0, "dp=2,tp=2", [P, P], [1.0, 2.0, 3.0, 4.0])


def test_a_part_that_is_not_zero_on_a_single_rank_only():
    check([1.0, 2.0], lambda: shares("dp=2", [P], [1.0, 2.0]),
          "a loss placed [Partial] on dp=2, of which the ranks hold "
          "[1, 2]: what each rank says")


def test_a_loss_that_somebody_has_read():
    """Reading adds the parts up; from then on every rank holds the whole."""
    expect(7.0, "dp=2", [P], [3.0, 4.0], read_first=True)
    expect(7.0, "dp=2,tp=2", [P, R], [3.0, 3.0, 4.0, 4.0], read_first=True)


def test_every_mesh():
    for sizes in ((2, 3), (3, 2), (1, 4), (2, 2)):
        mesh = f"dp={sizes[0]},tp={sizes[1]}"
        for placements in itertools.product([R, P], repeat=2):
            parts = np.random.default_rng(6).integers(1, 9, [n if p is P else 1 for n, p in zip(sizes, placements,
                                                                                             strict=True)])
            held = np.broadcast_to(parts, sizes).ravel().astype(float).tolist()
            expect(float(parts.sum()), mesh, list(placements), held)


def test_a_rank_without_a_part():
    """On a pipeline only the last stage has the loss."""
    check(0.0, lambda: float(object.__new__(Step).share(None)), "None")
