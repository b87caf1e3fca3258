"""Ranks of MPI that do not fit together, one case after the other: a script that MPI starts on three ranks.

Each case has a communicator of its own.  Rank 0 writes what each rank raised in it, as text.
"""

import json
import sys
import time

import numpy as np

X = np.ones(3)
ALL = (0, 1, 2)


def slow(comm):
    """Nothing is wrong: rank 1 only takes its time."""
    if comm.rank == 1:
        time.sleep(1.0)
    request = comm.start("recv", (comm.rank + 1) % 3)
    comm.send(X, (comm.rank - 1) % 3)
    return float(comm.all_reduce(X, ALL).sum() + request.wait().sum())


CASES = {
    "slow": slow,
    "shape": lambda c: c.all_reduce(np.ones(3 + (c.rank == 1)), ALL),
    "shape of a large one": lambda c: c.all_reduce(np.ones(300_000 + (c.rank == 1)), ALL),
    "dtype": lambda c: c.all_reduce(np.ones(3, "f4" if c.rank == 1 else "i4"), ALL),
    "op": lambda c: c.all_reduce(X, ALL, "max" if c.rank == 2 else "sum"),
    "axis": lambda c: c.all_gather(np.ones((2, 2)), ALL, int(c.rank == 0), (2, 2, 2)),
    "root": lambda c: c.broadcast(X, 0 if c.rank else 1, ALL),
    "kind": lambda c: c.all_reduce(X, ALL) if c.rank else c.barrier(),
    "pieces": lambda c: (c.all_to_all(X, ALL, 0, 0, (1, 1, 1), (1, 1, 1) if c.rank else (1, 2, 0)), c.barrier()),
    "groups": lambda c: c.all_reduce(X, ALL if c.rank else (0, 1)),
    "circle": lambda c: c.recv((c.rank + 1) % 3, tag=4),
    "one too few": lambda c: [c.all_reduce(X, ALL) for _ in range(3 - (c.rank == 1))] and c.close(),
    "no message": lambda c: c.recv(1) if c.rank != 1 else c.close(),
    "started": lambda c: (c.start("all_reduce", X, ALL), c.start("all_reduce", X[:2 + (c.rank == 0)], ALL))[1].wait(),
    "held up": lambda c: (c.start("all_reduce", X, ALL), c.recv(1))[1] if c.rank != 1 else c.recv(0),
}


def main(path):
    from mpi4py import MPI

    from minipd.dist.comm.connect import communicator_over
    from minipd.dist.comm.errors import CommError

    outcomes = {}
    for name, case in CASES.items():
        MPI.COMM_WORLD.Barrier()
        comm = communicator_over(MPI.COMM_WORLD)
        start = time.monotonic()
        try:
            outcome = repr(case(comm))
        except CommError as error:
            outcome = f"{type(error).__name__}: {error}"
        outcomes[name] = MPI.COMM_WORLD.gather((outcome, time.monotonic() - start < 20))
    if MPI.COMM_WORLD.rank == 0:
        with open(path, "w") as file:
            json.dump(outcomes, file)


if __name__ == "__main__":
    main(sys.argv[1])
