"""Reshard plans against the operations that Paddle 3.3.1 inserts (tests/golden/reshard.jsonl.xz)."""

import collections
import json
import lzma
from pathlib import Path

import numpy as np

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.reshard.plan import COLLECTIVES, plan

GOLDEN = Path(__file__).parents[1] / "golden" / "reshard.jsonl.xz"


def placement(text):
    if text == "R":
        return Replicate()
    return Shard(int(text[1:])) if text[0] == "S" else Partial(text[1:].lower() or "sum")


def paddles(row, mesh):
    """The (collective, mesh axis) pairs among Paddle's operations."""
    found = []
    for op in row["ops"]:
        name = op["op"].removeprefix("pd_op.")
        if name in COLLECTIVES:
            axis = next(a for a in range(mesh.ndim) if list(mesh.group(row["rank"], a)) == op["group"])
            found.append((name, axis))
    return found


def test_the_same_collectives_on_the_same_axes_or_better_ones():
    """Paddle takes axes from the innermost to the outermost and knows S -> S' only on a 1-D mesh.  The plan never has
    more collectives; where they differ, an all-to-all takes the place of an all-gather and a slice, or a Partial
    shard is reduced before it is gathered and not after."""
    counts = collections.Counter()
    for row in (json.loads(line) for line in lzma.open(GOLDEN, "rt")):
        mesh = ProcessMesh(np.array(row["src_mesh"]))
        src, dst = (tuple(map(placement, row[side])) for side in ("src", "dst"))
        ours = [(s.action, s.axis) for s in plan(src, dst, mesh, len(row["shape"])) if s.action in COLLECTIVES]
        if "error" in row:
            counts["Paddle refuses"] += 1
            continue
        theirs = paddles(row, mesh)
        assert len(ours) <= len(theirs)
        if ours == theirs:
            counts["same"] += 1
        elif sorted(ours) == sorted(theirs):
            counts["same in a cheaper order"] += 1
        elif sorted(("all_gather" if name == "all_to_all" else name, axis) for name, axis in ours) == sorted(theirs):
            counts["all-to-all for gather and slice"] += 1
        else:
            swapped = [("all_reduce" if name == "reduce_scatter" else name, axis) for name, axis in theirs]
            assert sorted(ours) == sorted(swapped)
            counts["reduced before it is gathered"] += 1
    assert counts == {"same": 179, "same in a cheaper order": 34, "all-to-all for gather and slice": 49,
                      "reduced before it is gathered": 5, "Paddle refuses": 3}
