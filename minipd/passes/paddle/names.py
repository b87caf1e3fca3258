"""Paddle's names for passes and rules in `minipd.pir`, which stands on a lower floor."""

from __future__ import annotations

from minipd import pir
from minipd.passes.manager import PassManager
from minipd.passes.paddle.drr import DrrPatternContext

__all__: list[str] = []

for _name, _class in {"DrrPatternContext": DrrPatternContext, "PassManager": PassManager}.items():
    setattr(pir, _name, _class)
