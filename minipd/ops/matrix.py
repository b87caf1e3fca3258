"""`minipd ops`: every operator is a row, everything known about it a column; here is the matrix, with its holes.

A hole is a column that a row does not have.  Some are right (a comparison has no gradient); then the reason is written
in `minipd/ops/holes.py`, or by the floor that brings the column, with `holes.explain`.  A hole without a reason is work
to do: it shows as `??`, and a test fails on it.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable
from typing import NamedTuple

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from minipd.framework.errors import InputError
from minipd.framework.row import ROWS, Row
from minipd.ops import stubs
from minipd.ops.holes import HOLES

__all__: list[str] = []

#: What a cell shows that says no more than "it is there".
HERE = "✓"


class Column(NamedTuple):
    """One thing that may be known of a row.

    cell: what the matrix shows; empty where the row lacks it.
    """

    name: str
    cell: Callable[[Row], str]


def schema(row: Row) -> str:
    """Operands; attributes: `x; axis, keepdim`."""
    operands = [f"*{name}" if row.variadic and name == row.inputs[-1] else name for name in row.inputs]
    return ", ".join(operands) + (f"; {', '.join(row.attrs)}" if row.attrs else "")


def saved(row: Row) -> str:
    """What the gradient rules keep of the forward call; in brackets what they keep only shape and dtype of.

    `all` stands for the operands where every one of more than three is kept.
    """
    whole: dict[str, None] = {}
    only_meta: dict[str, None] = {}
    for rule in row.vjp_rules:
        for kind, key, meta in rule.plan:
            if kind == "attr":
                continue
            name = row.outputs[key] if kind == "out" else row.inputs[key] if kind == "in" else f"*{row.inputs[-1]}"
            (only_meta if meta else whole)[name] = None
    shapes = [name for name in only_meta if name not in whole]
    if len(row.inputs) > 3 and whole.keys() >= set(row.inputs):
        whole = {"all": None, **{name: None for name in whole if name not in row.inputs}}
    return " ".join([*whole, *([f"[{' '.join(shapes)}]"] if shapes else [])])


def gradients(row: Row) -> str:
    """The inputs that have a gradient rule; `joint` for one rule that serves all."""
    return " ".join("joint" if rule.target is None else row.inputs[rule.target] for rule in row.vjp_rules)


def traits(row: Row) -> str:
    """The row's traits, by name."""
    return " ".join(sorted(trait.value for trait in row.traits))


def _later(name: str) -> Column:
    """A column that a later floor adds.  Its entries may have a word to be `shown`, and say `why`."""
    return Column(name, lambda row: (getattr(row.columns[name], "shown", "") or HERE) if name in row.columns else "")


COLUMNS = (
    Column("schema", schema),
    Column("infer_meta", lambda row: HERE),
    Column("saves", saved),
    Column("vjp", gradients),
    Column("kernel", lambda row: HERE if row.kernel else ""),
    Column("kernel_out", lambda row: HERE if row.kernel_out else ""),
    _later("spmd"),
    _later("decompose"),
    Column("traits", traits),
)

#: Columns whose emptiness is an answer: no operands, nothing kept for the gradient, a primitive, no trait.
MAY_BE_EMPTY = ("schema", "saves", "decompose", "traits")

#: What a narrow terminal does without, the first first.
DISPENSABLE = ("schema", "infer_meta", "traits", "decompose", "spmd", "kernel_out", "kernel", "vjp")


def is_opened(column: Column, rows: Iterable[Row]) -> bool:
    """Whether some row has the column: until its floor is built, no row can."""
    return any(column.cell(row) for row in rows)


def reason(row: Row, column: Column) -> str | None:
    """Why the row rightly lacks the column; None if nobody has said."""
    for hole in HOLES:
        if hole.column == column.name and (row.name in hole.rows or not row.traits.isdisjoint(hole.rows)):
            return hole.reason
    return None


def unexplained() -> list[str]:
    """The holes without a reason, as `row.column`."""
    rows = ROWS.values()
    return [f"{row.name}.{column.name}" for column in COLUMNS
            if column.name not in MAY_BE_EMPTY and is_opened(column, rows)
            for row in rows if not column.cell(row) and reason(row, column) is None]


def matrix(columns: Iterable[Column] = COLUMNS) -> tuple[Table, list[str]]:
    """The table, and its notes: the reasons that its cells refer to by number."""
    rows, columns = list(ROWS.values()), list(columns)
    table = Table("operator", *(column.name for column in columns), title=f"{len(rows)} operators")
    opened = {column.name for column in columns if is_opened(column, rows)}
    notes: list[str] = []
    for row in sorted(rows, key=lambda row: (row.infer_meta.__module__, row.name)):
        cells = []
        for column in columns:
            text = column.cell(row)
            if not text and column.name not in MAY_BE_EMPTY and column.name in opened:
                why = reason(row, column)
                if why and why not in notes:
                    notes.append(why)
                text = f"({notes.index(why) + 1})" if why else "[red]??[/red]"
            else:
                text = text.replace("[", r"\[")
            cells.append(text)
        table.add_row(row.name if row.dialect == "pd_op" else f"{row.dialect}.{row.name}", *cells)
    return table, notes


def fitting(width: int | None) -> tuple[Table, list[str], list[str]]:
    """The matrix in so many characters (None: as many as it takes), its notes, and the columns that are left out for
    that.  No cell is folded or cut: a table with folded rows cannot be read."""
    left_out: list[str] = []
    while True:
        table, notes = matrix(column for column in COLUMNS if column.name not in left_out)
        if width is None or _width(table) <= width or len(left_out) == len(DISPENSABLE):
            return table, notes, left_out
        left_out.append(DISPENSABLE[len(left_out)])


def _width(table: Table) -> int:
    console = Console(width=1000)
    return Measurement.get(console, console.options, table).maximum


def one_row(row: Row) -> str:
    """Everything known about one operator, in words."""
    lines = [repr(row), "", row.doc, ""]
    for column in COLUMNS:
        text = column.cell(row) or (why if (why := reason(row, column)) else "-")
        more = getattr(row.columns.get(column.name), "why", "")
        lines.append(f"{column.name:10}  {text if text != HERE else 'yes'}{more and f': {more}'}")
    lines.append(f"{'written in':10}  {row.infer_meta.__module__}")
    return "\n".join(lines)


def _write_stubs() -> int:
    changed = stubs.write()
    print("\n".join(f"wrote {path}" for path in changed) or "the stubs are as they should be")
    return 0


def main(argv: list[str] | None = None) -> int:
    """Print the matrix, or with names of operators what is known about each."""
    parser = argparse.ArgumentParser(prog="minipd ops", description="the operators, and what is known about each")
    parser.add_argument("names", nargs="*", metavar="NAME", help="an operator to tell more about")
    parser.add_argument("--stubs", action="store_true",
                        help="write the .pyi files that tell editors and type checkers of names that tables make")
    given = parser.parse_args(argv)
    if given.stubs:
        return _write_stubs()
    names = given.names
    for name in names:
        if name not in ROWS:
            raise InputError("the name of an operator", repr(name), "`minipd ops` lists them")
    if names:
        print("\n\n".join(one_row(ROWS[name]) for name in names))
        return 0
    console = Console()
    # Into a pipe or a file the table goes as wide as it is.
    folded = console.is_terminal or "COLUMNS" in os.environ
    table, notes, left_out = fitting(console.width if folded else None)
    Console(width=_width(table)).print(table)
    if left_out:
        print(f"Left out, for want of width: {', '.join(left_out)}.\n"
              "`minipd ops softmax` tells all about one operator; `minipd ops | less -S` scrolls.")
    print("saves: what the gradient keeps (all: every operand), in brackets what it keeps only the shape of.\n"
          "kernel_out: writes into a given buffer; a row without it allocates.\n"
          "spmd and decompose are brought by later chapters.  On a mesh, the operands of an operator marked whole are\n"
          "gathered on every rank (`minipd ops NAME` says why), one marked parts runs as the operators it is made of.")
    for number, note in enumerate(notes, 1):
        print(f"({number}) {note}")
    return 0
