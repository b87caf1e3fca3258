"""A rank of the MPI parity test (`minipd launch -n 4 -m tests.parity.mpi_ranks eager static cinn`): raises if one of
the ways named differs from numpy."""

from __future__ import annotations

import sys

import numpy as np

from minipd.dist.comm.connect import connect
from minipd.dist.mesh import parse_mesh
from minipd.framework.context import RankContext
from minipd.framework.rank import enter
from tests.models.llamas import TIED
from tests.parity.runs import mesh_run, numpy_run

#: float32, in another order of summation on every mesh: of each tensor's largest value, after five steps
TOLERANCE = 1e-4


def check() -> None:
    comm = connect()
    enter(RankContext(comm.rank, comm.size, comm))
    expected = numpy_run(TIED)
    for way in sys.argv[1:]:
        run = mesh_run(TIED, parse_mesh("dp=2,tp=2"), way, n_micro=2)
        np.testing.assert_allclose(run.losses, expected.losses, rtol=TOLERANCE)
        for name, value in expected.parameters.items():
            np.testing.assert_allclose(run.gradients[name], expected.gradients[name], rtol=0,
                                       atol=TOLERANCE * np.abs(expected.gradients[name]).max(), err_msg=name)
            np.testing.assert_allclose(run.parameters[name], value, rtol=0, atol=TOLERANCE * np.abs(value).max(),
                                       err_msg=name)
        others = comm.all_gather_object(run.replicated)
        assert all(o == others[0] for o in others), "replicated parameters differ between ranks"
        assert run.collectives == comm.all_gather_object(run.collectives)[0]
        if comm.rank == 0:
            print(way, "equal on", comm.size, "ranks", run.collectives)


if __name__ == "__main__":
    check()
