"""A function of the loop IR shows its loops."""

from __future__ import annotations

from minipd.cinn.ir.ast import Function
from minipd.viz.shown import shown_by

__all__: list[str] = []

Function._repr_svg_ = shown_by("loops")                 # type: ignore[attr-defined]
