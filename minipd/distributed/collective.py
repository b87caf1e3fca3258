"""`paddle.distributed.collective`."""

from minipd.dist.group import (
    Group,
    is_available,
    is_initialized,
    new_group,
    restart_process_group,
    shutdown_process_group,
)

__all__ = ["Group", "is_available", "is_initialized", "new_group", "restart_process_group", "shutdown_process_group"]
