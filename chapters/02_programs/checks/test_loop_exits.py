"""Oracle: Python itself.  A rewritten function must do what it did, for numbers and for tensors that are traced."""

import linecache
import textwrap

import numpy as np

import minipd as paddle
from minipd.jit.dy2static import transformed
from tools.course.checking import check


def function(code):
    """A function from its text, which rewriting must be able to read."""
    code = textwrap.dedent(code).lstrip()
    name = f"<loop {len(linecache.cache)}>"
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    scope = {}
    exec(compile(code, name, "exec"), scope)
    return scope["f"], code


def same(code, *calls):
    f, text = function(code)
    for args in calls:
        check(f(*args), lambda args=args: transformed(f)(*args), f"f{args!r}, with\n{text}")


def test_break():
    same("""
        def f(xs):
            seen = []
            for x in xs:
                if x > 3:
                    break
                seen.append(x)
            return seen
        """, ([1, 5, 2],), ([1, 2],), ([],))


def test_continue():
    same("""
        def f(xs):
            seen = []
            for x in xs:
                if x > 3:
                    continue
                seen.append(x)
            return seen
        """, ([1, 5, 2],))


def test_return():
    same("""
        def f(xs):
            for x in xs:
                if x > 3:
                    return x
            return "none"
        """, ([1, 5, 7],), ([1, 2],))


def test_return_of_nothing():
    same("""
        def f(xs):
            for x in xs:
                if x > 3:
                    return
            return "none"
        """, ([1, 5, 7],), ([1, 2],))


def test_the_value_is_that_of_the_moment():
    same("""
        def f(xs):
            total = 0
            for x in xs:
                total += x
                if total > 3:
                    return total
            total = -1
            return total
        """, ([2, 2, 2],), ([1],))


def test_while_with_all_three():
    same("""
        def f(n):
            seen = []
            while n < 10:
                n += 1
                if n % 3 == 0:
                    continue
                if n == 7:
                    return seen, n
                if n == 8:
                    break
                seen.append(n)
            return seen
        """, (0,), (7,), (9,))


def test_a_loop_in_a_loop():
    same("""
        def f(rows):
            seen = []
            for row in rows:
                for x in row:
                    if x == 0:
                        break
                    if x == 9:
                        return seen, row
                    seen.append(x)
                if len(row) > 2:
                    continue
                seen.append("row")
            return seen
        """, ([[1, 2], [3, 0, 4], [5]],), ([[1], [2, 9, 3], [4]],))


def test_the_else_of_a_loop():
    same("""
        def f(xs):
            for x in xs:
                if x > 3:
                    break
            else:
                return "no break"
            return x
        """, ([1, 5],), ([1, 2],))


def test_tensors_decide():
    f, text = function("""
        def f(xs):
            total = xs[0] * 0.0
            for x in xs:
                if x < 0.0:
                    break
                if x > 10.0:
                    continue
                total = total + x
            return total
        """)
    for xs in ([1.0, 2.0, -1.0, 5.0], [1.0, 20.0, 3.0, 4.0], [-1.0, 20.0, 3.0, 4.0]):
        check(f(xs), lambda xs=xs: paddle.jit.to_static(f)(paddle.to_tensor(xs)).item(),
              f"to_static(f)({xs}), with\n{text}")


def test_a_tensor_decides_when_to_return():
    f, text = function("""
        def f(x):
            while x < 100.0:
                x = x * 2.0
                if x > 20.0:
                    return x
            return x + 1.0
        """)
    for x in (3.0, 100.0):
        check(f(x), lambda x=x: paddle.jit.to_static(f)(paddle.to_tensor(x)).item(), f"to_static(f)({x}), with\n{text}")


def some(rng, depth):
    """A random loop over numbers, with random ways out."""
    lines = [f"for v{depth} in xs[{rng.integers(3)}:]:", f"    n = n * 2 + v{depth}"]
    for _ in range(rng.integers(1, 4)):
        if depth and rng.random() < 0.4:
            lines.append(textwrap.indent(some(rng, depth - 1), "    "))
        way = rng.choice(["break", "continue", f"return n, v{depth}", "return"])
        lines += [f"    if (n + v{depth}) % {rng.integers(2, 9)} == 0:", f"        {way}", "    n = n + 1"]
    if rng.random() < 0.3:
        lines += ["else:", "    n = n + 5"]
    return "\n".join(lines)


def test_random_loops():
    rng = np.random.default_rng(0)
    bodies = sorted({some(rng, int(rng.integers(0, 3))) for _ in range(60)}, key=len)
    for body in bodies:
        code = "def f(xs, n):\n" + textwrap.indent(body, "    ") + "\n    return n"
        same(code, *(([int(x) for x in rng.integers(0, 9, 5)], int(rng.integers(9))) for _ in range(5)))
