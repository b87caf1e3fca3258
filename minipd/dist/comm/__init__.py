"""Communication between ranks: numpy arrays in, numpy arrays out, one interface over two ways to run ranks.

    base.py        the interface, `Communicator`: what each collective means, and the checks of its arguments
    sim.py         all ranks in one process, one running at a time; `baton.py` decides which
    mpi.py         each rank a process, talking through MPI; `handshake.py` finds calls that do not match there
    reduction.py   the one way both add things up, so that both give the same bits
    calls.py       a call as the other ranks see it, and how messages show it
    errors.py      what goes wrong between ranks

A communicator is an explicit object: a function that communicates is given one, and nothing looks for a global one.
"""
