"""A line search for the strong Wolfe conditions (Nocedal, Wright, Numerical Optimization, 2006, section 3.5).

Along a direction in which the loss falls, a step t is good if the loss has fallen enough for its length (c1), and the
slope has become flat enough (c2).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

__all__: list[str] = []


class Point(NamedTuple):
    """What the line is like after a step: the loss, its slope along the direction, the gradient."""

    step: float
    loss: float
    slope: float
    gradient: Any


def cubic_minimum(a: Point, b: Point, low: float, high: float) -> float:
    """Where the cubic through the losses and slopes of two points is least within low .. high; the middle if nowhere.

    >>> square = [Point(t, t * t, 2 * t, None) for t in (-1.0, 3.0)]
    >>> cubic_minimum(*square, -1.0, 3.0)
    0.0
    """
    if a.step == b.step:
        return (low + high) / 2
    a, b = sorted((a, b))[:2]
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.step - b.step)
    inner = d1 * d1 - a.slope * b.slope
    if not inner >= 0 or not math.isfinite(inner):
        return (low + high) / 2
    root = math.sqrt(inner)
    width = b.slope - a.slope + 2 * root
    t = b.step - (b.step - a.step) * (b.slope + root - d1) / width if width else (low + high) / 2
    return min(max(t, low), high) if math.isfinite(t) else (low + high) / 2


def strong_wolfe(at: Callable[[float], Point], start: Point, step: float, c1: float = 1e-4, c2: float = 0.9,
                 tolerance: float = 1e-9, most: int = 25) -> tuple[Point, int]:
    """(a point that meets the conditions, or the best one found; how many points were looked at).

    at: evaluates a step.  start: the point at step 0.  step: the first to try.  tolerance: the length of an interval
    that is not worth dividing.  most: how often to evaluate.
    """
    def too_high(p: Point) -> bool:
        return not p.loss <= start.loss + c1 * p.step * start.slope

    def flat(p: Point) -> bool:
        return abs(p.slope) <= -c2 * start.slope

    # Go forward until the line has a minimum between two points.
    before, here, n = start, at(step), 1
    while not (too_high(here) or n > 1 and here.loss >= before.loss or flat(here) or here.slope >= 0) and n < most:
        t = cubic_minimum(before, here, here.step + 0.01 * (here.step - before.step), here.step * 10)
        before, here, n = here, at(t), n + 1
    if not too_high(here) and flat(here):
        return here, n
    low, high = (before, here) if before.loss <= here.loss or math.isnan(here.loss) else (here, before)

    # Divide the interval.  Invariant: `low` has the least loss of the points that are not too high, and the loss falls
    # from it towards `high`.
    stuck = False
    while n < most and abs(high.step - low.step) > tolerance:
        left, right = sorted((low.step, high.step))
        t = cubic_minimum(low, high, left, right)
        margin = 0.1 * (right - left)
        if min(right - t, t - left) < margin:           # too near to an end: once is allowed, then a tenth away
            if stuck or t in (left, right):
                t = right - margin if abs(t - right) < abs(t - left) else left + margin
            stuck = not stuck
        else:
            stuck = False
        here, n = at(t), n + 1
        if too_high(here) or here.loss >= low.loss:
            high = here
        elif flat(here):
            return here, n
        else:
            if here.slope * (high.step - low.step) >= 0:
                high = low
            low = here
    return low, n
