"""x: each box near the mean of what it is connected to, in the order given, with room between.

For one row and wished places this is a least-squares problem with order constraints, solved exactly by pooling
neighbours that want to pass each other (isotonic regression).  Rows take turns, down and up, until they agree.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["centres", "pooled", "straighten"]

TURNS = 10
FREE = 0.02         # how strongly a box without neighbours wants to stay


def centres(rows: list[list[int]], widths: Sequence[float], links: list[tuple[int, int, float, float, float]],
            gap: float) -> list[float]:
    """The x of each box's middle.

    links: (upper box, lower box, where the wire leaves and enters, measured from the middles, how much it counts).
    """
    up: list[list[tuple[int, float, float]]] = [[] for _ in widths]
    down: list[list[tuple[int, float, float]]] = [[] for _ in widths]
    for a, b, leaves, enters, weight in links:
        up[b].append((a, leaves - enters, weight))
        down[a].append((b, enters - leaves, weight))
    x = [0.0] * len(widths)
    for row in rows:
        at = 0.0
        for box in row:
            x[box], at = at + widths[box] / 2, at + widths[box] + gap
    for turn in range(TURNS):
        for neighbours, sequence in ((up, rows), (down, rows[::-1])):
            for row in sequence:
                _settle(row, x, widths, [neighbours], gap)
        if turn >= TURNS // 2:
            for row in rows:
                _settle(row, x, widths, [up, down], gap)
    return x


def _settle(row: list[int], x: list[float], widths: Sequence[float], sides: list, gap: float) -> None:
    wished, weights = [], []
    for box in row:
        near = [link for side in sides for link in side[box]]
        weight = sum(w for _, _, w in near)
        wished.append(sum((x[b] + shift) * w for b, shift, w in near) / weight if near else x[box])
        weights.append(weight or FREE)
    apart = [(widths[a] + widths[b]) / 2 + gap for a, b in zip(row, row[1:], strict=False)]
    for box, at in zip(row, pooled(wished, weights, apart), strict=True):
        x[box] = at


def straighten(x: list[float], rows: list[list[int]], widths: Sequence[float], chains: list[list[int]],
               gap: float) -> None:
    """Bend chains of passing places only where there is no room to go on straight.  Changes x.

    chains: each from a box through places of which one row each has one, to a box.
    """
    left: dict[int, int] = {}
    right: dict[int, int] = {}
    for row in rows:
        for a, b in zip(row, row[1:], strict=False):
            left[b], right[a] = a, b
    for chain in sorted(chains, key=len, reverse=True):
        run: list[int] = []
        low, high = float("-inf"), float("inf")
        for box in chain[1:]:
            before, after = left.get(box), right.get(box)
            least = float("-inf") if before is None else x[before] + (widths[before] + widths[box]) / 2 + gap
            most = float("inf") if after is None else x[after] - (widths[after] + widths[box]) / 2 - gap
            if box == chain[-1] or max(low, least) > min(high, most):
                for passed in run:
                    x[passed] = min(max(x[run[len(run) // 2]], low), high)
                run, low, high = [], float("-inf"), float("inf")
            run.append(box)
            low, high = max(low, least), min(high, most)


def pooled(wished: Sequence[float], weights: Sequence[float], apart: Sequence[float]) -> list[float]:
    """Places in order, at least `apart` from each other, with the least weighted square distance from the wished ones.

    >>> pooled([0, 0, 10], [1, 1, 1], [2, 2])
    [-1.0, 1.0, 10.0]
    """
    shift, shifts = 0.0, [0.0]
    for distance in apart:
        shift += distance
        shifts.append(shift)
    pools: list[list[float]] = []               # [mean, weight, how many]
    for want, weight, offset in zip(wished, weights, shifts, strict=False):
        pools.append([want - offset, weight, 1])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            mean, more, count = pools.pop()
            last = pools[-1]
            last[0] = (last[0] * last[1] + mean * more) / (last[1] + more)
            last[1] += more
            last[2] += count
    flat = [float(mean) for mean, _, count in pools for _ in range(int(count))]
    return [at + offset for at, offset in zip(flat, shifts, strict=False)]
