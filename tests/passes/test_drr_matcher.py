"""The matcher against one that tries everything, on random programs and random formulas."""

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minipd.framework.row import ROWS
from minipd.ir.builder import Builder
from minipd.ir.program import Program
from minipd.ir.verify import verify
from minipd.passes.drr import drr
from minipd.passes.formula import ops
from minipd.passes.matching import Source
from minipd.passes.nodes import Node
from minipd.passes.pattern import apply_patterns_greedily
from tests.passes.meaning import same

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import passes_matcher  # noqa: E402

F32 = np.dtype("float32")
#: name -> (number of operands, whether they commute)
OPERATORS = {"tanh": (1, False), "sigmoid": (1, False), "add": (2, True), "subtract": (2, False), "maximum": (2, True)}
ONE = st.sampled_from(sorted(OPERATORS))


@st.composite
def graphs(draw, inputs, least, most):
    """[(operator, operands)]: numbers of what was before; the first are the inputs."""
    calls = []
    for i in range(draw(st.integers(least, most))):
        name = draw(ONE)
        there = st.integers(0, inputs + i - 1)
        calls.append((name, [draw(there) for _ in range(OPERATORS[name][0])]))
    return calls


@st.composite
def patterns(draw):
    """A formula of two inputs, and those of its calls that are outputs: all that nobody reads."""
    calls = draw(graphs(2, 1, 4))
    read = {j for _, operands in calls for j in operands}
    outputs = [2 + i for i in range(len(calls)) if 2 + i not in read]
    return calls, outputs, [n for n in range(2) if n in read]


def program_of(calls, outputs):
    program = Program()
    build = Builder(program.global_block())
    values = [build.data(f"x{i}", (2,), F32) for i in range(2)]
    for name, operands in calls:
        values += build.call(ROWS[name], [values[j] for j in operands], {})
    for i in outputs:
        build.output(f"y{i}", values[i])
    return program


def formula_of(calls, outputs, inputs):
    """The pattern as a source formula."""
    def source(*given):
        values = dict(zip(inputs, given, strict=True))
        for i, (name, operands) in enumerate(calls):
            values[2 + i] = getattr(ops, name)(*(values[j] for j in operands))
        return tuple(values[i] for i in outputs)
    names = [f"t{i}" for i in inputs]
    return eval(f"lambda {', '.join(names)}: source({', '.join(names)})", {"source": source})       # named parameters


def connected(calls):
    """Whether the calls hang together by operands and results, inputs included."""
    left = {0}
    things = [{2 + i, *operands} for i, (_, operands) in enumerate(calls)]
    while True:
        more = {i for i in range(len(calls)) if any(things[i] & things[j] for j in left)} | left
        if more == left:
            return len(left) == len(calls)
        left = more


def brute(calls, outputs, program):
    """Every way to choose an operation for each call, in any order of operands that commute, that is a match.

    A match: {call: operation}.  Written from what a match is, and without a search along uses."""
    found = set()
    all_ops = [op for op in program.global_block() if op.row is not None and op.name().partition(".")[2] in OPERATORS]
    choices = [[op for op in all_ops if op.name() == f"pd_op.{name}"] for name, _ in calls]
    for chosen in itertools.product(*choices):
        if len(set(chosen)) < len(chosen):
            continue
        orders = [[op.operands_source(), op.operands_source()[::-1]] if OPERATORS[name][1] else [op.operands_source()]
                  for op, (name, _) in zip(chosen, calls, strict=True)]
        if any(agrees(calls, chosen, order) for order in itertools.product(*orders)) and closed(chosen, outputs):
            found.add(chosen)
    return found


def agrees(calls, chosen, orders):
    """Whether each number means one value, and those of inputs none that the chosen compute."""
    made = [op.result(0) for op in chosen]
    means = {2 + i: value for i, value in enumerate(made)}
    return all(means.setdefault(j, value) is value and (j >= 2 or value not in made)
               for (_, operands), values in zip(calls, orders, strict=True)
               for j, value in zip(operands, values, strict=True))


def closed(chosen, outputs):
    return all(2 + i in outputs or all(user in chosen for user in op.result(0).all_used_ops())
               for i, op in enumerate(chosen))


@settings(max_examples=120)
@given(patterns(), graphs(2, 1, 7), st.data())
def test_the_matcher_finds_what_trying_everything_finds(pattern, calls, data):
    formula, outputs, inputs = pattern
    shown = data.draw(st.sets(st.integers(2, 1 + len(calls)), max_size=2))
    program = program_of(calls, sorted(shown))
    if not connected(formula):
        return
    source = Source(formula_of(formula, outputs, inputs), "random")
    numbers = {op: i for i, op in enumerate(program.global_block())}
    # the nodes are made in the order of the calls
    for start in source.starts():
        found = {tuple(match.nodes[node] for node in source.nodes)
                 for op in program.global_block() for match in start.matches(op)}
        want = brute(formula, outputs, program)
        assert sorted([numbers[o] for o in m] for m in found) == sorted([numbers[o] for o in m] for m in want)


@settings(max_examples=30)
@given(graphs(2, 2, 9), st.data())
def test_rules_leave_random_programs_as_they_were(calls, data):
    """Rules that say the same in other words, verified after every rewrite."""
    @drr()
    class Minus:
        def source(x, y):
            return ops.tanh(x) - y

        def result(x, y):
            return (y - ops.tanh(x)) * -1.0

    @drr()
    class Pair:
        def source(x, y):
            return ops.sigmoid(x), ops.maximum(x, y)

        def result(x, y):
            return 1.0 / (ops.exp(-x) + 1.0), ops.where(ops.greater_than(x, y), x, y)

    @drr(keep=True)
    class Kept:
        def source(x, y):
            return ops.tanh(ops.add(x, y))

        def result(x, y):
            return ops.sigmoid((x + y) * 2.0) * 2.0 - 1.0
    shown = data.draw(st.sets(st.integers(2, 1 + len(calls)), min_size=1, max_size=3))
    changed, _ = same(program_of(calls, sorted(shown)), lambda p: apply_patterns_greedily(
        p, [Minus, Pair, Kept], debug=True), 1e-5)
    verify(changed)
    assert apply_patterns_greedily(changed, [Minus, Pair, Kept]) == 0


def test_the_brute_matcher_knows_the_hard_cases():
    """It is the measure, so it is measured itself."""
    silu = [("sigmoid", [0]), ("maximum", [0, 2])]
    for calls, outputs, n in (([("sigmoid", [0]), ("maximum", [0, 2])], [3], 1),
                              ([("sigmoid", [1]), ("maximum", [0, 2])], [3], 0),
                              ([("sigmoid", [0]), ("maximum", [2, 0])], [3], 1),
                              ([("sigmoid", [0]), ("maximum", [0, 2])], [2, 3], 0),
                              ([("sigmoid", [0]), ("subtract", [0, 2])], [3], 0)):
        assert len(brute(silu, [3], program_of(calls, outputs))) == n
    side_by_side = [("sigmoid", [0]), ("maximum", [0, 1])]
    assert not brute(side_by_side, [2, 3], program_of([("sigmoid", [0]), ("maximum", [0, 2])], [3]))


@pytest.mark.parametrize("kind", passes_matcher.PROGRAMS)
def test_work_grows_with_the_program(kind, monkeypatch):
    """Counted: how often 50 rules look at an operation, and how many users they look through."""
    looks = [0]

    def counting(cls, name, number):
        plain = getattr(cls, name)

        def count(self, *args):
            found = plain(self, *args)
            looks[0] += number(args, found)
            return found
        monkeypatch.setattr(cls, name, count)
    counting(Source, "_bind", lambda args, found: 1)
    counting(Node, "users_of", lambda args, found: args[0].use_count())
    rules = passes_matcher.ten() + passes_matcher.forty()
    assert len(rules) == 50
    each = []
    for size in (150, 600):
        program, looks[0] = passes_matcher.program(kind, size), 0
        number = program.num_ops()
        rewrites = apply_patterns_greedily(program, rules)
        assert rewrites > number / 8
        each.append(looks[0] / number)
    assert each[1] < each[0] * 1.2


def test_matching_starts_at_the_rarest_operation(monkeypatch):
    """Of two outputs that read a value with many users; from the other one, all these would be looked through each
    time."""
    @drr()
    class Pair:
        def source(x):
            return ops.tanh(x), ops.sigmoid(x)

        def constraint(match):
            return False

        def result(x):
            return x, x
    looked = []
    plain = Node.users_of
    monkeypatch.setattr(Node, "users_of", lambda self, value: looked.append(value) or plain(self, value))
    program = program_of([("tanh", [0])] * 40 + [("sigmoid", [0])], [2])
    assert apply_patterns_greedily(program, [Pair]) == 0 and len(looked) == 1
    assert sorted(Pair.roots) == ["pd_op.sigmoid", "pd_op.tanh"]
