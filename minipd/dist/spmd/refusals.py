"""Placements that Paddle's rules refuse, and minipd's do not: for a strategy that is tried here and is to run there.

With `FLAGS_refuse_as_paddle` such a call raises (where it is placed for the first time).

* One dimension of the result, split by different mesh axes in two operands: here it is split by both.
* One mesh axis that splits the ids of an embedding and its table: here one of them is gathered.
* A cross entropy over split classes that are not the last dimension; an image whose channels are not split as the
  filter's: here the loss decomposes, and the filter follows.

>>> import numpy as np
>>> from minipd.dist.mesh import parse_mesh
>>> from minipd.dist.placements import Replicate, Shard
>>> from minipd.framework.row import ROWS
>>> x, R = np.zeros((4, 4)), Replicate()
>>> check_refusals(ROWS["add"], (x, x), [[Shard(0), R], [R, Shard(0)]], {}, parse_mesh("dp=2,tp=2"))
Traceback (most recent call last):
ValueError: add: Paddle refuses a dimension that dp splits in one operand and tp in another; reshard one of them
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement, Shard
from minipd.dist.spmd.notation import Notation
from minipd.dist.spmd.table import RULES

__all__: list[str] = []

#: rows whose operands Paddle aligns itself, as we do
ALIGNED = ("matmul", "concat", "expand_as", "fused_gemm_epilogue")
#: rows whose numbers Paddle matches with what they number before it gathers them
BY_NUMBER = ("index_put",)
#: how many operands Paddle looks at, where that is not all
LOOKED_AT = {"where": 2}


def check_refusals(row: Any, metas: Sequence[Any], placements: Sequence[Sequence[Placement] | None],
                   attrs: Mapping[str, Any], mesh: ProcessMesh) -> None:
    """Raises: ValueError for a call that Paddle 3.3.1 refuses because of its operands' placements."""
    rule = RULES.get(row.name)
    if rule is None or rule.placed:
        return
    n: Notation = rule.function(*metas, **attrs)
    if n.lead is not None:                              # the others follow it, there as well
        return
    never = "1" + ("" if row.name in BY_NUMBER else n.whole)
    split: list[dict[str, tuple[int, ...]]] = []        # of each operand: letter -> the mesh axes that split it
    for word, ps in list(zip(n.ins, placements, strict=True))[:LOOKED_AT.get(row.name)]:
        own: dict[str, tuple[int, ...]] = {}
        for axis, p in enumerate(ps or ()):
            if isinstance(p, Shard) and word[p.dim] not in never:
                own[word[p.dim]] = (*own.get(word[p.dim], ()), axis)
        split.append(own)
    if row.name == "embedding":
        _refuse_shared(row.name, split, mesh)
    elif row.name == "conv2d":
        if split[0].get("c") != split[1].get("c"):
            raise ValueError(f"{row.name}: Paddle refuses channels of an image that are split by other mesh axes than "
                             "the filter's; reshard one of them")
    elif row.name == "cross_entropy_with_softmax" and "v" in split[0] and attrs["axis"] != len(n.ins[0]) - 1:
        raise ValueError(f"{row.name}: Paddle refuses split classes that are not the last dimension; transpose, or "
                         "gather them")
    elif row.name not in ALIGNED:
        _refuse_apart(row.name, split, mesh)


def _refuse_apart(what: str, split: list[dict[str, tuple[int, ...]]], mesh: ProcessMesh) -> None:
    found: dict[str, tuple[int, ...]] = {}
    for own in split:
        for letter, axes in own.items():
            if found.setdefault(letter, axes) != axes:
                one, other = (" and ".join(mesh.names[a] for a in each) for each in (found[letter], axes))
                raise ValueError(f"{what}: Paddle refuses a dimension that {one} splits in one operand and {other} in "
                                 "another; reshard one of them")


def _refuse_shared(what: str, split: list[dict[str, tuple[int, ...]]], mesh: ProcessMesh) -> None:
    ids, table = ({axis for axes in own.values() for axis in axes} for own in split[:2])
    if ids & table:
        raise ValueError(f"{what}: Paddle refuses ids and a table that {mesh.names[min(ids & table)]} both splits; "
                         "reshard one of them")
