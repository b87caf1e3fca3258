"""Dependencies, streams and events, and the simulated clock."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minipd.executor import Executor, Scope
from minipd.executor.frame import Steps
from minipd.executor.schedule import (
    Command,
    DeadlockError,
    Dependency,
    RaceError,
    schedule,
    simulate,
)
from minipd.framework.meta import Meta
from minipd.framework.row import ROWS
from minipd.ir import DenseTensorType, Program
from minipd.ir.builder import Builder
from minipd.ir.traced import trace
from minipd.static.nn import cond
from tests.ir.random_programs import programs

F32 = np.dtype(np.float32)


def any_order(graph, rng):
    """A random order that respects the graph."""
    missing = [len(before) for before in graph.upstream]
    ready, order = [i for i, n in enumerate(missing) if n == 0], []
    while ready:
        i = ready.pop(rng.randrange(len(ready)))
        order.append(i)
        for after in graph.downstream[i]:
            missing[after] -= 1
            if not missing[after]:
                ready.append(after)
    return order


def run_in(executor, order, feed, scope, run=None):
    """A run that has its instructions in this order; slots are emptied at its end."""
    run = run or executor.run
    if executor._arena is None:
        run(feed, dict(scope))                          # makes the binding
    bound, = executor._arena.bindings.values()
    program, bound.program = bound.program, Steps()
    try:
        for i in order:
            bound.program.add(program.parts[i]._replace(dead=()), bound.frame)
        return run(feed, scope)
    finally:
        bound.program = program


def filled(value, rng):
    return (rng.standard_normal(value.shape) * 3).astype(value.dtype)


# ------------------------------------------------------------------------------------------------- dependencies
@given(programs(symbolic=False, max_ops=15), st.data())
@settings(max_examples=40)
@np.errstate(all="ignore")
def test_every_order_that_respects_the_graph_computes_the_same(program, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    build = Builder(program.global_block())
    tensors = [v for op in program.global_block().ops for v in op.results() if isinstance(v.type(), DenseTensorType)]
    for i in data.draw(st.sets(st.integers(0, len(tensors) - 1))):
        build.set_parameter(f"result {i}", tensors[i])
    feed = {op.attrs()["name"]: filled(op.result(0), rng) for op in program.walk() if op.name() == "pd_op.data"}
    first = {name: filled(v, rng) for name, v in program.parameters().items()}
    executor, expected = Executor(program), Scope(first)
    executor.run(feed, expected)
    graph = executor.dependencies()
    for seed in range(3):
        order, scope = any_order(graph, random.Random(seed)), Scope(first)
        graph.check_order(order)
        run_in(executor, order, feed, scope)
        assert scope.keys() == expected.keys()
        for name, want in expected.items():
            np.testing.assert_array_equal(scope[name], want, err_msg=f"{name} {order}")


def chain():
    """Two matrix products one after the other, each into memory of its own, and again: the third reuses the first's."""
    def f(x):
        for _ in range(4):
            x = x.matmul(x)
        return x
    return Executor(trace(f, Meta((4, 4), F32)).program)


def kinds(graph):
    return {(e.before, e.after, e.kind) for e in graph.edges}


def test_kinds():
    # 0 data, 1..4 products (the last leaves the run), 5 output; 3 writes where 1 did, which 2 reads
    assert kinds(chain().dependencies()) == {
        (0, 1, "true"), (1, 2, "true"), (2, 3, "true"), (3, 4, "true"), (4, 5, "true")}

    def f(x):
        a, b = x.matmul(x), x.matmul(x)
        c = a.matmul(x)                     # a ends
        d = b.matmul(x)                     # d lies where a was
        return c.matmul(d)
    graph = Executor(trace(f, Meta((4, 4), F32)).program).dependencies()
    assert (3, 4, "anti") in kinds(graph) and (1, 4, "output") not in kinds(graph)
    anti = next(e for e in graph.edges if e.kind == "anti")
    assert graph.explain(anti) == ("instruction 4: matmul %4 must follow 3: matmul %3 (writes over what it reads: %4, "
                                   "bytes 0 to 64 of the arena)")


def test_memory_that_is_used_again_is_a_dependency():
    """Without it, an order that only looks at values computes something else."""
    def f(x):
        a, b = x.matmul(x), x.matmul(x) + 1.0
        c = a.matmul(x)
        d = b.matmul(x)
        return c.matmul(d)
    executor = Executor(trace(f, Meta((4, 4), F32)).program)
    x, graph = np.arange(16, dtype=np.float32).reshape(4, 4) / 16, executor.dependencies()
    labels = [i.label.split()[0] for i in graph.instructions]
    assert labels == ["data", "matmul", "matmul", "add", "matmul", "matmul", "matmul", "shadow_output"]
    wrong = [0, 1, 2, 3, 5, 4, 6, 7]            # d before c: they depend on different values, but d lies where a is
    with pytest.raises(ValueError, match=r"instruction 5: matmul %\d+ must follow 4: matmul %\d+ \(writes over what it "
                                         r"reads: .* and the order has them the other way round"):
        graph.check_order(wrong)
    right = executor.run({"input_0": x})["output_0"]
    assert not np.allclose(run_in(executor, wrong, {"input_0": x}, Scope())["output_0"], right)


def test_state_and_effects():
    program = Program()
    build = Builder(program.global_block())
    w, g = build.parameter("w", (2,), F32), build.data("g", (2,), F32)
    rate, skip = build.data("rate", (), F32), build.data("skip", (), np.dtype(bool))
    before, = build.call(ROWS["exp"], (w,), {})
    new, = build.call(ROWS["sgd"], (w, g, rate, skip), {})
    build.output("before", before)
    build.set_parameter("w", new)
    graph = Executor(program).dependencies()
    at = {i.label.split()[0]: i.index for i in graph.instructions}
    assert (at["exp"], at["sgd"], "anti") in kinds(graph), "the old value is read before it is written over"
    assert (at["sgd"], at["set_parameter"], "true") in kinds(graph)
    assert (at["parameter"], at["set_parameter"]) in {(e.before, e.after) for e in graph.edges}


def test_a_branch_touches_what_its_regions_touch():
    def f(x, y):
        h = x.matmul(x)
        return cond(y.sum() > 0.0, lambda: h.exp(), lambda: y * 2.0)
    graph = Executor(trace(f, Meta((3, 3), F32), Meta((3, 3), F32)).program).dependencies()
    names = [i.label.split()[0] for i in graph.instructions]
    branch = names.index("if")
    assert {names[i] for i in graph.upstream[branch]} >= {"matmul", "greater_than", "data"}


def test_reduction_keeps_what_nothing_implies():
    graph = chain().dependencies()
    graph.edges.append(Dependency(0, 4, "true", "x"))
    graph.downstream[0].append(4)
    assert {(e.before, e.after) for e in graph.reduced()} == {(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)}


def test_an_order_has_every_instruction_once():
    with pytest.raises(ValueError, match="expected each of 6 instructions once, got 5"):
        chain().dependencies().check_order([0, 1, 2, 3, 4])


# ------------------------------------------------------------------------------------------- streams and events
@given(programs(symbolic=False, max_ops=15), st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_events_are_enough_and_none_is_too_many(program, rng):
    """Whatever runs where: nothing races; and without any one of the waits, something does."""
    graph = Executor(program).dependencies()
    found = schedule(graph, lambda i: rng.choice("abc"))
    ran = [c.number for lane in found.lanes.values() for c in lane if c.kind == "run"]
    assert sorted(ran) == list(range(len(graph.instructions)))
    assert simulate(found, lambda i: rng.random()).seconds >= 0
    for name, lane in found.lanes.items():
        for i, command in enumerate(lane):
            if command.kind == "wait":
                lanes = found.lanes | {name: lane[:i] + lane[i + 1:]}
                with pytest.raises(RaceError):
                    simulate(replace(found, lanes=lanes), lambda i: 1.0)


def two_ways():
    """x -> a (slow, elsewhere) and b -> c; then both."""
    def f(x):
        a, b = x.exp(), x.tanh()
        return a + b.sin()
    return Executor(trace(f, Meta((4,), F32)).program).dependencies()


def test_a_race_names_both_instructions():
    graph = two_ways()
    found = schedule(graph, lambda i: "side" if i.label.startswith("exp") else "compute")
    assert str(found) == """\
stream compute:
    0: data input_0 %0
    record event 0
    2: tanh %2
    3: sin %3
    wait event 1
    4: add %4
    5: shadow_output output_0
stream side:
    wait event 0
    1: exp %1
    record event 1
"""
    found.lanes["compute"].remove(Command("wait", 1))
    with pytest.raises(RaceError, match=r"race: instruction 4: add %4 \(stream compute\) reads %1, bytes 0 to 16 of "
                       r"the arena, and nothing makes it wait for instruction 1: exp %1 \(stream side\), which writes "
                       "it; record an event behind that one, and wait for it") as caught:
        simulate(found, lambda i: 0.0)                          # the times happen to be right, which is no excuse
    assert caught.value.dependency[:3] == (1, 4, "true")
    found.lanes["side"].clear()
    with pytest.raises(RaceError, match="no stream runs instruction 1: exp %1"):
        simulate(found)


def test_a_deadlock_says_who_waits_for_whom():
    found = schedule(two_ways(), lambda i: "side" if i.label.startswith("exp") else "compute")
    lane = found.lanes["compute"]
    lane.remove(Command("wait", 1))
    lane.insert(0, Command("wait", 1))                          # before what the other stream waits for
    with pytest.raises(DeadlockError, match="stream compute waits, before 0: data input_0 %0, for event 1, which "
                       "stream side would record; stream side waits, before 1: exp %1, for event 0, which stream"):
        simulate(found)
    lane[0] = Command("wait", 7)
    with pytest.raises(DeadlockError, match="for event 7, which no stream records"):
        simulate(found)


def test_the_clock():
    found = schedule(two_ways(), lambda i: "side" if i.label.startswith("exp") else "compute")
    line = simulate(found, lambda i: {"exp": 5.0, "tanh": 1.0, "sin": 1.0, "add": 2.0}.get(i.label.split()[0], 0.0))
    assert {s.instruction.label.split()[0]: (s.stream, s.start, s.end) for s in line.slots} == {
        "data": ("compute", 0, 0), "exp": ("side", 0, 5), "tanh": ("compute", 0, 1), "sin": ("compute", 1, 2),
        "add": ("compute", 5, 7), "shadow_output": ("compute", 7, 7)}
    assert line.seconds == 7 and line.busy("side") == 5 and line.busy("compute") == 4 and line.overlapped() == 2


def test_costs_grow_with_bytes_and_arithmetic():
    def f(x, y):
        return x.exp(), x.matmul(y)
    graph = Executor(trace(f, Meta((512, 256), F32), Meta((256, 1024), F32)).program).dependencies()
    took = {s.instruction.label.split()[0]: s.end - s.start for s in simulate(schedule(graph)).slots}
    assert took["exp"] == pytest.approx(1e-6 + 2 * 512 * 256 * 4 / 1e10)
    assert took["matmul"] == pytest.approx(1e-6 + 2 * 512 * 256 * 1024 / 5e10)
