"""What passes are made from: `Pass`, `FunctionPass`, `PatternRewritePass`.

    @register_pass("count_pass")                    a class, for a pass that keeps something while it runs
    class Count(Pass):
        \"\"\"One line that says what it does.\"\"\"
        def run(self, program): ...

    @function_pass("drop_prints_pass", visits="block")      a function, for one that only walks
    def drop_prints(block, *, limit=100): ...

    @drr("silu_fuse_pass")                          a rule, for one that replaces formulas (module `drr`)
    class Silu: ...

Options are keyword arguments: of the class, or of the function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from minipd.ir.block import Block
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.passes.pattern import RULES, RewritePattern, apply_patterns_greedily

__all__ = ["FunctionPass", "Pass", "PatternRewritePass"]


class Pass:
    """Changes a program in place, into one that computes the same.

    name: under which it is registered; Paddle's, where Paddle has the pass.
    opt_level: a manager of a lower level skips it.  Paddle's levels: 0 what the framework needs; 1 constants, common
    subexpressions, memory; 2 fusion; 3 layout; 4 what may change the precision.
    dependents: names of the passes that must stand before it in a pipeline.
    exact: promises that what is computed stays the same to the bit.
    rtol: how far it may be apart otherwise, in parts of the largest number; None: as rounding elsewhere explains.
    attrs: the options that it was made with, by name, as `add_pass` was given them.

    Invariant: a verified program stays one.  Inputs, outputs and the state that is written stay what they are.  What
    `run` leaves, it finds nothing to change in.
    """

    name: str = ""
    opt_level: int = 1
    dependents: tuple[str, ...] = ()
    exact: bool = False
    rtol: float | None = None
    attrs: Mapping[str, Any] = MappingProxyType({})

    def run(self, program: Program) -> int:
        """Returns the number of changes: 0 means that the program is as it was."""
        raise NotImplementedError(f"pass {self.name or type(self).__name__}: expected a method run(program) that "
                                  "returns the number of changes, got none; define it")

    def can_apply_on(self, program: Program) -> bool:
        """Whether there is any sense in running it; a manager skips it where there is none."""
        return True

    def __repr__(self) -> str:
        return f"<pass {self.name}{f' {dict(self.attrs)}' if self.attrs else ''}>"


class FunctionPass(Pass):
    """A pass that calls a function, which returns the number of its changes (or whether there was one).

    visits: what the function is given: "program"; "block", each block, those inside of others first; or "operation",
    each operation that is still there, in the order of the program.

    Raises: ValueError for another word; `run`: TypeError for a function that returns nothing.

    >>> from minipd.framework.meta import Meta
    >>> from minipd.framework import dtype as dtypes
    >>> from minipd.ir.traced import trace
    >>> program = trace(lambda x: x.exp().tanh(), Meta((2,), dtypes.float32.np)).program
    >>> names = []
    >>> FunctionPass("names_pass", lambda op: bool(names.append(op.name())), visits="operation").run(program)
    0
    >>> names
    ['pd_op.data', 'pd_op.exp', 'pd_op.tanh', 'builtin.shadow_output']
    """

    def __init__(self, name: str, function: Callable[..., int], visits: str = "program", *, opt_level: int = 1,
                 dependents: Sequence[str] = (), exact: bool = False, **options: Any):
        require_visits(name, visits)
        self.name, self.opt_level, self.dependents, self.exact = name, opt_level, tuple(dependents), exact
        self.function, self.visits = partial(function, **options), visits
        self.__doc__ = function.__doc__

    def run(self, program: Program) -> int:
        return sum(self._changes(each) for each in WALKS[self.visits](program))

    def _changes(self, visited: Any) -> int:
        changes = self.function(visited)
        if not isinstance(changes, (int, np.integer, np.bool_)):
            raise TypeError(f"pass {self.name}: expected its function to return the number of its changes, or whether "
                            f"there was one, got {changes!r}; return 0 where nothing is changed")
        return int(changes)


def require_visits(name: str, visits: str) -> None:
    """Raise ValueError for what no function pass can visit."""
    if visits not in WALKS:
        raise ValueError(f"pass {name}: expected visits to be one of {', '.join(WALKS)}, got {visits!r}")


def _blocks(program: Program) -> Iterator[Block]:
    ops = list(program.walk())              # owners before what is inside of them
    yield from (block for op in reversed(ops) if op.parent is not None for block in op.blocks())
    yield program.global_block()


def _operations(program: Program) -> Iterator[Operation]:
    yield from (op for op in list(program.walk()) if op.parent is not None)


WALKS: dict[str, Callable[[Program], Iterator[Any]]] = {
    "program": lambda program: iter((program,)), "block": _blocks, "operation": _operations}


class PatternRewritePass(Pass):
    """A pass that applies patterns until none fires.

    patterns: rewrite patterns, rules of `drr` among them; by default those of the class, and the rules that were
    registered under the name of the pass.  max_rewrites: how many are taken for endless; see `apply_patterns_greedily`.
    """

    opt_level = 2
    patterns: ClassVar[Sequence[Any]] = ()

    def __init__(self, name: str | None = None, patterns: Sequence[RewritePattern] | None = None,
                 max_rewrites: int | None = None):
        self.name = name or self.name
        of_class = [p() if isinstance(p, type) else p for p in type(self).patterns]
        self.rules = [*of_class, *RULES.get(self.name, ())] if patterns is None else list(patterns)
        self.max_rewrites = max_rewrites

    def run(self, program: Program) -> int:
        return apply_patterns_greedily(program, self.rules, max_rewrites=self.max_rewrites)

    def __repr__(self) -> str:
        return f"<pass {self.name} of {', '.join(rule.name for rule in self.rules)}>"
