"""Random functions: as they are, transformed on Python's numbers, and traced on tensors, they compute the same; and
traced tensors have the gradients of eager ones."""

import linecache
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import minipd as paddle
from minipd.jit import to_static
from minipd.jit.dy2static import transformed

FILE = "<random function {}>"
INPUTS = [(0, 0.0), (1, 2.5), (3, -1.5), (-4, 7.25), (6, 2.0)]


@pytest.fixture(autouse=True)
def double(own_context):
    paddle.set_default_dtype("float64")


class Writer:
    """Draws a function of an int `a` and a float `b`.  Every loop ends; every way out returns a pair of both kinds."""

    def __init__(self, draw, budget):
        self.draw, self.budget, self.loops = draw, budget, 0

    def pick(self, *choices):
        return self.draw(st.sampled_from(choices))

    def whole(self, names):
        name = self.pick("a", *names)
        return self.pick(name, f"{name} + {self.pick(1, 2, 3)}", f"{name} * 3 % 11 - 4", f"{name} // 2", f"-{name}",
                         str(self.pick(-2, 0, 5)), f"({name} if {self.test(names, 1)} else 1)", "int(b) % 7")

    def real(self, names):
        return self.pick("b", "b * 0.5", "b + 1.5", "b - 2.0", "-b", "1.25", f"b + {self.pick('a', *names)}",
                         "min_of(b, 3.0)", "float(a) * 0.5")

    def test(self, names, depth=2):
        name = self.pick("a", *names)
        plain = self.pick(f"{name} > {self.pick(-1, 1, 3)}", f"{name} % 2", f"b < {self.pick(0.0, 2.5)}",
                          f"0 <= {name} < 4", f"{name} in (1, 3)", "a == b", "a != 2")
        if depth == 0:
            return plain
        return self.pick(plain, f"not {plain}", f"({plain} and {self.test(names, depth - 1)})",
                         f"({plain} or {self.test(names, depth - 1)})")

    def block(self, depth, names, in_loop):
        lines = []
        for _ in range(self.draw(st.integers(1, 3))):
            if self.budget > 0:
                self.budget -= 1
                lines += self.statement(depth, names, in_loop)
        return lines or ["pass"]

    def statement(self, depth, names, in_loop):
        kinds = ["a", "b", "a", "b", "if", "if", "return"]
        if in_loop:
            kinds += ["break", "continue"]
        if depth < 3 and self.loops < 3:
            kinds += ["for", "while"]
        kind = self.pick(*kinds) if depth < 4 else self.pick("a", "b")
        if kind == "a":
            return [f"a {self.pick('=', '+=', '-=')} {self.whole(names)}"]
        if kind == "b":
            return [f"b {self.pick('=', '+=')} {self.real(names)}"]
        if kind == "return":
            return [f"return {self.whole(names)}, {self.real(names)}"]
        if kind in ("break", "continue"):
            return [kind]
        if kind == "if":
            lines = [f"if {self.test(names)}:", *indented(self.block(depth + 1, names, in_loop))]
            if self.draw(st.booleans()):
                lines += ["else:", *indented(self.block(depth + 1, names, in_loop))]
            return lines
        self.loops += 1
        n = f"n{self.loops}"
        if kind == "for":
            lines = [f"for {n} in range({self.pick('2', '3', 'a % 4', '1, a % 5', '3, -1, -2')}):",
                     *indented(self.block(depth + 1, [*names, n], True))]
        else:
            lines = [f"{n} = 0", f"while {n} < 4 and {self.test(names)}:", f"    {n} += 1",
                     *indented(self.block(depth + 1, [*names, n], True))]
        if self.draw(st.booleans()):
            lines += ["else:", *indented(self.block(depth + 1, names, in_loop))]
        return lines


def indented(lines):
    return ["    " + line for line in lines]


@st.composite
def functions(draw):
    body = Writer(draw, draw(st.integers(3, 9))).block(0, [], False)
    return "\n".join(["def f(a, b):", *indented([*body, "return a, b"])]) + "\n"


def min_of(x, y):
    if x < y:
        return x
    return y


def defined(source):
    """The function of this source, which `linecache` knows."""
    file = FILE.format(abs(hash(source)))
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    space = {"min_of": min_of, "quiet": quiet}
    exec(compile(source, file, "exec"), space)
    return space["f"]


def check(source, inputs):
    f = defined(source)
    rewritten, compiled = transformed(f), to_static(f)
    assert rewritten.__code__ is not f.__code__
    for a, b in inputs:
        want = f(a, b)
        got = rewritten(a, b)
        assert got == want and list(map(type, got)) == list(map(type, want))
        (x, y), gradient = with_gradient(compiled, a, b)
        found = tuple(v.item() if isinstance(v, paddle.Tensor) else v for v in (x, y))
        assert found == pytest.approx(want, rel=1e-12), (a, b)
        assert gradient == pytest.approx(with_gradient(f, a, b)[1], rel=1e-12), (a, b)


def with_gradient(f, a, b):
    """What f gives for tensors, and the gradient of its second result with respect to b."""
    a, b = paddle.to_tensor(a), paddle.to_tensor(b, stop_gradient=False)
    results = f(a, b)
    if isinstance(results[1], paddle.Tensor) and not results[1].stop_gradient:
        results[1].backward()
    return results, 0.0 if b.grad is None else b.grad.item()


class PythonWriter(Writer):
    """Draws what only Python decides, too: exceptions, contexts, variables without values, inner functions.

    (One difference is let pass: a variable that functions share has a NameError of its own name in Python.)
    """

    def statement(self, depth, names, in_loop):
        kind = self.pick("plain", "plain", "plain", "try", "with", "del", "inner", "walrus", "maybe", "list", "match")
        name = self.pick("a", *names)
        if kind == "plain" or depth > 3:
            return super().statement(depth, names, in_loop)
        if kind == "try":
            lines = ["try:", *indented(self.block(depth + 1, names, in_loop)), f"    a = 7 // ({name} % 3)",
                     f"except {self.pick('ZeroDivisionError', '(NameError, ValueError)')} as error:",
                     *indented(self.block(depth + 1, names, in_loop)), "    seen.append(isinstance(error, NameError))"]
            if self.draw(st.booleans()):
                lines += ["else:", *indented(self.block(depth + 1, names, in_loop))]
            if self.draw(st.booleans()):
                lines += ["finally:", f"    seen.append({name})"]
            return lines
        if kind == "with":
            return [f"with quiet({self.pick('ZeroDivisionError', 'NameError')}) as q:",
                    *indented(self.block(depth + 1, names, in_loop)), f"    seen.append(q // {name})"]
        if kind == "del":
            return [f"if {self.test(names)}:", "    maybe = 1", f"if {self.test(names)}:", "    del maybe"]
        if kind == "inner":
            return ["def inner(k, *more, factor=2):", "    nonlocal a", f"    if k > {self.pick(0, 2)}:",
                    "        a = a - 1", *indented(indented(self.block(9, [], False))), "        return k * factor",
                    "    return more", f"seen.append(inner({name}, b))"]
        if kind == "walrus":
            return [f"if (got := {self.whole(names)}) > 1 and (other := got + 1):", "    seen.append(other)",
                    "seen.append([v for v in (got, a) if v and v != 2])"]
        if kind == "maybe":
            return [f"if {self.test(names)}:", f"    maybe = {self.whole(names)}", "seen.append(maybe)"]
        if kind == "list":
            return [f"seen += [{name}] if {self.test(names)} else [b, {name}]", "seen[-1] = (seen[-1], len(seen))"]
        return [f"match {name} % 4:", "    case 0:", *indented(indented(self.block(depth + 1, names, in_loop))),
                "    case 1 | 2 as caught if caught != a:", "        seen.append(caught)",
                "    case _:", *indented(indented(self.block(depth + 1, names, in_loop)))]


@contextmanager
def quiet(error):
    try:
        yield 8
    except error:
        pass


@st.composite
def python_functions(draw):
    body = PythonWriter(draw, draw(st.integers(3, 12))).block(0, [], False)
    return "\n".join(["def f(a, b, seen):", *indented([*body, "return a, b"])]) + "\n"


def outcome(f, a, b):
    seen = []
    try:
        result = f(a, b, seen)
    except (ZeroDivisionError, NameError) as error:
        result = UnboundLocalError if isinstance(error, NameError) else type(error), error.__traceback__
        while result[1].tb_next is not None:
            result = result[0], result[1].tb_next
        result = result[0], result[1].tb_lineno
    return result, seen


def check_python(source, inputs):
    f = defined(source)
    for a, b in inputs:
        assert outcome(transformed(f), a, b) == outcome(f, a, b)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(python_functions())
def test_random_functions_of_python(source):
    check_python(source, INPUTS)


@pytest.mark.long
@settings(max_examples=3000, suppress_health_check=list(HealthCheck))
@given(python_functions())
def test_many_random_functions_of_python(source):
    check_python(source, INPUTS)


@settings(max_examples=50, suppress_health_check=list(HealthCheck))
@given(functions())
def test_random_functions(source):
    check(source, INPUTS)


@pytest.mark.long
@settings(max_examples=1500, suppress_health_check=list(HealthCheck))
@given(functions())
def test_many_random_functions(source):
    check(source, INPUTS)
