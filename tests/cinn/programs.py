"""Programs to group: written with the public functions, and what grouping makes of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from minipd.cinn.compile import prepare
from minipd.cinn.frontend import build_groups
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.traced import trace
from minipd.ir.verify import verify
from minipd.static import InputSpec
from tests.decomposition.programs import run


def traced(fn: Callable, *arrays: np.ndarray) -> tuple[Program, dict[str, np.ndarray]]:
    """The program of `fn` on inputs like the arrays, and the feed."""
    specs = [InputSpec(list(a.shape), str(a.dtype), f"x{i}") for i, a in enumerate(arrays)]
    return trace(fn, *specs).program, {f"x{i}": a for i, a in enumerate(arrays)}


def grouped(program: Program) -> list[Operation]:
    """Decompose and group in place; the program must verify and survive its text."""
    prepare(program)
    groups = build_groups(program)
    verify(program)
    from minipd.ir.parser import parse
    assert parse(program.to_string("exact")) == program
    return groups


def names(group: Operation) -> list[str]:
    """The operators of a group, without constants."""
    constants = ("full", "full_int_array")
    return [op.row.name for op in group.regions[0].front() if op.row is not None and op.row.name not in constants]


def check(fn: Callable, *arrays: np.ndarray, tolerance: float = 1e-12) -> list[Operation]:
    """run(before) == run(after grouping, groups interpreted); the groups."""
    program, feed = traced(fn, *arrays)
    before = run(program, feed)
    groups = grouped(program)
    after = run(program, feed)
    assert before.keys() == after.keys()
    for name, want in before.items():
        np.testing.assert_allclose(after[name], want, rtol=tolerance, atol=tolerance, err_msg=name)
    return groups
