"""The pass manager: runs passes in order, and can show, check and count what each one does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from minipd.ir.passes import Pass
from minipd.ir.program import Program
from minipd.ir.verify import VerifyError, verify
from minipd.passes.pattern import PatternPass, RewritePattern
from minipd.passes.table import create_pass

__all__ = ["PassManager", "PassRun"]

#: told of a program before and after a pass: (number of the pass, its name, "before" or "after", program)
Printer = Callable[[int, str, str, Program], None]


class PassRun(NamedTuple):
    """What one pass did.  ops_before, ops_after: the size of the program."""

    name: str
    changes: int
    seconds: float
    ops_before: int
    ops_after: int


class PassManager:
    """Passes in order, under Paddle's names.

    opt_level: as Paddle has it; kept, and without effect: what is added runs.
    debug: verify the program after every pass (and after every rewrite of a pattern).

    >>> manager = PassManager()
    >>> manager.add_pass("constant_folding_pass", {"max_elements": 64})
    >>> manager.passes(), manager.empty()
    (['constant_folding_pass'], False)
    """

    def __init__(self, opt_level: int = 2, debug: bool = False):
        self.opt_level, self.debug = opt_level, debug
        self.statistics: list[PassRun] = []
        self._passes: list[Pass] = []
        self._printers: list[Printer] = []
        self._report: Callable[[str], None] | None = None

    # ------------------------------------------------------------------------------------------------- contents
    def add_pass(self, what: str | Pass, attrs: dict[str, Any] | None = None) -> None:
        """Add a pass of the table by name, with its options, or any pass.

        Raises: KeyError for a name that is not in the table.
        """
        self._passes.append(create_pass(what, attrs) if isinstance(what, str) else what)

    def register_pass(self, name: str, rules: RewritePattern | Iterable[RewritePattern]) -> None:
        """Add a pass that applies rules (of `drr`, or rewrite patterns) until none of them fires."""
        rules = [rules] if isinstance(rules, RewritePattern) else list(rules)
        self._passes.append(PatternPass(name, rules))

    def passes(self) -> list[str]:
        """The names, in order."""
        return [p.name for p in self._passes]

    def clear(self) -> None:
        self._passes.clear()

    def empty(self) -> bool:
        return not self._passes

    # -------------------------------------------------------------------------------------------------- watching
    def enable_ir_printing(self, to: str | Path | Printer | None = None) -> None:
        """Show the program before and after every pass: on the terminal (None), as files of a folder, or to a function
        `to(number, name, "before" | "after", program)`."""
        if to is None:
            self._printers.append(_print)
        elif callable(to):
            self._printers.append(to)
        else:
            self._printers.append(_Files(Path(to)))

    def enable_print_statistics(self, to: Callable[[str], None] = print) -> None:
        """Give the report of each run to `to`."""
        self._report = to

    def report(self) -> str:
        """The last run as text: per pass, the number of changes, the size of the program, and the time."""
        width = max([len(r.name) for r in self.statistics], default=0)
        lines = [f"{r.name:<{width}}  {r.changes:>5} changes  {r.ops_before:>5} -> {r.ops_after:<5} ops  "
                 f"{r.seconds * 1e3:8.2f} ms" for r in self.statistics]
        return "\n".join(lines)

    # --------------------------------------------------------------------------------------------------- running
    def run(self, program: Program) -> int:
        """Run all passes; returns the number of changes.  `statistics` holds a `PassRun` for each afterwards.

        Raises: what a pass raises; in debug mode VerifyError, with the pass that broke the program named.
        """
        self.statistics = []
        for number, each in enumerate(self._passes):
            self._show(number, each.name, "before", program)
            before, start = program.num_ops(), time.perf_counter()
            if self.debug and isinstance(each, PatternPass):
                changes = each.run(program, debug=True)
            else:
                changes = each.run(program)
            seconds = time.perf_counter() - start
            self.statistics.append(PassRun(each.name, changes, seconds, before, program.num_ops()))
            self._show(number, each.name, "after", program)
            if self.debug:
                try:
                    verify(program)
                except VerifyError as error:
                    error.add_note(f"after {each.name}: the pass left a program that is not well formed")
                    raise
        if self._report is not None:
            self._report(self.report())
        return sum(r.changes for r in self.statistics)

    def _show(self, number: int, name: str, when: str, program: Program) -> None:
        for printer in self._printers:
            printer(number, name, when, program)


def _print(number: int, name: str, when: str, program: Program) -> None:
    print(f"===------ IR {when} {name} ------===\n{program}")


class _Files:
    """Writes `00_<pass>.before.pir`, `00_<pass>.after.pir`, ..., which `parse` reads back."""

    def __init__(self, folder: Path):
        self.folder = folder

    def __call__(self, number: int, name: str, when: str, program: Program) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / f"{number:02}_{name}.{when}.pir").write_text(program.to_string("exact"), encoding="utf-8")
