"""SPMD inference: `infer(row, metas, placements, attrs, mesh)`, and the rules it reads, one file per family.

    notation.py     einsum letters: what a rule says
    table.py        the column "spmd": how a rule is entered, what an answer looks like
    inference.py    from letters and placements to the answer

    elementwise.py  reduction.py  linalg.py  manipulation.py  reshape.py  indexing.py  loss.py  creation.py
    optimizer.py  recurrent.py  windows.py  identity.py (reshard, match)
    along.py  aggregate.py  attention.py  by_number.py  diagonal.py  matrices.py  spectral.py  random_numbers.py
    general.py      tables of the rows that need no rule of their own

>>> import numpy as np
>>> from minipd.dist.mesh import parse_mesh
>>> from minipd.dist.placements import Replicate, Shard
>>> from minipd.framework.row import ROWS
>>> x, w = np.zeros((8, 16)), np.zeros((16, 32))
>>> got = infer(ROWS["matmul"], (x, w), ([Shard(0), Shard(1)], [Replicate(), Shard(0)]), {}, parse_mesh("dp=2,tp=2"))
>>> got.outputs                                 # split over k on tp: Megatron's row-parallel layer
((Shard(dim=0), Partial(reduce_type=SUM)),)
"""

from minipd.dist import rows  # noqa: F401  (so that they are there to get their column)
from minipd.dist.spmd import (  # noqa: F401  (their rules enter the table when they are imported)
    aggregate,
    along,
    attention,
    by_number,
    creation,
    diagonal,
    elementwise,
    general,
    identity,
    indexing,
    linalg,
    loss,
    manipulation,
    matrices,
    norm,
    optimizer,
    random_numbers,
    recurrent,
    reduction,
    reshape,
    spectral,
    windows,
)
from minipd.dist.spmd.inference import infer, infer_backward
from minipd.dist.spmd.table import DECOMPOSE, RULES, Inferred, attach, spmd, spmd_placed

__all__ = ["DECOMPOSE", "RULES", "Inferred", "infer", "infer_backward", "spmd", "spmd_placed"]

attach()
