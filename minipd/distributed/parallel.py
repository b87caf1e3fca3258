"""`paddle.distributed.parallel`."""

from minipd.dist.group import get_rank, get_world_size, init_parallel_env
from minipd.dist.parallel_env import ParallelEnv

__all__ = ["ParallelEnv", "get_rank", "get_world_size", "init_parallel_env"]
