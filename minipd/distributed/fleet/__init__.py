"""Paddle's names for hybrid parallelism: `from minipd.distributed import fleet`."""

from minipd.autograd.recompute import recompute
from minipd.distributed import auto_parallel as auto
from minipd.distributed.fleet import utils

__all__ = ["auto", "recompute", "utils"]
