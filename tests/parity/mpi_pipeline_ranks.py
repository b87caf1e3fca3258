"""A rank of the MPI parity test with stages (`minipd launch -n 4 -m tests.parity.mpi_pipeline_ranks eager static`):
raises if one of the ways named differs from numpy."""

from __future__ import annotations

import sys

import numpy as np

from minipd.dist.comm.connect import connect
from minipd.dist.mesh import parse_mesh
from minipd.framework.context import RankContext
from minipd.framework.rank import enter
from tests.parity.mpi_ranks import TOLERANCE
from tests.parity.pipeline_runs import FIVE, batches, pipeline_run
from tests.parity.runs import numpy_run


def check() -> None:
    comm = connect()
    enter(RankContext(comm.rank, comm.size, comm))
    data = batches(FIVE)
    expected = numpy_run(FIVE, data)
    for way in sys.argv[1:]:
        run = pipeline_run(FIVE, parse_mesh("pp=2,tp=2"), way, data, n_micro=3)
        np.testing.assert_allclose(run.losses, expected.losses, rtol=TOLERANCE)
        for what in ("gradients", "parameters"):
            got, want = getattr(run, what), getattr(expected, what)
            for name, value in got.items():
                np.testing.assert_allclose(value, want[name], rtol=0, atol=TOLERANCE * np.abs(want[name]).max(),
                                           err_msg=f"{what} of {name}")
            names = {name for other in comm.all_gather_object(list(got)) for name in other}
            assert names == want.keys(), f"{what} of other parameters: {names ^ want.keys()}"
        if comm.rank == 0:
            print(way, "equal on", comm.size, "ranks", run.counts)


if __name__ == "__main__":
    check()
