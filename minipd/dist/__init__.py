"""Distribution: one global program over many ranks.

    mesh.py         which ranks there are, and how they are arranged
    placements.py   what each mesh axis holds of a tensor: Shard, Replicate, Partial
    sharding.py     the one rule that says which rank owns which elements, and the notation for it
    spmd/           which placements an operator needs, and which its results get
    reshard/        the steps from one set of placements to another, and the messages from one mesh to another

These are pure: they see shapes and placements, never data and no communicator.  On them stand

    value.py        what a rank holds of a global value
    interpreter.py  an operator call on distributed values; methods.py and api/ are how users see it
    crossing.py     how a value goes to another mesh, and what ranks have that are not in it
    completion.py   placements for every value of a global program
    partition.py    and the program of one rank; control_flow.py: branches and loops, for both
    static/         programs in stages that print and draw, and `to_static`
    comm/           how ranks talk: simulated in one process, or through MPI
    launch.py       starts ranks as processes, on this host or others (hosts.py); worker.py is such a process, spawn.py
                    starts them for a function
    checkpoint/     states saved on one mesh and loaded on another
    joining.py      how a process that was started finds the other ranks, and leaves them
    group.py        ranks that know each other; collective/: Paddle's collectives on ordinary tensors
"""

import sys
import types
from typing import Any

from minipd.ops.matrices.norms import dist


class _Package(types.ModuleType):
    """Paddle has a function of this name, `paddle.dist(x, y)`, the norm of a difference: so the package is callable."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return dist(*args, **kwargs)


sys.modules[__name__].__class__ = _Package
