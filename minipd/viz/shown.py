"""What makes notebooks show the objects themselves: `display.py` of each floor gives its classes a `_repr_svg_`.

Classes cannot know their drawers, which are above them; so the wiring of the floors imports those modules.  A drawer is
imported when its first picture is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["shown_by"]


def shown_by(name: str) -> Callable[[Any], str]:
    """A `_repr_svg_` that draws with `viz.<name>`."""
    def _repr_svg_(self: Any) -> str:
        from minipd import viz
        return getattr(viz, name)(self).svg

    return _repr_svg_
