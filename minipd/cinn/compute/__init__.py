"""The column `compute`: what an operator computes, said for one element.

Rows that have it may be in a fusion group; the others stay library kernels.  `table` has the kinds of entries, `scalar`
what formulas are written with, `cost` what they cost; the other modules are the rows.
"""

from minipd.cinn.compute import elementwise, functions, indexed, reductions, shapes, update

__all__ = ["elementwise", "functions", "indexed", "reductions", "shapes", "update"]
