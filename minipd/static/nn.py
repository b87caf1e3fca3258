"""The names of `paddle.static.nn`."""

from minipd.static.control_flow import cond

__all__ = ["cond"]
