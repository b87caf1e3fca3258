"""Oracles: the names written out by hand; Python's own compiler, which must know what is local to a function."""

import ast
import symtable
import textwrap

import numpy as np

from minipd.jit.dy2static.scopes import bound
from tools.course.checking import check


def names(code):
    return bound(ast.parse(textwrap.dedent(code)).body)


def hand(expected, code):
    check(expected, lambda: names(code), f"bound of the statements\n{textwrap.dedent(code).strip()}\n")


def local(code):
    """What Python calls the local variables of a function with this body."""
    table = symtable.symtable("def f():\n" + textwrap.indent(code, "    "), "", "exec")
    return sorted(s.get_name() for s in table.get_children()[0].get_symbols() if s.is_local())


def test_an_assignment():
    hand(["y"], "y = x + 1")


def test_what_is_only_read():
    hand([], "print(x, y.z, xs[0])")


def test_in_order_and_once():
    hand(["b", "a", "c"], "b = 1\na, b = 2, 3\nc = a")


def test_everything_that_assigns():
    hand(["a", "b", "c"], "(a, [b, *c]) = x")
    hand(["n"], "n += 1")
    hand(["n"], "n: int = 1")
    hand(["w"], "print((w := 3))")


def test_loops_and_blocks_inside():
    hand(["i", "y"], "for i in xs:\n    if i > 2:\n        y = i")
    hand(["f"], "with open(x) as f:\n    pass")


def test_a_deleted_name():
    hand(["x"], "del x")


def test_attributes_and_elements_are_no_names():
    hand([], "x.a = 1\nxs[0] = 2\nxs[i].b += 3\ndel x.a")


def test_imports():
    hand(["numpy", "np", "tau"], "import numpy\nimport numpy as np\nfrom math import tau")
    hand(["os"], "import os.path")
    hand(["p"], "import os.path as p")


def test_functions_and_classes():
    hand(["f"], "def f(a, b=c):\n    inner = a\n    return inner")
    hand(["C"], "class C(B):\n    member = 1")
    hand(["g"], "g = lambda z: z + y")


def test_a_name_bound_in_a_default():
    hand(["f", "d"], "def f(a=(d := 1)):\n    pass")


def test_comprehensions():
    hand(["ys"], "ys = [k * k for k in xs]")
    hand(["s"], "s = {a + b for a, b in pairs if a}")
    hand(["t", "k"], "t = [k for k in xs]\nk = 3")


def test_a_name_bound_through_a_comprehension():
    hand(["last"], "print([(last := k) for k in xs])")


def test_exceptions_and_patterns():
    hand(["e"], "try:\n    f()\nexcept ValueError as e:\n    pass")
    check(["a", "b", "kept", "rest"], lambda: sorted(names(
        "match x:\n    case [a, *rest]:\n        pass\n    case {'k': b, **kept}:\n        pass")),
        "the names, sorted, of\nmatch x:\n    case [a, *rest]: ...\n    case {'k': b, **kept}: ...\n")


STATEMENTS = ("{0} = {1}", "{0} += 1", "{0}.a = {1}", "{0}[{1}] = 2", "import {0}", "import {0}.b", "from m import {0}",
              "from m import b as {0}", "del {0}", "{0}: int = {1}", "f({1})", "{0}, *{1} = {2}", "g = lambda {0}: {1}",
              "print(({0} := {1}))")
BLOCKS = ("for {0} in {1}:", "while {0}:", "if {0}:", "with {0} as {1}:", "def {0}({1}):", "class {0}({1}):",
          "try:\n    pass\nexcept {0} as {1}:")


def some(rng, depth):
    lines = []
    for _ in range(rng.integers(1, 4)):
        a, b, c = rng.choice(list("uvwxyz"), 3, replace=False)
        if depth and rng.random() < 0.5:
            head = BLOCKS[rng.integers(len(BLOCKS))].format(a, b, c)
            lines += [head, textwrap.indent(some(rng, depth - 1), "    ")]
        else:
            lines.append(STATEMENTS[rng.integers(len(STATEMENTS))].format(a, b, c))
    return "\n".join(lines)


def test_what_python_says():
    rng = np.random.default_rng(0)
    for code in sorted({some(rng, int(rng.integers(0, 4))) for _ in range(300)}, key=len):
        check(local(code), lambda code=code: sorted(names(code)), f"the names, sorted, of\n{code}\n")


def test_parts():
    code = "if a:\n    def if_true_0():\n        nonlocal y\n        y = 1\n        def f(): z = 1"
    tree = ast.parse(code)
    tree.body[0].body[0].part = True
    check(["y", "f"], lambda: bound(tree.body), f"bound of the statements\n{code}\nwhere if_true_0 is a part (is_part)")
