"""`paddle.distributed.fleet.utils`."""

from minipd.autograd.recompute import recompute

__all__ = ["recompute"]
