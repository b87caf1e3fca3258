"""Rules of draws: of ints, by the global index of an element, and of categories, one row of weights at a time.

(`uniform` and `gaussian`: creation.py; `dropout`: elementwise.py.)
"""

from __future__ import annotations

from typing import Any

from minipd.dist.sharding import local_window
from minipd.dist.spmd.creation import random
from minipd.dist.spmd.notation import Notation, letters
from minipd.dist.spmd.table import spmd, spmd_placed

__all__: list[str] = []

spmd_placed("randint")(random)


@spmd("multinomial")
def multinomial(x: Any, key: Any, *, num_samples: int, replacement: bool = False, window: Any = None) -> Notation:
    word = letters(len(x.shape) - 1)

    def local(attrs: dict, inputs: tuple, outputs: tuple, mesh: Any, rank: int) -> dict:
        rows, first = local_window(x.shape, mesh, inputs[0], rank)
        return attrs if rows == tuple(x.shape) else {**attrs, "window": (tuple(x.shape[:-1]), first[:-1])}

    return Notation((word + "c", "k"), (word + "s",), whole="cks", local=local)
