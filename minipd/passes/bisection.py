"""Finding the pass, and of its rewrites the one, after which a program computes something else.

    found = bisect(program, ["identity_op_clean_pass", "my_pass"])
    print(found)                        # None if all is well

Passes are run one by one on a copy, and after each that has changed it the copy is run on the same inputs as the
original.  Passes are few, and the first one that changes the result is wanted, so all are tried in order; rewrites may
be thousands, so of these half are done, then a quarter, ...: some rewrite is found after which the result is wrong, and
before which it was right.  The result of a program that does not run, is not well formed, or that the pass could not
finish, is wrong too.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.errors import InputError
from minipd.ir.mapping import IrMapping
from minipd.ir.passes import Pass
from minipd.ir.program import Program
from minipd.ir.value import Value
from minipd.ir.verify import verify
from minipd.passes.base import PatternRewritePass
from minipd.passes.compare import Outcome, difference, outcome, random_feed, random_state
from minipd.passes.pattern import Listener, RewriteError, RewritePattern, watching_rewrites
from minipd.passes.show import Brief
from minipd.passes.table import create_pass, pass_names, pass_options

__all__ = ["Culprit", "bisect"]

State = dict[str, np.ndarray]
#: a pass to try: its name, itself, or a rule; or its name with options
Tried = str | Pass | RewritePattern | tuple[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Culprit:
    """The first pass after which the result is another.

    number: of the pass, from 1.  difference: where the result differs, or what went wrong.  rewrite: the rewrite, from
    1, of `rewrites`, after which it does; None for a pass that has done it without rules.  rule, at: which rule that
    was, and at which operation.  before, after: the program just before and after the rewrite, or the pass.
    lines: of the short text of the program, those that are gone (-), new (+), and their neighbours.
    """

    number: int
    name: str
    difference: str
    before: Program
    after: Program
    lines: tuple[str, ...] = ()
    rewrite: int | None = None
    rewrites: int = 0
    rule: str = ""
    at: str = ""

    def __str__(self) -> str:
        found = [f"pass {self.number}, {self.name}, changes the result: {self.difference}"]
        if self.rewrite is not None:
            found.append(f"rewrite {self.rewrite} of {self.rewrites}, by rule {self.rule} at {self.at}:")
        return "\n".join([*found, *(f"  {line}" for line in self.lines)])


def bisect(program: Program, passes: Iterable[Tried], feed: Mapping[str, np.ndarray] | None = None,
           rtol: float | None = None, *, state: Mapping[str, np.ndarray] | None = None,
           sizes: Mapping[str, int] | None = None, seed: int = 0) -> Culprit | None:
    """The first pass after which `program` does not compute what it did; None if there is none.

    feed: the inputs; random ones by default.  rtol: how far results may be from those of the program as it is given, in
    parts of the largest number of each; 0 for to the bit, None for what the dtype suggests, or passes say of themselves
    (`Pass.rtol`).  state: parameters by name; random ones for those that are missing.  sizes: of symbolic dimensions,
    for random inputs.

    A pass with an option `param_scope` is given the state.  `program` stays as it is.

    >>> from minipd.framework.meta import Meta
    >>> from minipd.framework import dtype as dtypes
    >>> from minipd.ir.traced import trace
    >>> from minipd.passes.drr import drr
    >>> from minipd.passes.formula import ops
    >>> @drr()
    ... class Wrong:
    ...     def source(x, y):
    ...         return x - y
    ...     def result(x, y):
    ...         return x + y
    >>> program = trace(lambda x, y: (x - y).exp(), *[Meta((2,), dtypes.float32.np)] * 2).program
    >>> print(bisect(program, ["dead_code_elimination_pass", PatternRewritePass("wrong_pass", [Wrong])]))
    pass 2, wrong_pass, changes the result: output_0[0]: expected 0.16779785, got 5.497895 (2 of 2 numbers differ; ...
    rewrite 1 of 1, by rule Wrong at pd_op.subtract -> tensor<2xf32> (from ...):
      - a = subtract(input_0, input_1)
      - b = exp(a)
      + c = add(input_0, input_1)
      + b = exp(c)
        return b

    Raises: InputError where the program does not run as it is, or random inputs are not found; KeyError and TypeError
    for what names no pass, or is none.
    """
    feed = random_feed(program, seed, sizes) if feed is None else feed
    trial = _Trial(program, dict(feed), {**random_state(program, seed), **(state or {})}, rtol, dict(sizes or {}))
    for number, make in enumerate([_maker(each) for each in passes], 1):
        culprit = trial.step(number, make)
        if culprit is not None:
            return culprit
    return None


def _maker(tried: Tried) -> Callable[[State], Pass]:
    """A function that makes the pass anew, for a given state (a pass that is made already stays itself)."""
    if isinstance(tried, RewritePattern):
        rule = tried
        return lambda state: PatternRewritePass(rule.name, [rule])
    if isinstance(tried, str):
        tried = (tried, {})
    if isinstance(tried, tuple):
        name, options = tried
        scoped = name in pass_names() and "param_scope" in pass_options(name) and (
            not {"param_scope", "__param_scope__"} & options.keys())

        def make(state: State) -> Pass:
            return create_pass(name, {**options, **({"param_scope": state} if scoped else {})})
        make({})                                        # so that a wrong name or option is said now
        return make
    if isinstance(tried, type) or not isinstance(tried, Pass):
        raise TypeError(f"bisect: expected names of passes, passes, or rules, got {tried!r}"
                        + (f"; write {tried.__name__}()" if isinstance(tried, type) else ""))
    made = tried
    return lambda state: made


@dataclass
class _Run:
    """A pass that was run on a copy, perhaps for some rewrites only.

    before: the program before the last rewrite that was to be done (before the pass, if none was).  origins: which
    value of that one a value of `program` was.  error: what the pass raised.
    """

    name: str
    program: Program
    state: State
    before: Program
    origins: dict[Value, Value]
    rewrites: int = 0
    rule: str = ""
    at: str = ""
    error: Exception | None = None
    rtol: float | None = None


class _Last(Listener):
    """Keeps the program as it is before rewrite `number`, and what that rewrite was."""

    def __init__(self, run: _Run, number: float):
        self.run, self.number, self.seen = run, number, 0

    def applied(self, rule: str, at: str) -> None:
        self.seen += 1
        self.run.rule, self.run.at = rule, at
        if self.seen == self.number - 1:
            mapping = IrMapping()
            values = self.run.program.list_vars()
            self.run.before = self.run.program.clone(mapping)
            self.run.origins = {v: mapping.look_up(v) for v in values}


class _Trial:
    """The program after the passes that were tried, all of which were right, and what it must compute."""

    def __init__(self, program: Program, feed: Mapping[str, np.ndarray], state: State, rtol: float | None,
                 sizes: dict[str, int]):
        self.program, self.feed, self.state, self.told, self.sizes = program, feed, state, rtol, sizes
        self.rtol = rtol                                # grows by what passes say of themselves, if nothing is told
        try:
            self.want: Outcome = outcome(verify(program), feed, state, sizes)
        except Exception as error:                      # whatever a kernel raises
            raise InputError("a program that runs before the passes", f"{type(error).__name__}: {error}",
                             "give inputs (a feed, or sizes) that it runs with") from error
        if not self.want:
            raise InputError("a program with results to compare", "one without outputs, which writes no state",
                             "mark what is of interest with builtin.shadow_output")
        if all(a.dtype in dtypes.INEXACT and a.size and np.isnan(a.astype(np.complex128)).all()
               for a in self.want.values()):
            raise InputError("results that are numbers", "NaN everywhere, which equals whatever a pass makes of it",
                             "give inputs and parameters for which the program computes numbers")

    def step(self, number: int, make: Callable[[State], Pass]) -> Culprit | None:
        """Try one more pass."""
        whole = self.run(make)
        if self.told is None and whole.rtol is not None:
            self.rtol = max(whole.rtol, self.rtol or 0.0)
        wrong = self.wrong(whole)
        if wrong is None:
            self.program, self.state = whole.program, whole.state
            return None
        if not whole.rewrites or isinstance(whole.error, RewriteError) or self.wrong(self.run(make, 0)) is not None:
            return self._culprit(number, whole, wrong)
        right, last = 0, whole.rewrites                 # after `right` rewrites all is well, after `last` it is not
        while last - right > 1:
            middle = (right + last) // 2
            if self.wrong(self.run(make, middle)) is None:
                right = middle
            else:
                last = middle
        found = self.run(make, last)
        found_wrong = self.wrong(found)
        return self._culprit(number, found, wrong if found_wrong is None else found_wrong, last, whole.rewrites)

    def run(self, make: Callable[[State], Pass], limit: float = float("inf")) -> _Run:
        """Run the pass on a copy, for `limit` rewrites at the most."""
        mapping = IrMapping()
        copy, state = self.program.clone(mapping), dict(self.state)
        each = make(state)
        run = _Run(each.name, copy, state, self.program, {mapping.look_up(v): v for v in self.program.list_vars()})
        with watching_rewrites(_Last(run, limit), limit=limit) as watch:
            try:
                each.run(copy)
            except Exception as error:                  # whatever a pass raises, it is to be found
                run.error = error
        run.rewrites, run.rtol = watch.rewrites, getattr(each, "rtol", None)
        return run

    def wrong(self, run: _Run) -> str | None:
        """What is wrong after a run; None if nothing is."""
        if run.error is not None:
            return f"it raises {type(run.error).__name__}: {run.error}"
        if run.state.keys() == self.state.keys() and all(run.state[n] is a for n, a in self.state.items()) and (
                run.program == self.program):
            return None
        try:
            verify(run.program)
        except ValueError as error:
            return f"the program is not well formed any more: {error}"
        try:
            got = outcome(run.program, self.feed, run.state, self.sizes)
        except Exception as error:                      # whatever a kernel raises
            return f"the program does not run any more: {type(error).__name__}: {error}"
        return difference(self.want, got, self.rtol)

    def _culprit(self, number: int, run: _Run, wrong: str, rewrite: int | None = None, rewrites: int = 0) -> Culprit:
        found = Culprit(number, run.name, wrong, run.before, run.program, _changed_lines(run))
        return replace(found, rewrite=rewrite, rewrites=rewrites, rule=run.rule, at=run.at) if rewrite else found


def _changed_lines(run: _Run) -> tuple[str, ...]:
    """The lines of the short text that the run has changed, with their neighbours."""
    before = Brief(run.before)
    after = Brief(run.program, {new: before.names[old] for new, old in run.origins.items() if old in before.names})
    lines = difflib.unified_diff(before.text.splitlines(), after.text.splitlines(), n=1, lineterm="")
    return tuple(f"{line[0]} {line[1:]}" if line[0] in "+- " else "..." for line in list(lines)[2:]
                 if not line.startswith("@@ -1,"))
