"""A schedule shows its jobs over time."""

from __future__ import annotations

from minipd.parallel.pipeline.schedule import Schedule
from minipd.viz.shown import shown_by

__all__: list[str] = []

Schedule._repr_svg_ = shown_by("schedule")              # type: ignore[attr-defined]
