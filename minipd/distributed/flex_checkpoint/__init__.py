"""`paddle.distributed.flex_checkpoint`."""

from minipd.distributed.flex_checkpoint import dcp

__all__ = ["dcp"]
