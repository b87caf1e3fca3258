"""The column `compute`: what an operator computes, said for one element.

Rows that have it may be in a fusion group; the others stay library kernels.  See `table` for the kinds of entries.
"""

from minipd.cinn.compute import elementwise, functions, indexed, reductions, shapes, update

__all__ = ["elementwise", "functions", "indexed", "reductions", "shapes", "update"]
