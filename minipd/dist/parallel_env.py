"""What a rank is told of itself: Paddle's names for it."""

from __future__ import annotations

import os

from minipd.framework.environment import rank_and_size
from minipd.framework.rank import current

__all__ = ["ParallelEnv", "ParallelMode"]


def own_rank() -> tuple[int, int]:
    """This rank and how many there are: of a rank that has joined the others, what it is; else of the environment."""
    ctx = current()
    return rank_and_size() if ctx.comm is None else (ctx.rank, ctx.world_size)


class ParallelEnv:
    """What Paddle's launchers tell a process, read when the object is made.

    `minipd launch`, `python -m minipd.distributed.launch` and `spawn` set the same variables.

    >>> env = ParallelEnv()
    >>> env.rank, env.world_size, env.device_id, env.nrings, env.pg_timeout
    (0, 1, 0, 1, 1800000)
    """

    def __init__(self) -> None:
        self._rank, self._world_size = own_rank()
        environ = os.environ
        self._device_id = int(environ.get("FLAGS_selected_gpus", "0").split(",")[0])
        self._current_endpoint = environ.get("PADDLE_CURRENT_ENDPOINT", "")
        self._trainer_endpoints = environ.get("PADDLE_TRAINER_ENDPOINTS", "").split(",")
        self._nrings = int(environ.get("FLAGS_nccl_nrings", "1"))
        if not 0 < self._nrings < 9:
            raise ValueError(f"ParallelEnv: expected FLAGS_nccl_nrings from 1 to 8, got {self._nrings}")
        self._pg_timeout = int(environ.get("PADDLE_PG_TIMEOUT", "1800000"))

    @property
    def rank(self) -> int:
        """The number of this rank, from 0 (`PADDLE_TRAINER_ID`)."""
        return self._rank

    @property
    def world_size(self) -> int:
        """How many ranks there are (`PADDLE_TRAINERS_NUM`)."""
        return self._world_size

    @property
    def device_id(self) -> int:
        """The number of this rank's GPU (`FLAGS_selected_gpus`); 0 on a CPU."""
        return self._device_id

    @property
    def device_type(self) -> str:
        """The kind of a custom device; there is none: ""."""
        return ""

    @property
    def current_endpoint(self) -> str:
        """This rank's `address:port` (`PADDLE_CURRENT_ENDPOINT`); MPI finds its ways without it."""
        return self._current_endpoint

    @property
    def trainer_endpoints(self) -> list[str]:
        """Every rank's `address:port` (`PADDLE_TRAINER_ENDPOINTS`)."""
        return self._trainer_endpoints

    @property
    def nrings(self) -> int:
        """How many rings NCCL uses (`FLAGS_nccl_nrings`); without effect here."""
        return self._nrings

    @property
    def pg_timeout(self) -> int:
        """Milliseconds that a group waits (`PADDLE_PG_TIMEOUT`); without effect here."""
        return self._pg_timeout

    local_rank, nranks, dev_id = rank, world_size, device_id


class ParallelMode:
    """Ways to divide a model among ranks (Paddle's numbers)."""

    DATA_PARALLEL, TENSOR_PARALLEL, PIPELINE_PARALLEL, SHARDING_PARALLEL, SEGMENT_PARALLEL = range(5)
