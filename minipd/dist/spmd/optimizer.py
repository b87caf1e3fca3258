"""Rules of optimizer steps: everything takes the placements of the parameter, which never moves.

So a gradient that is Partial is reduced to where the parameter is: an all-reduce for a replicated one, a reduce-scatter
for a shard.  Step count, learning rate and the wish to skip are scalars that every rank has.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from minipd.dist.spmd.notation import Notation, letters, shape_of
from minipd.dist.spmd.table import spmd
from minipd.framework.row import ROWS, Row
from minipd.ops.update.stepping import formula_of

__all__: list[str] = []

SCALARS = ("step", "learning_rate", "skip_update")


def element_wise(row: Row, decompose: bool = False) -> Callable:
    """The rule of a step in which every operand has the parameter's shape, apart from step, rate and skip_update.

    decompose: it also computes a norm of the parameter, of which a shard has a part.
    """
    def rule(*operands: Any, **attrs: Any) -> Notation:
        word = letters(len(operands[0].shape))
        scalars = tuple(_scalar(x) for name, x in zip(row.inputs, operands, strict=True) if name in SCALARS)
        words = (word,) * (len(operands) - len(scalars))
        return Notation(words + scalars, words[1:], whole="z", lead=0, decompose=word if decompose else "")
    rule.__signature__ = inspect.signature(row.infer_meta)      # type: ignore[attr-defined]
    return rule


@spmd("asgd")
def asgd(param: Any, grad: Any, d: Any, ys: Any, step: Any, learning_rate: Any, skip_update: Any) -> Notation:
    """Every rank has its part of the gradients of all batches."""
    word = letters(len(param.shape))
    scalars = _scalar(step), _scalar(learning_rate), _scalar(skip_update)
    return Notation((word, word, word, "y" + word, *scalars), (word, word, "y" + word), whole="yz", lead=0)


def _scalar(x: Any) -> str:
    """0-D or [1], as Paddle has both."""
    return "z" * len(shape_of(x))


for _row in list(ROWS.values()):
    if _row.name in ("sgd", "adamw") or formula_of(_row) is not None and _row.name != "asgd":
        spmd(_row.name)(element_wise(_row, decompose=_row.name == "lamb"))
