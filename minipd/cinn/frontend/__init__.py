"""The front end: which operators become one kernel.

    graph           who reads what, and what may be in a kernel
    detect          the parts of a program that are looked at (`cinn_op.group`)
    pattern         pattern kinds
    pattern_graph   patterns and their edges, and uniting two
    policies        why two are not united; `space`: the policy of one iteration space
    steps           who is united with whom, in which order
    tracker         what was decided, and why; `edges`: what came of it
    anchors         library calls that kernels finish
    grouping        the kernels of a part
    build           kernels to be as operations (`cinn_op.fusion`), and back
    interpret       what a group means
    traffic         bytes moved, counted
"""

from minipd.cinn.frontend.build import build_groups, cluster_groups, inline
from minipd.cinn.frontend.detect import detect_groups
from minipd.cinn.frontend.interpret import run_group
from minipd.cinn.frontend.tracker import FusionTracker
from minipd.cinn.frontend.traffic import bytes_moved

__all__ = ["FusionTracker", "build_groups", "bytes_moved", "cluster_groups", "detect_groups", "inline", "run_group"]
