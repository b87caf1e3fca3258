"""Draws docs/overview.svg, the picture in the README: how one operator call becomes a result, a program, or four ranks.

    python docs/draw_overview.py
"""

from __future__ import annotations

from html import escape
from pathlib import Path

WIDTH, HEIGHT = 940, 470
INK, LINE = "#1f2933", "#7b8794"
USER, STACK, PROGRAM, RANK, RESULT = "#fff3c4", "#dbeafe", "#dcfce7", "#fde2e4", "#f1f5f9"


def text(x: float, y: float, words: str, size: int = 14, style: str = "") -> str:
    """One centred line of text."""
    return (f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="middle" fill="{INK}" {style}>'
            f'{escape(words)}</text>')


def box(x: float, y: float, width: float, height: float, fill: str, title: str, note: str = "") -> str:
    """A rounded box with a title and a smaller note under it."""
    middle, baseline = x + width / 2, y + height / 2 + (-2 if note else 5)
    parts = [f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="7" fill="{fill}" stroke="{LINE}"/>',
             text(middle, baseline, title, 14, 'font-weight="600"')]
    if note:
        parts.append(text(middle, baseline + 16, note, 11))
    return "".join(parts)


def arrow(*points: tuple[float, float], label: str = "") -> str:
    """A line through the points, with a head at the last."""
    path = " ".join(f"{x:g},{y:g}" for x, y in points)
    drawn = f'<polyline points="{path}" fill="none" stroke="{LINE}" stroke-width="1.6" marker-end="url(#head)"/>'
    if label:
        (x0, y0), (x1, y1) = points[-2:]
        drawn += text((x0 + x1) / 2, (y0 + y1) / 2 - 6, label, 11, 'font-style="italic"')
    return drawn


def overview() -> str:
    """The whole picture, as SVG."""
    parts = [
        box(20, 25, 190, 52, USER, "y = x @ w", "one call, written once"),
        arrow((115, 77), (115, 108)),
        text(115, 126, "dispatch(row, inputs, attrs)", 11, 'font-family="monospace"'),
        arrow((115, 134), (115, 158)),
        # The stack of interpreters, outermost first.
        box(20, 160, 190, 44, STACK, "amp", "casts"),
        arrow((115, 204), (115, 218)),
        box(20, 220, 190, 44, STACK, "tape", "records how to differentiate"),
        arrow((115, 264), (115, 278)),
        box(20, 280, 190, 44, STACK, "dist", "places shards, communicates"),
        text(115, 350, "a stack of interpreters:", 12),
        text(115, 367, "a layer that is off costs nothing", 12),
        # The ground: exactly one of three.
        arrow((210, 302), (240, 302), (240, 60), (268, 60)),
        arrow((210, 302), (240, 302), (240, 182), (268, 182)),
        arrow((210, 302), (268, 302)),
        box(270, 34, 150, 52, STACK, "kernel", "computes"),
        box(270, 156, 150, 52, STACK, "trace", "appends an operation"),
        box(270, 276, 150, 52, STACK, "meta", "reckons shapes and bytes"),
        arrow((420, 60), (498, 60), label="eager"),
        box(500, 34, 420, 52, RESULT, "arrays now", "one rank, or each rank its shard"),
        arrow((420, 302), (498, 302), label="plan"),
        box(500, 276, 420, 52, RESULT, "no memory touched", "how large is it, before it runs"),
        # One program, many passes.
        arrow((420, 182), (498, 182), label="static"),
        box(500, 130, 420, 104, PROGRAM, ""),
        text(710, 158, "one global program (PIR)", 14, 'font-weight="600"'),
        text(710, 177, "traced on one process, from a model with no word of ranks", 11),
        text(710, 203, "backward  →  optimizer  →  placements  →  partition", 12),
        text(710, 222, "each step prints, verifies, and runs before and after", 11),
        arrow((920, 182), (932, 182), (932, 376), (872, 376), (872, 396)),
    ]
    for rank in range(4):
        x = 500 + rank * 108
        parts.append(box(x, 398, 96, 50, RANK, f"rank {rank}", f"dp {rank // 2}, tp {rank % 2}"))
        if rank < 3:
            parts.append(f'<line x1="{x + 96}" y1="423" x2="{x + 108}" y2="423" stroke="{LINE}" stroke-width="3"/>')
    parts += [
        text(710, 368, "a local program per rank, with its collectives", 12),
        arrow((872, 376), (548, 376), (548, 396)),
        arrow((656, 376), (656, 396)),
        arrow((764, 376), (764, 396)),
        box(270, 398, 150, 50, RANK, "communicator", "sim or MPI"),
        f'<line x1="420" y1="423" x2="500" y2="423" stroke="{LINE}" stroke-width="3"/>',
    ]
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
            f'font-family="Helvetica, Arial, sans-serif">'
            f'<title>From one operator call to arrays, a program, or four ranks</title>'
            f'<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            f'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="{LINE}"/></marker></defs>'
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>')
    return "\n".join([head, *parts, "</svg>", ""])


if __name__ == "__main__":
    Path(__file__).with_name("overview.svg").write_text(overview(), encoding="utf-8")
