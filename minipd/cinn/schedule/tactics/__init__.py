"""The tactics: rules that schedule a function by primitives.  `scheduler` has their order."""

from __future__ import annotations

from minipd.cinn.schedule.tactics.align_iter_space import AlignIterSpace
from minipd.cinn.schedule.tactics.arrange_storage import ArrangeStorage
from minipd.cinn.schedule.tactics.base import Group, Tactic
from minipd.cinn.schedule.tactics.bind import Bind
from minipd.cinn.schedule.tactics.compute_at import ComputeAt
from minipd.cinn.schedule.tactics.compute_inline import ComputeInline
from minipd.cinn.schedule.tactics.tile import Tile
from minipd.cinn.schedule.tactics.two_step_reduction import TwoStepReduction
from minipd.cinn.schedule.tactics.vectorize import Vectorize

__all__ = ["ALL", "AlignIterSpace", "ArrangeStorage", "Bind", "ComputeAt", "ComputeInline", "Group", "Tactic", "Tile",
           "TwoStepReduction", "Vectorize"]

ALL: dict[str, type[Tactic]] = {t.__name__: t for t in (
    AlignIterSpace, ComputeInline, TwoStepReduction, Tile, ComputeAt, ArrangeStorage, Bind, Vectorize)}
