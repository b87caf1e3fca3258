"""What must be in the environment before numpy is imported.

numpy's OpenBLAS and numba read their thread counts once, when they are loaded.  Four ranks on two cores that each start
two BLAS threads spend their time taking turns, so whoever starts ranks (the command line, the launcher) gives each its
share beforehand.  This module imports neither numpy nor anything of minipd, so it can run first.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

__all__: list[str] = []

#: How each library calls "use this many threads".
THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
                    "NUMBA_NUM_THREADS")


def available_cores() -> int:
    """The cores that this process may use: a container or `taskset` may allow fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def rank_environment(ranks: int, cores: int | None = None) -> dict[str, str]:
    """The variables for each of `ranks` processes on a machine with `cores` cores (default: those available).

    >>> rank_environment(4, cores=8)["OMP_NUM_THREADS"]
    '2'
    >>> rank_environment(4, cores=2)["OMP_NUM_THREADS"]
    '1'
    """
    cores = cores or available_cores()
    variables = dict.fromkeys(THREAD_VARIABLES, str(max(1, cores // ranks)))
    # An idle BLAS thread spins for 2^n cycles before it sleeps, by default 2^26: it would hold a core that the
    # compiled kernels' threads want.  2^4 is the least that OpenBLAS takes.
    variables["OPENBLAS_THREAD_TIMEOUT"] = "4"
    # glibc gives large arrays back to the system when they die, and every new one then costs page faults, a fifth of an
    # eager training step.  Kept in the process, their memory serves the next operator.
    variables["MALLOC_MMAP_THRESHOLD_"] = str(1 << 30)
    variables["MALLOC_TRIM_THRESHOLD_"] = str(1 << 40)
    if ranks > cores:
        # A rank that waits must let the others run; MPICH otherwise spins on its core.
        variables["MPIR_CVAR_ENABLE_HEAVY_YIELD"] = "1"
    return variables


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where what is expensive to make is kept between runs: `MINIPD_CACHE`, else minipd's folder in the user's cache.

    The folder may not exist yet.

    >>> str(cache_folder({"MINIPD_CACHE": "somewhere"}))
    'somewhere'
    """
    if environ.get("MINIPD_CACHE"):
        return Path(environ["MINIPD_CACHE"])
    base = environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "minipd"


def missing(wanted: Mapping[str, str], environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Those of `wanted` that `environ` does not set: what the user has set is left alone.

    >>> missing({"OMP_NUM_THREADS": "2", "OPENBLAS_THREAD_TIMEOUT": "4"}, {"OMP_NUM_THREADS": "1"})
    {'OPENBLAS_THREAD_TIMEOUT': '4'}
    """
    return {name: value for name, value in wanted.items() if name not in environ}


#: Names the variables that `restart_prepared` has set, so that a launcher can tell them from the user's.
PREPARED = "MINIPD_PREPARED"


def of_the_user(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment without what `restart_prepared` has put there for this one process.

    The shares of a single rank, passed on to four, would start eight threads on two cores.

    >>> of_the_user({"OMP_NUM_THREADS": "2", "HOME": "here", "MINIPD_PREPARED": "OMP_NUM_THREADS"})
    {'HOME': 'here'}
    """
    ours = {PREPARED, *environ.get(PREPARED, "").split(",")}
    return {name: value for name, value in environ.items() if name not in ours}


def restart_prepared(module: str, argv: list[str]) -> None:
    """Replace this process by `python -m module argv...` with the environment of a single rank.

    Returns at once where nothing is missing, as it is in the restarted process.  Setting the variables here would be
    too late: importing any module of the package has loaded numpy.
    """
    variables = missing(rank_environment(ranks=1))
    if variables:
        sys.stdout.flush()
        sys.stderr.flush()
        os.execve(sys.executable, [sys.executable, "-m", module, *argv],
                  {**os.environ, **variables, PREPARED: ",".join(variables)})


#: Variables that `minipd launch`, and the mpiexec of MPICH and of Open MPI, give to the processes they start.
STARTED = ("MINIPD_RANKS", "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
#: The process that a launcher started as a rank.  One that the rank starts inherits its variables, and is no rank.
PROCESS = "MINIPD_RANK_PROCESS"

_RANK = ("PADDLE_TRAINER_ID", "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
_SIZE = ("PADDLE_TRAINERS_NUM", "MINIPD_RANKS", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE")


def is_started(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a launcher started this process, as one of its ranks.

    >>> is_started({}), is_started({"MINIPD_RANKS": "2"}), is_started({"PMI_RANK": "0", "MINIPD_RANK_PROCESS": "1"})
    (False, True, False)
    """
    return not environ.keys().isdisjoint(STARTED) and environ.get(PROCESS, str(os.getpid())) == str(os.getpid())


def rank_and_size(environ: Mapping[str, str] = os.environ) -> tuple[int, int]:
    """This rank and how many there are, as far as the environment says: (0, 1) if it says nothing.

    >>> rank_and_size({"PADDLE_TRAINER_ID": "3", "PADDLE_TRAINERS_NUM": "4"})
    (3, 4)
    """
    def first(names: tuple[str, ...], default: int) -> int:
        return next((int(environ[name]) for name in names if name in environ), default)
    return first(_RANK, 0), first(_SIZE, 1)
