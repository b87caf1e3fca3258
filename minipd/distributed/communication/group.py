"""`paddle.distributed.communication.group`."""

from minipd.dist.collective import barrier, wait
from minipd.dist.group import Group, destroy_process_group, get_backend, get_group, is_initialized

__all__ = ["Group", "barrier", "destroy_process_group", "get_backend", "get_group", "is_initialized", "wait"]
