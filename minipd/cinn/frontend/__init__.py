"""Groups: which operators become one kernel.

    graph       who reads what, and what may be in a group
    grouping    the groups of a block
    build       groups as operations (`cinn_op.fusion`), and back
    interpret   what a group means
    traffic     bytes moved, counted
"""

from minipd.cinn.frontend.build import build_groups, inline
from minipd.cinn.frontend.interpret import run_group
from minipd.cinn.frontend.traffic import bytes_moved

__all__ = ["build_groups", "bytes_moved", "inline", "run_group"]
