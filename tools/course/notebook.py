"""Builds and runs the notebooks: `notebooks/NN_name.py` is the source, `NN_name.ipynb` the same with its outputs.

A notebook of chapter N runs in a fresh kernel under MINIPD_FLOOR=N.  What is written is the same on every run: no
times, no addresses, no paths of the machine.
"""

from __future__ import annotations

import math
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import jupytext
import nbformat
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError
from nbformat import NotebookNode

from tools.course.errors import CourseError
from tools.course.grade import environment
from tools.course.source import ROOT

NOTEBOOKS = ROOT / "notebooks"
#: Seconds that one cell may take.
TIMEOUT = 120
#: What fractions in outputs may differ by between machines, as a share of their size.
RTOL = 1e-3

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?")
COLOUR = re.compile("\x1b\\[[0-9;]*m")
ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}")


def sources(names: list[str] | None = None) -> list[Path]:
    """The notebooks' sources: all, or those whose names begin as given ("3", "03" or "03_passes").

    Raises: CourseError if there is none of a name.
    """
    every = sorted(NOTEBOOKS.glob("[0-9][0-9]_*.py"))
    if not names:
        return every
    found = []
    for name in names:
        begin = f"{int(name):02d}_" if name.isdecimal() else name.removesuffix(".py")
        some = [path for path in every if path.stem.startswith(begin)]
        if not some:
            raise CourseError("notebooks/", "one of " + ", ".join(path.stem for path in every), repr(name))
        found += some
    return found


def read(path: Path) -> NotebookNode:
    """A source as a notebook without outputs."""
    notebook = jupytext.read(path, fmt="py:percent")
    for i, cell in enumerate(notebook.cells):
        cell.id = f"cell-{i}"           # jupytext draws them
    notebook.metadata = NotebookNode(kernelspec={"name": "python3", "display_name": "Python 3", "language": "python"},
                                     language_info={"name": "python"})
    return notebook


def run(path: Path, timeout: int = TIMEOUT) -> NotebookNode:
    """The notebook with its outputs, from a fresh kernel.

    Raises: CourseError that names the cell, if one fails, takes too long, or prints what is another on every run.
    """
    notebook = read(path)
    metadata = NotebookNode(notebook.metadata)
    manager = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=_ThisPython())
    client = NotebookClient(notebook, km=manager, timeout=timeout, resources={"metadata": {"path": str(path.parent)}},
                            record_timing=False, store_widget_state=False, coalesce_streams=True)
    client.owns_km = True               # or the kernel, endless loop and all, outlives its notebook
    with tempfile.TemporaryDirectory() as scratch:      # IPython's own folder: the user's start-up files stay out
        try:
            client.execute(env={**os.environ, **environment(int(path.stem[:2])), "IPYTHONDIR": scratch})
        except CellTimeoutError as error:
            raise CourseError(path.name, f"each cell to take less than {timeout} seconds", str(error)) from None
        except CellExecutionError as error:
            raise CourseError(path.name, "every cell to run", "an error:\n" + COLOUR.sub("", str(error))) from None
    notebook.metadata = metadata
    for number, cell in enumerate(notebook.cells, 1):
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", ()):
            _steady(output, f"{path.name}, cell {number}")
    return notebook


class _ThisPython(KernelSpecManager):
    """Kernels are this Python, whatever kernels the user has installed under the name python3."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        return KernelSpec(argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}",
                                "--log-level=ERROR"],       # it warns of its own transport
                          display_name="Python 3", language="python")


def _steady(output: NotebookNode, where: str) -> None:
    """Take out of an output what depends on the machine; refuse what depends on the run."""
    if output.output_type == "error":       # the frames name files of the machine, and say nothing to a reader
        output.traceback = [f"{output.ename}: {output.evalue}"]
    for holder, key in list(_texts(output)):
        holder[key] = holder[key].replace(f"{ROOT}{os.sep}", "")
        if address := ADDRESS.search(holder[key]):
            raise CourseError(where, "outputs that are the same on every run", f"the address {address[0]}",
                              "print something else, or end the line with `;`")


def _texts(output: NotebookNode) -> Iterator[tuple]:
    """Where an output holds text: (container, key)."""
    for key in ("text", "evalue"):
        if key in output:
            yield output, key
    if "traceback" in output:
        yield from ((output.traceback, i) for i in range(len(output.traceback)))
    for key, value in sorted(output.get("data", {}).items()):     # a built notebook has its keys in order
        if isinstance(value, str) and not key.startswith(("image/png", "image/jpeg")):
            yield output.data, key


def build(path: Path) -> bool:
    """Run a notebook and write it beside its source; whether that changed the file."""
    target = path.with_suffix(".ipynb")
    before = target.read_bytes() if target.is_file() else b""
    nbformat.write(run(path), target)
    return target.read_bytes() != before


def stale(path: Path) -> str:
    """How the built notebook differs from its source, "" if it does not (outputs apart)."""
    target = path.with_suffix(".ipynb")
    if not target.is_file():
        return f"{target.name} is not built"
    built = nbformat.read(target, as_version=4)
    mine, theirs = ([(cell.cell_type, cell.source, cell.metadata.get("tags", [])) for cell in notebook.cells]
                    for notebook in (read(path), built))
    if mine == theirs:
        return ""
    number = next((i for i, (a, b) in enumerate(zip(mine, theirs, strict=False), 1) if a != b),
                  min(len(mine), len(theirs)) + 1)
    return f"{target.name} is older than {path.name}: they differ from cell {number} on"


def other_outputs(path: Path, fresh: NotebookNode) -> str:
    """Where a fresh run shows something else than the built notebook, "" if nowhere."""
    if stale(path):
        return stale(path)
    built = nbformat.read(path.with_suffix(".ipynb"), as_version=4)
    for number, (old, new) in enumerate(zip(built.cells, fresh.cells, strict=True), 1):
        before, after = ([holder[key] for output in cell.get("outputs", ()) for holder, key in _texts(output)]
                         for cell in (old, new))
        for a, b in zip(before, after, strict=False):
            if not same_text(a, b):
                return f"cell {number} of {path.name} now shows\n{b}\nbut the built notebook has\n{a}"
        if len(before) != len(after):
            return f"cell {number} of {path.name} now has {len(after)} outputs, in the built notebook {len(before)}"
    return ""


def same_text(a: str, b: str) -> bool:
    """Equal but for the last digits of fractions, which differ between machines.

    >>> same_text("loss 3.1415926", "loss 3.1415927"), same_text("loss 3.14", "loss 3.24"), same_text("f(1)", "g(1)")
    (True, False, False)
    """
    def close(x: str, y: str) -> bool:
        fraction = "." in x or "e" in x
        return x == y or fraction and math.isclose(float(x), float(y), rel_tol=RTOL, abs_tol=1e-6)

    return NUMBER.split(a) == NUMBER.split(b) and all(map(close, NUMBER.findall(a), NUMBER.findall(b)))
