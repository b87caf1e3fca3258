"""Communication between ranks: numpy arrays in, numpy arrays out, one interface over the ways to run ranks.

    base.py        the interface, `Communicator`: what each collective means, and the checks of its arguments
    request.py     what has been started and need not be over
    sim.py         all ranks in one process, one running at a time; `baton.py` decides which, in `meeting.py` they meet,
                   `mail.py` has their messages, `combine.py` does the work, `record.py` says what was done;
                   `faults.py`: what goes wrong on purpose; `links.py`: what it would take
    mpi.py         each rank a process, talking through MPI; `steps.py`: what a collective sends, `shared.py`: through
                   memory; `inquest.py` finds out why a wait is long, `handshake.py` compares calls before
    nccl.py        arrays on GPUs, through CuPy
    connect.py     a process gets its communicator, over MPI or NCCL
    reduction.py   the one way sim and mpi add things up, so that both give the same bits
    calls.py       a call as the other ranks see it, and how messages show it
    verdict.py     who waits for whom, and whether that can end
    errors.py      what goes wrong between ranks

A communicator is an explicit object: a function that communicates is given one, and nothing looks for a global one.
"""
