"""What a primitive says when it refuses."""

from __future__ import annotations

__all__ = ["ScheduleError"]


class ScheduleError(Exception):
    """A primitive whose precondition does not hold: it would change what the function means."""
