"""The pass manager: runs passes in order, and can show, check and count what each one does."""

from __future__ import annotations

import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from minipd.ir import passes as floors
from minipd.ir.program import Program
from minipd.ir.verify import VerifyError, verify
from minipd.passes.base import PatternRewritePass
from minipd.passes.pattern import Listener, RewritePattern, watching_rewrites
from minipd.passes.table import create_pass

__all__ = ["PassManager", "PassRun"]

#: told of a program before and after a pass: (number of the pass, its name, "before" or "after", program)
Printer = Callable[[int, str, str, Program], None]


@dataclass(frozen=True)
class PassRun:
    """What one pass did.

    ops_before, ops_after: the size of the program.  peak_bytes: how much memory the pass had allocated at the most,
    beyond what there was before it; None where nobody has asked.  rewrites: how often each rule was applied.
    skipped: why it was not run; "" if it was.
    """

    name: str
    changes: int = 0
    seconds: float = 0.0
    ops_before: int = 0
    ops_after: int = 0
    peak_bytes: int | None = None
    rewrites: dict[str, int] = field(default_factory=dict)
    skipped: str = ""


class PassManager:
    """Passes in order, under Paddle's names.

    opt_level: passes of a higher level than this are skipped (`Pass.opt_level` says what the levels are).
    debug: verify the program before the first and after every pass, and after every rewrite by a rule.
    add_dependents: let `add_pass` also add what a pass needs to stand before it, if it is not there.

    >>> manager = PassManager()
    >>> manager.add_pass("constant_folding_pass", {"max_elements": 64})
    >>> manager.passes(), manager.empty()
    (['constant_folding_pass'], False)
    """

    def __init__(self, opt_level: int = 2, debug: bool = False, add_dependents: bool = False):
        self.opt_level, self.debug, self.add_dependents = opt_level, debug, add_dependents
        self.statistics: list[PassRun] = []
        self._passes: list[floors.Pass] = []
        self._printers: list[tuple[Printer, bool]] = []
        self._report: Callable[[str], None] | None = None

    # ------------------------------------------------------------------------------------------------- contents
    def add_pass(self, what: str | floors.Pass, attrs: dict[str, Any] | None = None) -> None:
        """Add a pass of the table by name, with its options, or any pass.

        Raises: KeyError for a name that is not in the table, TypeError for an option that the pass does not have.
        """
        if not isinstance(what, str) and attrs:
            raise TypeError(f"add_pass: expected options with the name of a pass, got {attrs} with {what}, which is "
                            "made already; give them to its class")
        if isinstance(what, type) or not isinstance(what, str | floors.Pass):
            raise TypeError(f"add_pass: expected the name of a pass, or a pass, got {what!r}"
                            + (f"; write {what.__name__}()" if isinstance(what, type) else ""))
        made = create_pass(what, attrs) if isinstance(what, str) else what
        if self.add_dependents:
            for name in _dependents(made):
                if name not in self.passes():
                    self.add_pass(name)
        self._passes.append(made)

    def register_pass(self, name: str, rules: RewritePattern | Iterable[RewritePattern]) -> None:
        """Add a pass that applies rules (of `drr`, or rewrite patterns) until none of them fires."""
        rules = [rules] if isinstance(rules, RewritePattern) else list(rules)
        self._passes.append(PatternRewritePass(name, rules))

    def __iter__(self) -> Iterator[floors.Pass]:
        return iter(self._passes)

    def passes(self) -> list[str]:
        """The names, in order."""
        return [p.name for p in self._passes]

    def clear(self) -> None:
        self._passes.clear()

    def empty(self) -> bool:
        return not self._passes

    # -------------------------------------------------------------------------------------------------- watching
    def enable_ir_printing(self, to: str | Path | Printer | None = None, changed_only: bool = False) -> None:
        """Show the program before and after every pass: on the terminal (None), as files of a folder, or to a function
        `to(number, name, "before" | "after", program)`.

        changed_only: show it once at the start, as "before" of the first pass, and after that only after passes that
        have changed it.
        """
        printer = _print if to is None else to if callable(to) else _Files(Path(to))
        self._printers.append((printer, changed_only))

    def enable_print_statistics(self, to: Callable[[str], None] = print) -> None:
        """Give the report of each run to `to`.  From now on the memory of each pass is measured too, which makes passes
        several times slower: their times are for comparison among each other."""
        self._report = to

    def report(self) -> str:
        """The last run as text: per pass, the number of changes, the size of the program, the time, the memory, and
        which rules were applied."""
        width = max([len(r.name) for r in self.statistics], default=0)
        return "\n".join(_line(r, width) for r in self.statistics)

    # --------------------------------------------------------------------------------------------------- running
    def run(self, program: Program) -> int:
        """Run all passes; returns the number of changes.  `statistics` holds a `PassRun` for each afterwards.

        Raises: ValueError for a pass that stands before one that it depends on; what a pass raises, with the pass
        noted; in debug mode VerifyError, with the pass that broke the program named.
        """
        if program.form != "minipd":
            raise ValueError("PassManager.run: expected a program in minipd's form, got one in Paddle's; convert it "
                             "with minipd.ir.paddle.from_paddle")
        self._check_order()
        if self.debug:
            _verified(program, "before the first pass", "the program was not well formed already")
        self.statistics = []
        for number, each in enumerate(self._passes):
            reason = self._skipped(each, program)
            if reason:
                ops = program.num_ops()
                self.statistics.append(PassRun(each.name, ops_before=ops, ops_after=ops, skipped=reason))
                continue
            first = all(r.skipped for r in self.statistics)
            self._show(number, each.name, "before", program, first)
            self.statistics.append(self._run(each, program))
            self._show(number, each.name, "after", program, self.statistics[-1].changes > 0)
            if self.debug:
                _verified(program, f"after {each.name}", "the pass left a program that is not well formed")
        if self._report is not None:
            self._report(self.report())
        return sum(r.changes for r in self.statistics)

    def _run(self, each: floors.Pass, program: Program) -> PassRun:
        before, counts = program.num_ops(), _Counts()
        with _memory(self._report is not None) as peak, watching_rewrites(counts, debug=self.debug):
            start = time.perf_counter()
            try:
                changes = each.run(program)
            except Exception as error:
                error.add_note(f"in {each.name}, pass {self._passes.index(each) + 1} of {len(self._passes)}")
                raise
            seconds = time.perf_counter() - start
        if not isinstance(changes, int):
            raise TypeError(f"pass {each.name}: expected run(program) to return the number of changes, got {changes!r};"
                            " return 0 where nothing is changed")
        return PassRun(each.name, changes, seconds, before, program.num_ops(), peak(), dict(counts.rules))

    def _skipped(self, each: floors.Pass, program: Program) -> str:
        level = getattr(each, "opt_level", 0)
        if level > self.opt_level:
            return f"of level {level}, the manager is of level {self.opt_level}"
        can_apply = getattr(each, "can_apply_on", None)
        return "" if can_apply is None or can_apply(program) else "it cannot be applied on this program"

    def _check_order(self) -> None:
        """Every pass stands behind those that it depends on."""
        for i, each in enumerate(self._passes):
            if getattr(each, "opt_level", 0) > self.opt_level:
                continue
            earlier = {p.name: p for p in self._passes[:i]}
            for name in _dependents(each):
                if name not in earlier:
                    later = name in self.passes()
                    raise ValueError(
                        f"pass {each.name}: expected {name}, which it depends on, to stand before it, got "
                        + (f"it after, as pass {self.passes().index(name) + 1}" if later else "none")
                        + f"; add_pass({name!r}) first, or make the manager with add_dependents=True")
                level = getattr(earlier[name], "opt_level", 0)
                if level > self.opt_level:
                    raise ValueError(f"pass {each.name}: expected {name}, which it depends on, to run before it, got a "
                                     f"manager of level {self.opt_level}, which skips it; make one of level {level}")

    def _show(self, number: int, name: str, when: str, program: Program, news: bool) -> None:
        for printer, changed_only in self._printers:
            if news or not changed_only:
                printer(number, name, when, program)


class _Counts(Listener):
    """How often each rule is applied."""

    def __init__(self) -> None:
        self.rules: Counter[str] = Counter()

    def applied(self, rule: str, at: str) -> None:
        self.rules[rule] += 1


@contextmanager
def _memory(asked: bool) -> Iterator[Callable[[], int | None]]:
    """Measures how much memory is allocated inside, at the most, beyond what there is now; gives a function that tells.

    Somebody else may be tracing (a profiler, an outer manager): that goes on, with its peak reset."""
    if not asked:
        yield lambda: None
        return
    traced = tracemalloc.is_tracing()
    if not traced:
        tracemalloc.start()
    tracemalloc.reset_peak()
    start, found = tracemalloc.get_traced_memory()[0], [0]
    try:
        yield lambda: found[0]
    finally:
        found[0] = tracemalloc.get_traced_memory()[1] - start
        if not traced:
            tracemalloc.stop()


def _dependents(each: floors.Pass) -> tuple[str, ...]:
    return tuple(getattr(each, "dependents", ()))


def _verified(program: Program, when: str, what: str) -> None:
    try:
        verify(program)
    except VerifyError as error:
        error.add_note(f"{when}: {what}")
        raise


def _line(run: PassRun, width: int) -> str:
    if run.skipped:
        return f"{run.name:<{width}}  skipped: {run.skipped}"
    memory = "" if run.peak_bytes is None else f"  {run.peak_bytes / 1024:9.1f} KiB"
    rules = ", ".join(f"{name} {n}" for name, n in run.rewrites.items())
    return (f"{run.name:<{width}}  {run.changes:>5} changes  {run.ops_before:>5} -> {run.ops_after:<5} ops  "
            f"{run.seconds * 1e3:8.2f} ms{memory}" + (f"  {rules}" if rules else ""))


def _print(number: int, name: str, when: str, program: Program) -> None:
    print(f"===------ IR {when} {name} ------===\n{program}")


class _Files:
    """Writes `00_<pass>.before.pir`, `00_<pass>.after.pir`, ..., which `parse` reads back."""

    def __init__(self, folder: Path):
        self.folder = folder

    def __call__(self, number: int, name: str, when: str, program: Program) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / f"{number:02}_{name}.{when}.pir").write_text(program.to_string("exact"), encoding="utf-8")
