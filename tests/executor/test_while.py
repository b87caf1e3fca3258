"""Loops in the executor: what is carried, what is read from around, memory that iterations share, and errors."""

import numpy as np
import pytest

from minipd.executor import Executor, Memory, Scope
from minipd.executor.plan import ALIGNMENT
from minipd.framework.row import ROWS
from minipd.ir import Program
from minipd.ir.builder import Builder
from minipd.ir.types import DenseTensorType, StackType
from minipd.ir.verify import verify


class Writer:
    """A program written by hand, with loops as functions of Python."""

    def __init__(self):
        self.program = Program()
        self.build = Builder(self.program.global_block())

    def call(self, name, *values, **attrs):
        results = self.build.call(ROWS[name], values, attrs)
        return results if len(results) > 1 else results[0]

    def data(self, name, shape, dtype="float64"):
        return self.build.data(name, shape, dtype)

    def number(self, value, dtype="int64"):
        return self.build.full((), value, dtype)

    def loop(self, cond, body, *start):
        """The results of `while cond(*v): v = body(*v)`."""
        op = self.build.build("pd_op.while", [cond(*start), *start], {}, [v.type() for v in start], 1)
        block = op.regions[0].add_block()
        around = self.build.block, self.build.before
        self.build.set_insertion_point_to_block_end(block)
        out = body(*(block.add_arg(v.type()) for v in start))
        self.build.build("cf.yield", [cond(*out), *out])
        self.build.block, self.build.before = around
        return op.results()

    def less(self, limit):
        return lambda i, *_: self.call("less_than", i, limit)

    def next(self, i):
        return self.call("add", i, self.number(1))

    def run(self, outputs, feed, **kwargs):
        for name, value in outputs.items():
            self.build.output(name, value)
        verify(self.program)
        self.executor = Executor(self.program)
        return self.executor.run(feed, **kwargs)


@pytest.fixture
def w():
    return Writer()


X = np.array([0.5, -1.0, 2.0])


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_a_loop(w, n):
    x, n_value = w.data("x", (3,)), w.data("n", (), "int64")
    i, h = w.loop(w.less(n_value), lambda i, h: (w.next(i), w.call("multiply", w.call("tanh", h), x)), w.number(0), x)
    got = w.run({"i": i, "h": h, "again": w.call("add", h, x)}, {"x": X, "n": np.array(n)})
    h = X
    for _ in range(n):
        h = np.tanh(h) * X
    assert got["i"] == n
    np.testing.assert_array_equal(got["h"], h)
    np.testing.assert_array_equal(got["again"], h + X)
    assert X.tolist() == [0.5, -1.0, 2.0]
    assert not np.shares_memory(got["h"], X)


def test_carried_values_change_places(w):
    """Fibonacci numbers: what one iteration leaves as b is a of the next, and a is not written over before."""
    def body(i, a, b):
        return w.next(i), b, w.call("add", a, b)
    one = w.data("one", (2,), "int64")
    _, a, b = w.loop(w.less(w.number(10)), body, w.number(0), one, one)
    got = w.run({"a": a, "b": b}, {"one": np.array([1, 10])})
    assert got["a"].tolist() == [89, 890] and got["b"].tolist() == [144, 1440]


def test_rotation_of_three(w):
    x, y, z = (w.data(n, (2,)) for n in "xyz")
    _, a, b, c = w.loop(w.less(w.number(4)), lambda i, a, b, c: (w.next(i), b, c, a), w.number(0), x, y, z)
    got = w.run({"a": a, "b": b, "c": c}, {n: np.full(2, ord(n), float) for n in "xyz"})
    assert "".join(chr(int(got[n][0])) for n in "abc") == "yzx"


def test_what_the_body_reads_from_around_outlives_the_loop_only(w):
    """`outer` is read early in the body, behind which the body needs memory of the same size."""
    x = w.data("x", (64,))
    outer = w.call("exp", x)

    def body(i, h):
        h = w.call("add", h, outer)
        t = w.call("tanh", w.call("scale", h, scale=2.0, bias=0.0))
        return w.next(i), w.call("add", w.call("tanh", w.call("exp", t)), h)
    _, h = w.loop(w.less(w.number(5)), body, w.number(0), x)
    data = np.linspace(-1, 1, 64)
    got = w.run({"h": h}, {"x": data})["h"]
    expected = data
    for _ in range(5):
        h = expected + np.exp(data)
        expected = np.tanh(np.exp(np.tanh(h * 2.0))) + h
    np.testing.assert_array_equal(got, expected)


def test_nested_loops(w):
    x = w.data("x", (3,))
    outer = w.call("exp", x)

    def body(i, h):
        scaled = w.call("multiply", h, outer)
        _, h = w.loop(w.less(i), lambda j, g: (w.next(j), w.call("tanh", w.call("add", w.call("multiply", g, scaled),
                                                                                 outer))), w.number(0), h)
        return w.next(i), w.call("add", h, scaled)
    _, h = w.loop(w.less(w.number(4)), body, w.number(0), x)
    got = w.run({"h": h}, {"x": X})["h"]
    h = X
    for i in range(4):
        scaled = h * np.exp(X)
        for _ in range(i):
            h = np.tanh(h * scaled + np.exp(X))
        h = h + scaled
    np.testing.assert_array_equal(got, h)


def test_views_are_carried(w):
    """A transposed view of what an iteration makes, reshaped (which copies) by the next."""
    x = w.data("x", (2, 3))

    def body(i, h):
        flat = w.call("reshape", h, shape=(2, 3))
        return w.next(i), w.call("transpose", w.call("add", flat, x), perm=(1, 0))
    _, h = w.loop(w.less(w.number(3)), body, w.number(0), w.call("transpose", x, perm=(1, 0)))
    data = np.arange(6.0).reshape(2, 3)
    got = w.run({"h": h}, {"x": data})["h"]
    h = data.T
    for _ in range(3):
        h = (h.reshape(2, 3) + data).T
    np.testing.assert_array_equal(got, h)


def test_a_captured_value_is_yielded(w):
    """The loop ends with a value from around it, which is alive until its result is read."""
    x = w.data("x", (3,))
    outer = w.call("exp", x)
    _, h = w.loop(w.less(w.number(2)), lambda i, h: (w.next(i), outer), w.number(0), x)
    after = w.call("tanh", w.call("square", x))
    got = w.run({"sum": w.call("add", h, after)}, {"x": X})["sum"]
    np.testing.assert_array_equal(got, np.exp(X) + np.tanh(X * X))


def test_state_in_a_loop(w):
    s = w.build.parameter("s", (3,), "float64")
    _, h = w.loop(w.less(w.number(3)), lambda i, h: (w.next(i), w.call("add", h, s)), w.number(0), s)
    w.build.set_parameter("s", h)
    scope = Scope(s=X.copy())
    w.run({"h": h}, {}, scope=scope)
    np.testing.assert_array_equal(scope["s"], X * 4)
    w.executor.run({}, scope)
    np.testing.assert_array_equal(scope["s"], X * 16)


def test_memory_does_not_grow_with_the_iterations(w):
    n = w.data("n", (), "int64")
    x = w.data("x", (1000,))

    def body(i, h):
        t = w.call("tanh", w.call("scale", h, scale=2.0, bias=0.5))
        return w.next(i), w.call("add", t, w.call("sin", h))
    _, h = w.loop(w.less(n), body, w.number(0), x)
    w.build.output("h", w.call("tanh", h))
    executor, peaks = Executor(verify(w.program)), []
    for times in (2, 50):
        memory = Memory()
        out = executor.run({"n": np.array(times), "x": np.zeros(1000)}, memory=memory)
        peaks.append(memory.peak)
        assert memory.live == executor.plan().size + ALIGNMENT + out["h"].nbytes
    assert peaks[0] == peaks[1] <= executor.plan().size + 2 * 8000 + 1000


def test_a_stack_per_iteration(w):
    """The inner loop's stack is made anew for every outer iteration and travels on the outer one's."""
    stack, inlet, outlet = w.build.build("cf.stack_create", (), {}, [StackType(e) for e in StackType.ENDS]).results()

    def body(i, h):
        inner = w.build.build("cf.stack_create", (), {}, [StackType(e) for e in StackType.ENDS]).results()

        def push(j, h):
            w.build.build("cf.tuple_push", [inner[1], h])
            return w.next(j), w.call("scale", h, scale=2.0, bias=1.0)
        _, h = w.loop(w.less(i), push, w.number(0), h)
        w.build.build("cf.tuple_push", [inlet, inner[0], inner[2]])
        return w.next(i), h
    _, h = w.loop(w.less(w.number(4)), body, w.number(0), w.data("x", ()))

    def has(stack):
        return w.build.build("cf.has_elements", [stack], {}, [DenseTensorType((1,), "bool")]).result(0)

    def pops(total, count):
        ends = w.build.build("cf.tuple_pop", [outlet], {}, [StackType("stack"), StackType("outlet")]).results()

        def pop(total):
            x = w.build.build("cf.tuple_pop", [ends[1]], {}, [DenseTensorType((), "float64")]).result(0)
            return w.call("add", w.call("scale", total, scale=0.5, bias=0.0), x),
        total, = w.loop(lambda *_: has(ends[0]), pop, total)
        return total, w.next(count)
    total, count = w.loop(lambda *_: has(stack), pops, h, w.number(0))
    got = w.run({"total": total, "count": count}, {"x": np.array(1.0)})
    x, pushed = 1.0, []
    for i in range(4):
        for _ in range(i):
            pushed.append(x)
            x = x * 2 + 1
    total = x
    for x in reversed(pushed):
        total = total * 0.5 + x
    assert got["count"] == 4 and got["total"] == total


def test_an_error_names_the_operation_and_the_lines(w):
    table = w.data("table", (3, 2))
    _, ids, _ = w.loop(w.less(w.number(9)), lambda i, ids, h: (w.next(i), w.next(ids), w.call("embedding", ids, table)),
                       w.number(0), w.data("ids", (1,), "int64"), w.call("slice", table, axes=(0,), starts=(0,),
                                                                         ends=(1,)))
    for op in w.program.walk():
        op.set_attr("op_callstack", (f"user.py:{10 if op.name() == 'pd_op.while' else 12}",))
    with pytest.raises(ValueError, match="embedding") as caught:
        w.run({"ids": ids}, {"table": np.zeros((3, 2)), "ids": np.array([1])})
    notes = "\n".join(caught.value.__notes__)
    assert notes.index("pd_op.embedding (from user.py:12)") < notes.index("pd_op.while (from user.py:10)")
