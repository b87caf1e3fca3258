"""Why a group of operators cannot be one kernel."""

from __future__ import annotations

__all__ = ["CannotLower"]


class CannotLower(Exception):
    """The group does not fit any kind of loop nest; it must be split, or stay library kernels.  The message says where
    it fails: which operators, which shapes."""
