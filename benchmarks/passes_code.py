"""How long passes are, in both forms: as formulas (`drr`) and by hand (`passes_by_hand`).

    python benchmarks/passes_code.py

Counted are the lines with code in them (no blank ones, no comments, no docstrings) of the rules of a pass, and of what
these use that is defined in the same file.  What all passes by hand share, `passes_by_hand/helpers.py`, counts as a
part of each, in equal shares.  Imports are not counted, nor is what comes with the library: the formulas' engine on
one side, the rewriter on both.
"""

from __future__ import annotations

import ast
import importlib.util
import io
import statistics
import sys
import tokenize
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from harness import markdown
from passes_by_hand import PASSES

LIBRARY, BY_HAND = "minipd.passes.library", "passes_by_hand"


class Counted(NamedTuple):
    """The lines of a pass in both forms."""

    name: str
    formulas: int
    by_hand: float

    @property
    def shorter(self) -> float:
        """By which part of the form by hand the other one is shorter."""
        return 1 - self.formulas / self.by_hand


def counted() -> list[Counted]:
    """Every pass that is written both ways."""
    found = []
    helpers = f"{BY_HAND}.helpers"
    shared_by_all = len(code_of(helpers, [n for n in definitions(source(helpers)) if n != "__all__"])) / len(PASSES)
    for name, (module, rules, by_hand, cls) in PASSES.items():
        library, hand = f"{LIBRARY}.{module}", f"{BY_HAND}.{by_hand}"
        # what the form by hand takes from the module of the pass is as much a part of it
        shared = imported(hand, library)
        found.append(Counted(name, len(code_of(library, rules)),
                             len(code_of(hand, [cls])) + len(code_of(library, shared)) + shared_by_all))
    return found


def table(passes: Iterable[Counted]) -> str:
    lines = [[p.name, str(p.formulas), f"{p.by_hand:.0f}", f"{p.shorter:.0%}"] for p in passes]
    return markdown(["pass", "formulas, lines", "by hand, lines", "shorter by"], lines)


def code_of(module: str, names: Iterable[str]) -> set[int]:
    """The numbers of the lines with code in the definitions of these names, and of all that they use in the module."""
    text = source(module)
    defined = definitions(text)
    pending, wanted = list(names), set[str]()
    while pending:
        name = pending.pop()
        if name not in wanted and name in defined:
            wanted.add(name)
            pending += [n.id for node in defined[name] for n in ast.walk(node) if isinstance(n, ast.Name)]
    lines = with_code(text)
    return {i for name in wanted for node in defined[name]
            for i in range(first_line(node), node.end_lineno + 1) if i in lines}      # type: ignore[operator]


def imported(module: str, other: str) -> list[str]:
    """The names that one module takes from another."""
    return [alias.name for node in ast.parse(source(module)).body
            if isinstance(node, ast.ImportFrom) and node.module == other for alias in node.names]


def source(module: str) -> str:
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).read_text(encoding="utf-8")


def definitions(text: str) -> dict[str, list[ast.stmt]]:
    """Name -> what defines it, at the top of a module."""
    found: dict[str, list[ast.stmt]] = {}
    for node in ast.parse(text).body:
        names: list[str] = []
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names = [node.name]
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [t.id for t in targets if isinstance(t, ast.Name)]
        for name in names:
            found.setdefault(name, []).append(node)
    return found


def first_line(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])


def with_code(text: str) -> set[int]:
    """The numbers of lines that hold code."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            docstrings.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))   # type: ignore[operator]
    quiet = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    return {i for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type not in quiet
            for i in range(token.start[0], token.end[0] + 1)} - docstrings


def main() -> None:
    passes = counted()
    print(table(passes))
    print(f"\nMedian: {statistics.median(p.shorter for p in passes):.0%} shorter.")


if __name__ == "__main__":
    main()
