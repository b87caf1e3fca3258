"""Gradient clipping: functions of (parameter, gradient) pairs, made of ordinary operators.

On distributed gradients the operators say by themselves what has to be communicated: a gradient that is sharded over
a mesh axis contributes its part of the sum of squares, a replicated one is counted once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.tensor import Tensor
from minipd.ops.cast import cast
from minipd.ops.elementary import sqrt
from minipd.ops.logic import isfinite
from minipd.ops.math import add_n, maximum, minimum, square
from minipd.ops.reduce import sum

__all__ = ["ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue"]

Pairs = list[tuple[Tensor, Tensor]]


def sum_of_squares(grads: Sequence[Tensor]) -> Tensor:
    """Of the elements of all gradients, 0-D; float64 if one of them is, else float32.

    The sums meet in one `add_n`, so those that are partial over different mesh axes are reduced together.
    """
    wide = dtypes.float64 if any(g.payload.dtype == dtypes.float64.np for g in grads) else dtypes.float32
    return add_n([sum(square(cast(g, wide))) for g in grads])


def global_norm(grads: Sequence[Tensor]) -> Tensor:
    """The 2-norm of all gradients as one vector, 0-D.

    >>> from minipd.ops.creation import to_tensor
    >>> global_norm([to_tensor([3.0]), to_tensor([[4.0]])]).item()
    5.0
    """
    return sqrt(sum_of_squares(grads))


class _Clip:
    #: whether ranks clip their gradients together: then each does in every step, also one that has no gradient, for the
    #: others wait for it
    shared = False

    def __call__(self, params_grads: Pairs) -> Pairs:
        """The pairs with clipped gradients, in order; parameters with need_clip=False keep theirs."""
        chosen = [i for i, (p, _) in enumerate(params_grads) if getattr(p, "need_clip", True)]
        out = list(params_grads)
        if chosen:
            for i, g in zip(chosen, self.clip([params_grads[i][1] for i in chosen]), strict=True):
                out[i] = (params_grads[i][0], g)
        return out

    def checked(self, params_grads: Pairs) -> tuple[Pairs, Tensor | None]:
        """The pairs with clipped gradients, and whether all gradients are finite, 0-D bool; None if that is not known
        without looking at every one of them."""
        return self(params_grads), None

    def clip(self, grads: list[Tensor]) -> list[Tensor]:
        """The gradients, clipped."""
        raise NotImplementedError(f"{type(self).__name__} defines no clip(grads)")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in vars(self).items())})"


class ClipGradByGlobalNorm(_Clip):
    """All gradients times clip_norm / max(norm, clip_norm), with the norm of all of them together.

    An infinite or NaN gradient anywhere makes the norm so on every rank, which an optimizer step then skips.
    group_name, auto_skip_clip: accepted for Paddle's sake, without effect.
    """

    def __init__(self, clip_norm: float, group_name: str = "default_group", auto_skip_clip: bool = False):
        self.clip_norm = float(clip_norm)

    def norm(self, grads: list[Tensor]) -> Tensor:
        """The norm to clip by, 0-D."""
        return global_norm(grads)

    def counted(self, params_grads: Pairs) -> list[Tensor]:
        """The gradients of which it is the norm."""
        return [g for _, g in params_grads]

    def clip(self, grads: list[Tensor]) -> list[Tensor]:
        return self._to_norm(grads, self.norm(grads))

    def _to_norm(self, grads: list[Tensor], norm: Tensor) -> list[Tensor]:
        factor = self.clip_norm / maximum(norm, self.clip_norm)
        return [g * cast(factor, g.dtype) for g in grads]

    def checked(self, params_grads: Pairs) -> tuple[Pairs, Tensor | None]:
        """The pairs with clipped gradients, and whether the norm is finite, which costs nothing more to know."""
        chosen = [i for i, (p, _) in enumerate(params_grads) if getattr(p, "need_clip", True)]
        if not chosen and not self.shared:
            return list(params_grads), None
        norm = self.norm(self.counted([params_grads[i] for i in chosen]))
        out = list(params_grads)
        for i, g in zip(chosen, self._to_norm([params_grads[i][1] for i in chosen], norm), strict=True):
            out[i] = (params_grads[i][0], g)
        return out, isfinite(norm)


class ClipGradByNorm(_Clip):
    """Each gradient times clip_norm / max(norm, clip_norm), with its own norm."""

    def __init__(self, clip_norm: float):
        self.clip_norm = float(clip_norm)

    def clip(self, grads: list[Tensor]) -> list[Tensor]:
        return [g * cast(self.clip_norm / maximum(global_norm([g]), self.clip_norm), g.dtype) for g in grads]


class ClipGradByValue(_Clip):
    """Each element limited to min .. max; min is -max unless given.

    Raises: ValueError if min > max.
    """

    def __init__(self, max: float, min: Any = None):
        self.max, self.min = float(max), float(-max if min is None else min)
        if self.min > self.max:
            raise ValueError(f"ClipGradByValue: expected min <= max, got min={self.min} and max={self.max}")

    def clip(self, grads: list[Tensor]) -> list[Tensor]:
        return [minimum(maximum(g, self.min), self.max) for g in grads]
