"""Building the kernels of a program on all ranks, each only once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minipd.cinn.runtime.compiler import KernelError, content_key
from minipd.cinn.runtime.kernel import Version

__all__ = ["build_versions"]


def build_versions(versions: Sequence[Version], comm: Any = None) -> list[KernelError | None]:
    """Compile what is not on disk yet, shared out among the ranks; then every rank loads its own versions.

    All ranks of `comm` (a Communicator; None: this one only) call it, each with the versions of its own program; they
    need not be the same.  Two collectives: the keys are gathered, and a barrier separates compiling from loading.
    Where the folder cannot be written or is not shared, each rank compiles for itself.

    Returns: for each version the error if it could not be built, else None.
    """
    if comm is not None and comm.size > 1:
        own = {_key(v): v for v in versions
               if not v.kernel.compiler.has(v.kernel.function, v.kernel.source, v.strided)}
        wanted: dict[tuple, list[int]] = {}
        for rank, keys in enumerate(comm.all_gather_object(sorted(own))):
            for key in keys:
                wanted.setdefault(key, []).append(rank)
        # Kernels that several ranks want go round among them.
        for number, (key, ranks) in enumerate(sorted(wanted.items())):
            if ranks[number % len(ranks)] == comm.rank:
                _attempt(own[key])
        comm.barrier()
    return [_attempt(v) for v in versions]


def _key(version: Version) -> tuple[str, tuple[int, ...]]:
    """What is the same for versions of the same content, on all ranks."""
    kernel, strided = version
    return content_key(kernel.function, kernel.source), strided


def _attempt(version: Version) -> KernelError | None:
    try:
        version.build()
    except KernelError as error:
        return error
    return None
