"""The main program of a rank that `spawn` started: `python -m minipd.dist.spawned FOLDER`.

The folder has the function and its arguments, and gets what the function returned or raised.
"""

from __future__ import annotations

import multiprocessing.process
import multiprocessing.spawn
import os
import pickle
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

from minipd.framework.environment import rank_and_size

__all__: list[str] = []


def _leave(folder: str, rank: int, what: str, value: Any) -> None:
    """Write a note for the process that spawned this rank; it comes into being whole."""
    path = Path(folder, f"{what}.{rank}")
    unfinished = path.with_name(f".{path.name}")
    unfinished.write_bytes(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
    unfinished.rename(path)


def _be_spawned(folder: str) -> None:
    """The main program of a spawned rank."""
    rank, _ = rank_and_size()
    _leave(folder, rank, "pid", os.getpid())
    try:
        with Path(folder, "call").open("rb") as file:
            preparation = pickle.load(file)
            multiprocessing.process.current_process()._inheriting = True       # type: ignore[attr-defined]
            multiprocessing.spawn.prepare(preparation)          # imports the main program, as __mp_main__
            func, args = pickle.load(file)
        del multiprocessing.process.current_process()._inheriting               # type: ignore[attr-defined]
        result = func(*args)
    except Exception:
        _leave(folder, rank, "error", traceback.format_exc())
        raise
    try:
        _leave(folder, rank, "result", result)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        warnings.warn(f"spawn: what rank {rank} returned cannot be pickled ({error}); it is not in return_queues",
                      stacklevel=1)


if __name__ == "__main__":
    _be_spawned(sys.argv[1])
