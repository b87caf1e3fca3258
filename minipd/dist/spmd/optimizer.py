"""Rules of optimizer steps: everything takes the placements of the parameter, which never moves.

So a gradient that is Partial is reduced to where the parameter is: an all-reduce for a replicated one, a reduce-scatter
for a shard.  Step count, learning rate and the wish to skip are scalars that every rank has.
"""

from __future__ import annotations

from typing import Any

from minipd.dist.spmd.notation import Notation, letters, shape_of
from minipd.dist.spmd.table import spmd

__all__: list[str] = []


@spmd("sgd")
def sgd(param: Any, grad: Any, learning_rate: Any, skip_update: Any) -> Notation:
    word = letters(len(param.shape))
    return Notation((word, word, _scalar(learning_rate), _scalar(skip_update)), (word,), whole="z", lead=0)


@spmd("adamw")
def adamw(param: Any, grad: Any, moment1: Any, moment2: Any, step: Any, learning_rate: Any, skip_update: Any, *,
          beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, weight_decay: float = 0.01) -> Notation:
    word = letters(len(param.shape))
    scalars = _scalar(step), _scalar(learning_rate), _scalar(skip_update)
    return Notation((word,) * 4 + scalars, (word,) * 3, whole="z", lead=0)


def _scalar(x: Any) -> str:
    """0-D or [1], as Paddle has both."""
    return "z" * len(shape_of(x))
