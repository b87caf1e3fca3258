"""What losses as layers share."""

from __future__ import annotations

from typing import Any

from minipd.nn.function_layer import FunctionLayer
from minipd.nn.functional.loss.reduction import check_reduction

__all__: list[str] = []


class Loss(FunctionLayer):
    """A loss of `nn.functional` with options, which are not printed, as in Paddle.

    Raises: ValueError, when it is made, for a reduction that the function would refuse.
    """

    reductions: tuple[str, ...] = ()        # beside "mean", "sum" and "none"

    def __init__(self, name: str | None = None, **options: Any):
        if "reduction" in options:
            check_reduction(type(self).__name__, options["reduction"], *self.reductions)
        super().__init__(name, **options)

    def extra_repr(self) -> str:
        return ""
