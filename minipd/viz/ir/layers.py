"""A program as a page of layers that open and close: each layer's picture, with those of its own layers below it.

A click on a layer's line folds it.  The page needs no script: its layers are `<details>` of HTML.  In each picture the
layers inside are one box each; what they are made of is in their own picture.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

from minipd.framework.errors import InputError
from minipd.framework.files import reason, write_atomically
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.value import Value
from minipd.viz.ir.program import is_held, layers_of, part_graph, quiet, runs, value_names, with_readers
from minipd.viz.render import graph_svg
from minipd.viz.style import SANS, sheet

__all__ = ["Page", "layers"]

STYLE = (f".minipd-layers{{font-family:{SANS};font-size:13px}}.minipd-layers details{{margin:4px 0 4px 14px;"
         "border-left:2px solid #7fb8ab;padding-left:10px}.minipd-layers summary{cursor:pointer;padding:3px 0}"
         ".minipd-layers .said{opacity:.7}.minipd-layers .picture{overflow-x:auto}.minipd-layers svg{max-width:none}")


class Page:
    """A finished page.  A notebook shows it; `save` writes it as .html."""

    def __init__(self, title: str, body: str):
        self.title, self.body = title, body

    def _repr_html_(self) -> str:
        return f'<div class="minipd-layers"><style>{STYLE}{sheet()}</style>\n{self.body}</div>\n'

    @property
    def html(self) -> str:
        """The page as text, complete in itself."""
        return (f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(self.title)}</title>'
                f"</head><body>\n{self._repr_html_()}</body></html>\n")

    def save(self, path: str | Path) -> Path:
        """Write the page.  Returns the path.

        Raises: InputError for another ending than .html, or a place that cannot be written.
        """
        path = Path(path)
        if path.suffix != ".html":
            raise InputError("a page that ends in .html", str(path), "choose such an ending")
        try:
            write_atomically(path, self.html)
        except OSError as error:
            raise InputError("a place to write the page to", f"{path} ({reason(error)})", "name another") from None
        return path

    def __repr__(self) -> str:
        return f"<Page {self.title!r}>"


def layers(program: Program, title: str = "", open: int = 1) -> Page:
    """The page of a program.  open: how many layers within layers are open at first.

    >>> from minipd.framework.meta import Meta
    >>> from minipd.framework import dtype as dtypes
    >>> from minipd.ir.traced import trace
    >>> layers(trace(lambda x: x.exp(), Meta((2,), dtypes.float32.np)).program, "exp")
    <Page 'exp'>
    """
    title = title or "program"
    block = program.global_block()
    return Page(title, _part(with_readers(block.ops), value_names(block), title, 0, open))


def _part(ops: list[Operation], names: dict[Value, str], title: str, level: int, open: int) -> str:
    """The picture of operations that are inside of `level` layers, and below it the layers in it."""
    picture = graph_svg(part_graph(ops, names, title, 0, level)).inline()
    inner = [_layer(layer, run, names, level, open) for layer, run in runs(ops, level) if layer]
    return f'<div class="picture">{picture}</div>\n' + "".join(inner)


def _layer(layer: str, ops: list[Operation], names: dict[Value, str], level: int, open: int) -> str:
    number = sum(not quiet(op) and not is_held(op) for op in ops)
    first = next(op for op in ops if len(layers_of(op)) > level)
    path = "/".join(layers_of(first)[:level + 1])
    said = f"{number} operation{'s' * (number != 1)}"
    return (f"<details{' open' * (level < open)}><summary>{escape(path)} <span class=\"said\">{said}</span></summary>\n"
            f"{_part(ops, names, path, level + 1, open)}</details>\n")
