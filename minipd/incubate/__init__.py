"""Paddle's names for what it calls incubating: functional derivatives in `incubate.autograd`."""

from minipd.incubate import autograd

__all__ = ["autograd"]
