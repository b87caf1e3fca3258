"""What the lesson claims, beyond the examples that it shows."""

import runpy
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

import minipd as paddle
from minipd.framework.philox import key_of, uniform

CHAPTER = Path(__file__).resolve().parent.parent


def leaf(data):
    return paddle.to_tensor(data, "float64", stop_gradient=False)


def test_later_floors_are_closed():
    run = subprocess.run([sys.executable, "-c", "import minipd, minipd.ir"], capture_output=True, text=True,
                         env={"MINIPD_FLOOR": "1"})
    assert run.returncode != 0 and "floor 2 is closed in chapter 1: minipd.ir is built in chapter 2" in run.stderr


@pytest.mark.parametrize("name", ["broadcast.svg", "order.svg", "window.svg"])
def test_pictures_are_what_their_script_draws(name):
    drawn = runpy.run_path(str(CHAPTER / "img" / "draw.py"))["PICTURES"][name]()
    assert (CHAPTER / "img" / name).read_text(encoding="utf-8") == drawn, "run img/draw.py"
    ElementTree.fromstring(drawn)


def by_depth(y):
    """The popular proposal: run the rule of a node, then go into its inputs.  Returns leaf node -> gradient, where a
    contribution that comes after a node has been visited is forgotten."""
    found, visited = {}, set()

    def visit(node, g):
        if node.row is None:
            found[node] = found.get(node, 0.0) + g
            return
        if node in visited:
            return
        visited.add(node)
        x, other = (v[0] if len(v) == 3 else None for v in (*node.saved, (), ())[:2])
        for edge, slope in zip(node.edges, (1.0, 1.0) if node.row.name == "add" else (other, x), strict=True):
            visit(edge[0], g * slope)
    visit(y.node, 1.0)
    return found


def test_by_depth_is_wrong_where_a_value_is_used_twice():
    a, b = leaf(2.0), leaf(3.0)
    c, d = a + b, a * b
    y = c + d + c * d
    wrong = by_depth(y)
    y.backward()
    assert (a.grad.item(), b.grad.item()) == (25.0, 19.0)
    assert float(wrong[a.node]) != 25.0


def test_by_depth_is_right_on_a_tree():
    a, b, c = leaf(2.0), leaf(3.0), leaf(5.0)
    found = by_depth(a * b + c)
    assert [float(found[x.node]) for x in (a, b, c)] == [3.0, 2.0, 1.0]


def test_users_are_newer_than_what_they_use():
    x = leaf([1.0, 2.0])
    y = ((x * 2.0).exp() + x).sum()
    todo, seen = [y.node], 0
    while todo:
        node = todo.pop()
        for edge in node.edges:
            if edge is not None:
                assert edge[0].seq < node.seq
                todo.append(edge[0])
                seen += 1
    assert seen == 5


def test_the_signature_is_the_save_list():
    x, y = leaf([3.0]), leaf([4.0])
    assert [len(v) for v in (x + y).node.saved] == [2, 2]           # shape and dtype
    assert [len(v) for v in (x * y).node.saved] == [3, 3]           # payload, owner, version
    (value, _, _), = paddle.nn.functional.softmax(x).node.saved     # the result, and no input
    assert value.tolist() == [1.0]
    assert len((x * paddle.to_tensor([4.0], "float64")).node.saved) == 2    # the constant, and the shape of x


def test_four_ranks_draw_what_one_draws():
    key = key_of(7, "a layer")
    quarters = [[uniform(key, (2, 2), window=((4, 4), (r, c))) for c in (0, 2)] for r in (0, 2)]
    assert (np.block(quarters) == uniform(key, (4, 4))).all()
