"""What the lesson claims, beyond the examples that it shows."""

import gc
import runpy
import subprocess
import sys
import tracemalloc
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

import minipd as paddle
from examples import plate_bending as plate
from minipd.autograd import jacobian, recompute, saved_tensors_hooks
from minipd.framework.philox import key_of, uniform
from minipd.framework.row import ROWS
from minipd.ops.windows import columns

CHAPTER = Path(__file__).resolve().parent.parent


def leaf(data):
    return paddle.to_tensor(data, "float64", stop_gradient=False)


def test_later_floors_are_closed():
    run = subprocess.run([sys.executable, "-c", "import minipd, minipd.ir"], capture_output=True, text=True,
                         env={"MINIPD_FLOOR": "1"})
    assert run.returncode != 0 and "floor 2 is closed in chapter 1: minipd.ir is built in chapter 2" in run.stderr


@pytest.mark.parametrize("name", sorted(path.name for path in (CHAPTER / "img").glob("*.svg")))
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


# ---------------------------------------------------------------------------------------------- views, and rows
def test_windows_are_a_view():
    x = np.arange(4.0).reshape(1, 1, 4)
    windows = columns(np, x, (2,), (3,), (1,), (1,))                # [channels, kernel, images, windows]
    assert windows[0, :, 0, :].tolist() == [[0, 1, 2], [1, 2, 3]]
    assert np.shares_memory(windows, x) and [windows.strides[i] // x.itemsize for i in (1, 3)] == [1, 1]


def test_rows_are_fewer_than_functions():
    assert 200 < len(ROWS) < len(paddle.__all__) / 2


def saved_by(f, *inputs):
    """How many arrays are saved for the gradient."""
    kept = []
    with saved_tensors_hooks(kept.append, None):
        f(*inputs)
    return len(kept)


def test_a_row_saves_less_than_its_composition():
    x = leaf([1.0])
    assert saved_by(lambda x: x * (1 + paddle.erf(x * 0.5**0.5)) / 2, x) == 3
    assert saved_by(paddle.nn.functional.gelu, x) == 1


# --------------------------------------------------------------------------------------------- higher derivatives
def nodes(*tensors):
    """How many nodes the tape behind these has, leaves included."""
    seen, todo = set(), [t.node for t in tensors]
    while todo:
        node = todo.pop()
        if node not in seen:
            seen.add(node)
            todo += [edge[0] for edge in node.edges if edge is not None]
    return len(seen)


@pytest.mark.parametrize(("f", "want"), [(paddle.tanh, [2, 5, 8, 20, 50]), (paddle.exp, [2, 3, 3, 3, 3])])
def test_how_tapes_of_derivatives_grow(f, want):
    x = leaf(0.5)
    y = f(x)
    sizes = [nodes(y)]
    for _ in want[1:]:
        (y,) = paddle.grad(y, x, create_graph=True)
        sizes.append(nodes(y))
    assert sizes == want


def test_a_row_of_the_jacobian_costs_one_pass():
    x = leaf([1.0, 2.0])
    passes = []
    y = paddle.stack([x[0] * x[1], x[0] * x[0], x[1]])
    y.register_hook(lambda g: passes.append(g.tolist()))
    J = jacobian(y, x)
    assert passes == []
    assert J[1].tolist() == [2.0, 0.0] and passes == [[0.0, 1.0, 0.0]]


@pytest.mark.parametrize("u", [[0.0, 0.0, 0.0], [3.0, -1.0, 7.0]])
def test_any_u_will_do(u):
    x, u = leaf([1.0, 2.0]), leaf(u)
    y = paddle.stack([x[0] * x[1], x[0] * x[0], x[1]])
    (row,) = paddle.grad(y, x, u, create_graph=True)
    (column,) = paddle.grad(row, u, paddle.to_tensor([1.0, 10.0], "float64"))
    assert column.tolist() == [12.0, 2.0, 10.0]


def test_the_tapes_of_the_plate():
    x, y = plate.coordinates(plate.points(2)[0])
    paddle.set_default_dtype("float64")
    try:
        w = plate.Deflection(3)(x, y)
    finally:
        paddle.set_default_dtype("float32")
    second = plate.second_derivatives(w, x, y)
    fourth = plate.second_derivatives(second[0] + second[1], x, y)
    assert [nodes(w), nodes(*second), nodes(*fourth)] == [24, 127, 1039]


# ---------------------------------------------------------------------------------------------------- memory
@pytest.mark.parametrize(("k", "kept", "most"), [(0, 32, 34), (1, 16, 20), (2, 8, 14), (4, 4, 14), (8, 2, 20),
                                                (16, 1, 35)])
def test_what_recompute_keeps_and_needs(k, kept, most):
    """k blocks in a group, 0: without recompute; in arrays of the size of x."""
    x = paddle.ones([100_000], "float64")
    x.stop_gradient = False

    def block(h):
        return paddle.tanh(paddle.exp(h) * 0.1)

    def group(h):
        for _ in range(k):
            h = block(h)
        return h
    gc.collect()
    tracemalloc.start()
    h = x
    for _ in range(16 // max(k, 1)):
        h = recompute(group, h) if k else block(h)
    after_forward = tracemalloc.get_traced_memory()[0]
    h.sum().backward()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert abs(after_forward / x.nbytes - kept) < 0.5
    assert abs(peak / x.nbytes - most) < 0.9
