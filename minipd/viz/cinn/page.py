"""What `cinn.explain` found as a page: the groups drawn, and for each kernel, folded, the reasons, the loops, the code.

The page needs no script: what folds is `<details>` of HTML.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from minipd.cinn.explanation import Explanation, KernelReport, Part
from minipd.cinn.frontend.tracker import Edge
from minipd.viz.cinn.groups import Grouped, groups
from minipd.viz.cinn.loops import loops
from minipd.viz.cinn.steps import frames_of, strip
from minipd.viz.ir.layers import Page

__all__ = ["page"]

#: of a program of more groups than this there is no picture, which nobody would read
MOST_GROUPS = 40


def page(found: Explanation) -> Page:
    """The page.

    >>> import minipd as paddle
    >>> page(paddle.cinn.explain(lambda x: x.exp() * 2.0, paddle.ones([4])))
    <Page '<lambda>, explained'>
    """
    return Page(f"{found.name}, explained", "".join(map(_part, found.parts)))


def _part(part: Part) -> str:
    picture = ""
    if len(part.kernels) <= MOST_GROUPS:
        drawn = groups(Grouped(part.fused, part.tracker.edges), part.title)
        picture = f'<div class="picture">{drawn.inline()}</div>'
    calls = ", ".join(f"{name} ({n})" for name, n in part.library.items())
    said = [_paragraph(f"library calls: {calls}")] if calls else []
    why_not = [_folded("why not one kernel", _reasons(part.edges))] if part.edges else []
    return _folded(part.summary, "".join([picture, *said, *map(_kernel, part.kernels), *why_not]), "", True)


def _kernel(kernel: KernelReport) -> str:
    said = _paragraph(f"{', '.join(kernel.operators)}: {kernel.bytes_apart} bytes one by one, {kernel.bytes_fused} in "
                      "one kernel")
    parts = [said, _reasons(kernel.edges)] if kernel.edges else [said]
    if kernel.problem:
        parts.append(_paragraph(f"stays library kernels: {kernel.problem}"))
    elif kernel.function is not None and kernel.same_as is None:
        if kernel.lowered is not None:
            drawn = strip(frames_of(kernel.lowered, kernel.trace, kernel.tactics), f"the schedule of {kernel.name}")
            parts.append(_folded("schedule", _code("\n".join(kernel.steps)) +
                                 f'<div class="picture">{drawn.inline()}</div>'))
        parts.append(_folded("loops", f'<div class="picture">{loops(kernel.function, kernel.name).inline()}</div>'))
        parts.append(_folded("code", _code(kernel.source)))
    return _folded(kernel.summary, "".join(parts))


def _reasons(edges: Iterable[Edge]) -> str:
    rows = "".join(f"<tr><td>{escape(e.upstream)}</td><td>{escape(e.downstream)}</td><td>{escape(e.value)}</td>"
                   f"<td>{escape(e.step if e.fused else f'{e.policy}: {e.reason}')}</td></tr>\n" for e in edges)
    return f"<table>\n{rows}</table>\n"


def _folded(title: str, body: str, said: str = "", open: bool = False) -> str:
    more = f' <span class="said">{escape(said)}</span>' if said else ""
    return (f"<details{' open' if open else ''}><summary>{escape(title)}{more}</summary>\n{body}</details>\n")


def _paragraph(words: str) -> str:
    return f'<p class="said">{escape(words)}</p>\n'


def _code(words: str) -> str:
    return f"<pre>{escape(words)}</pre>\n"
