"""Oracle: every two instructions of which one writes what the other touches, found by comparing all pairs."""

from collections import defaultdict

import numpy as np

import minipd as paddle
from minipd.executor import Executor
from minipd.framework.row import ROWS
from minipd.ir import Program
from minipd.ir.builder import Builder
from minipd.ir.traced import trace
from minipd.static.input import InputSpec
from tools.course.checking import check

#: what the verb of each kind is about: does the first one write, does the second?
KINDS = {"true": (True, False), "anti": (False, True), "output": (True, True)}


def graph_of(program):
    return Executor(program).dependencies()


def traced(f, *shapes):
    return graph_of(trace(f, *(InputSpec(list(s), "float32") for s in shapes)).program)


def edges(graph):
    """(label, label, kind) of the edges that are about what is touched."""
    name = [i.label.rpartition(" %")[0] or i.label for i in graph.instructions]
    return sorted((name[e.before], name[e.after], e.kind) for e in graph.edges if e.kind in KINDS)


def touched(graph):
    """For each instruction: what it touches -> (whether it reads it, whether it writes it)."""
    found = []
    for instruction in graph.instructions:
        mine = defaultdict(lambda: [False, False])
        for access in graph._accesses(instruction.item):
            for part, _ in graph._parts(access.place, access.what):
                mine[part][access.writes] = True
        found.append(mine)
    return found


def missing(graph):
    """Two instructions that must keep their order, and that no chain of edges keeps apart."""
    reached = [set() for _ in graph.instructions]
    for i in reversed(range(len(reached))):
        for j in graph.downstream[i]:
            reached[i] |= {j} | reached[j]
    there = touched(graph)
    for j in range(len(there)):
        for i in range(j):
            if any((there[i][p][1] or there[j][p][1]) for p in there[i].keys() & there[j].keys()) and (
                    j not in reached[i]):
                return f"{graph.instructions[j]!r} need not wait for {graph.instructions[i]!r}"
    return "none"


def idle(graph):
    """An edge between two that have nothing to wait for, or whose kind is another."""
    there = touched(graph)
    for e in graph.edges:
        if e.kind in KINDS:
            first, second = KINDS[e.kind]
            if not any(there[e.before][p][first] and there[e.after][p][second]
                       for p in there[e.before].keys() & there[e.after].keys()):
                return f"{graph.instructions[e.after]!r} waits for {graph.instructions[e.before]!r} ({e.kind})"
    return "none"


def whole(make, on):
    check("none", lambda: missing(make()), f"what is missing in {on}")
    check("none", lambda: idle(make()), f"what is too much in {on}")


def test_a_chain():
    check([("exp", "shadow_output output_0", "true"), ("data input_0", "exp", "true")][::-1],
          lambda: edges(traced(lambda x: x.exp(), (4,))), "y = exp(x)")


def test_two_reads_do_not_wait():
    check([("add", "shadow_output output_0", "true"), ("data input_0", "exp", "true"),
           ("data input_0", "tanh", "true"), ("exp", "add", "true"), ("tanh", "add", "true")],
          lambda: edges(traced(lambda x: x.exp() + x.tanh(), (4,))), "y = exp(x) + tanh(x)")


def state(*steps):
    """A program that reads ("get") and writes ("set") the parameter w, in this order."""
    program = Program()
    build = Builder(program.global_block())
    x = build.data("x", (2,), "float32")
    for n, step in enumerate(steps):
        if step == "get":
            w = build.parameter("w", (2,), "float32")
            build.output(f"y{n}", build.call(ROWS["exp"], (w,), {})[0])
        else:
            build.set_parameter("w", x)
    return program


def of_state(*steps):
    """(first, then, kind) among the instructions that touch the parameter, numbered in their order."""
    graph = graph_of(state(*steps))
    mine = [i.index for i in graph.instructions if "parameter" in i.label.split()[0]]
    return [(mine.index(e.before), mine.index(e.after), e.kind) for e in graph.edges
            if e.before in mine and e.after in mine]


def test_a_write_after_a_read():
    check([(0, 1, "anti")], lambda: of_state("get", "set"), "w is read (0), then written over (1)")


def test_a_read_after_a_write():
    check([(0, 1, "true")], lambda: of_state("set", "get"), "w is written (0), then read (1)")


def test_two_writes():
    check([(0, 1, "output")], lambda: of_state("set", "set"), "w is written (0), and again (1)")


def test_a_write_waits_for_all_readers():
    check([(0, 2, "anti"), (1, 2, "anti")], lambda: of_state("get", "get", "set"),
          "w is read (0), read again (1), then written over (2)")


def test_a_new_value_has_readers_of_its_own():
    check([(0, 1, "anti"), (1, 2, "true"), (1, 3, "true"), (2, 4, "anti"), (3, 4, "anti")],
          lambda: [e for e in of_state("get", "set", "get", "get", "set") if e not in ((0, 4, "anti"),
                                                                                     (1, 4, "output"))],
          "w is read (0), written (1), read (2), read (3), written (4)")


def test_bytes_that_are_used_again():
    def f(x):
        a = x @ x
        b = a @ x
        c = b @ x
        return c @ a[:, :2]
    whole(lambda: traced(f, (4, 4)), "a = x x; b = a x; c = b x; c times two columns of a: the arena gives the same "
                                     "bytes to several")


def test_an_operator_that_writes_over_its_operand():
    check([("data input_0", "exp", "true"), ("exp", "tanh", "true"), ("sum", "shadow_output output_0", "true"),
           ("tanh", "sum", "true")], lambda: edges(traced(lambda x: x.exp().tanh().sum(), (8,))),
          "sum(tanh(exp(x))), where tanh reads what exp has made and then writes over it")
    whole(lambda: traced(lambda x: (x.exp().tanh() + 1.0) * x, (8,)),
          "(tanh(exp(x)) + 1) x, where tanh writes over what exp has made")


def test_buffers_that_overlap_in_part():
    def f(x):
        a = (x @ x)[:2, :3].exp()
        b = (x @ x.exp()).tanh()
        c = paddle.concat([a, a * 2.0], axis=1)
        return (c @ b[:, :5]).sum() + c.max() + (b @ b).min()
    whole(lambda: traced(f, (6, 6)), "a program whose buffers have 24, 48 and 144 bytes")


OPS = ("exp", "tanh", "abs")


def test_random_programs():
    for seed in range(25):
        rng = np.random.default_rng(seed)

        def f(x, w, rng=rng):
            values = [x, w, x @ w]
            for _ in range(rng.integers(3, 14)):
                a, b = (values[int(i)] for i in rng.integers(max(0, len(values) - 4), len(values), 2))
                way = rng.integers(5)
                values.append(getattr(a, OPS[rng.integers(3)])() if way < 2 else a + b if way == 2 else a @ b
                              if way == 3 else paddle.concat([a[:3], b[3:]]))
            return values[-1].sum(), values[-2]
        whole(lambda f=f: traced(f, (5, 5), (5, 5)), f"random program {seed}")


def test_a_branch_touches_what_its_regions_touch():
    def f(x):
        y = x @ x
        z = paddle.static.nn.cond(x.sum() > 0.0, lambda: y.exp() @ x, lambda: x.tanh())
        return (z @ x) @ x
    whole(lambda: traced(f, (4, 4)), "a program with an `if`")
