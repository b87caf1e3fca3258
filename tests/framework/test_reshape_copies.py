"""A reshape is a view or a copy, and eagerly, in a program, and on a mesh it is the same one, or writes are refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import minipd as paddle
from minipd.dist.api import shard_tensor
from minipd.dist.mesh import parse_mesh
from minipd.dist.placements import Replicate
from minipd.executor import Executor
from minipd.ir.traced import trace
from minipd.static import InputSpec

X = np.arange(12.0).reshape(3, 4)


def eager(function, x=X):
    return [t.numpy() for t in function(paddle.to_tensor(x))]


def traced(function, x=X, spec=None):
    program = trace(function, spec or InputSpec(list(x.shape), "float64", "x")).program
    return list(Executor(program).run({"x": x}).values())


def both(function):
    """What the function returns, which is the same eagerly and traced."""
    found = eager(function)
    for a, b in zip(found, traced(function), strict=True):
        np.testing.assert_array_equal(a, b)
    return found


def written(view):
    """(x, view of x) after the view was filled with 7."""
    def function(x):
        x = x * 1.0
        y = view(x)
        y.fill_(7.0)
        return x, y
    return function


def base_written(view):
    """(x, view of x) after x was filled with 7."""
    def function(x):
        x = x * 1.0
        y = view(x)
        x.fill_(7.0)
        return x, y
    return function


VIEWS = {
    "reshape": lambda x: x.reshape([2, 6]),
    "reshape of reshape": lambda x: x.reshape([12]).reshape([4, 3]),
    "reshape of rows": lambda x: x[1:].reshape([8]),
    "reshape of one column, kept apart": lambda x: x[:, :1].reshape([3]),
    "reshape that splits a column": lambda x: x[:, ::2].reshape([3, 1, 2]),
    "reshape of what is transposed twice": lambda x: x.transpose([1, 0]).transpose([1, 0]).reshape([12]),
    "reshape of a transposed row": lambda x: x[:1].transpose([1, 0]).reshape([4]),
    "reshape of a detached tensor": lambda x: x.detach().reshape([12]),
}
COPIES = {
    "reshape of a transposed tensor": lambda x: x.transpose([1, 0]).reshape([12]),
    "reshape of columns": lambda x: x[:, :2].reshape([6]),
    "reshape of every other row backwards": lambda x: x[::-2].reshape([2, 2, 2]).transpose([1, 0, 2]).reshape([8]),
    "reshape of something expanded": lambda x: x[:1].expand([3, 4]).reshape([12]),
    "view of a copy": lambda x: x.transpose([1, 0]).reshape([2, 6])[1],
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("write", [written, base_written])
def test_reshapes_that_are_views(name, write):
    x, y = both(write(VIEWS[name]))
    assert (y == 7).all() and (x == 7).any()


@pytest.mark.parametrize("name", COPIES)
def test_reshapes_that_are_copies(name):
    x, y = both(written(COPIES[name]))
    np.testing.assert_array_equal(x, X)
    x, y = both(base_written(COPIES[name]))
    np.testing.assert_array_equal(y, COPIES[name](paddle.to_tensor(X)).numpy())
    assert (x == 7).all()


def test_results_are_row_major_whatever_numpy_makes():
    """x.T + 1 is column-major in numpy; the reshape of it is a view all the same."""
    def function(x):
        y = x.transpose([1, 0]) + 1.0
        z = y.reshape([12])
        z[0] = 100.0
        y[3, 2] = 200.0
        return y, z
    y, z = both(function)
    assert (y[0, 0], z[11]) == (100, 200)


def test_a_shared_array_that_is_not_row_major_is_not_written():
    """y, its transpose and its reshape should share memory, which numpy's order does not allow.  Reading is fine."""
    def function(x):
        y = x.transpose([1, 0]) + 1.0
        back = y.transpose([1, 0])
        flat = y.reshape([12])
        return y, back, flat
    y, back, flat = both(function)
    np.testing.assert_array_equal(flat, (X.T + 1).ravel())
    for i in range(3):
        with pytest.raises(RuntimeError, match="whose array is not row-major and is shared, so that a reshape of it "
                                               r"had to be a copy, where it should be a view; write a copy \(x.clone"):
            function(paddle.to_tensor(X))[i].fill_(0.0)


def test_symbolic_sizes_that_decide():
    """A transposed [S0, 4] is a row if S0 is 1, and its reshape a view.  Reading is fine, as is what surely is one."""
    spec = InputSpec(["S0", 4], "float64", "x")

    def read(x):
        return x * 1.0, x.transpose([1, 0]).reshape([-1])
    np.testing.assert_array_equal(traced(read, spec=spec)[1], X.T.ravel())
    for write in (written, base_written):
        with pytest.raises(RuntimeError, match="is a view or a copy, depending on sizes that this trace does not know"):
            trace(write(lambda x: x.transpose([1, 0]).reshape([-1])), spec)
        x, y = traced(write(lambda x: x.reshape([-1])), spec=spec)
        assert (x == 7).all() and (y == 7).all()


def test_gradients_through_a_copy():
    def function(x):
        x = x * 1.0
        y = x.transpose([1, 0]).reshape([12])
        y[0:6] = 0.0
        return (y * y).sum() + x.sum()
    x = paddle.to_tensor(X, stop_gradient=False)
    function(x).backward()
    kept = np.ones(12)
    kept[:6] = 0
    np.testing.assert_array_equal(x.grad.numpy(), 2 * X * kept.reshape(4, 3).T + 1)


def test_an_expanded_view_of_a_rewritten_base():
    def function(x):
        row = x[:1] * 1.0
        wide = row.expand_as(x)
        row.add_(row)
        return row, wide
    row, wide = both(function)
    np.testing.assert_array_equal(wide, np.repeat(2 * X[:1], 3, 0))


def test_on_a_mesh_a_copy_is_written_and_a_view_refused():
    def run():
        mesh = parse_mesh("x=1")
        x = shard_tensor(X, mesh, [Replicate()])
        copy, view = x.transpose([1, 0]).reshape([12]), x.reshape([12])
        copy.fill_(7.0)
        with pytest.raises(RuntimeError, match="a distributed tensor with views"):
            view.fill_(7.0)
        return x.numpy(), copy.numpy()
    x, copy = run()
    np.testing.assert_array_equal(x, X)
    assert (copy == 7).all()


# ------------------------------------------------------------------------------------------------ random programs
SHAPES = {12: [[12], [3, 4], [4, 3], [2, 6], [2, 3, 2]], 6: [[6], [2, 3], [3, 2], [6, 1]], 4: [[4], [2, 2], [1, 4]],
          8: [[8], [2, 4], [2, 2, 2]], 9: [[9], [3, 3]], 3: [[3], [1, 3]], 2: [[2], [2, 1]]}


@st.composite
def steps(draw):
    """Instructions over a growing list of handles, which starts with a result of 3 x 4."""
    return draw(st.lists(st.tuples(st.sampled_from(["reshape", "reshape", "transpose", "slice", "step", "add", "outer",
                                                    "expand", "detach", "write", "write part", "write through"]),
                                   st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=9))


def interpret(program, x):
    handles = [x * 1.0]
    for n, (what, i, j) in enumerate(program):
        t = handles[i % len(handles)]
        if what == "reshape":
            shapes = SHAPES.get(t.size, [[t.size]])
            handles.append(t.reshape(shapes[j % len(shapes)]))
        elif what == "transpose":
            handles.append(t.transpose(list(reversed(range(t.ndim)))))
        elif what == "slice":
            handles.append(t[(slice(None),) * (j % t.ndim) + (slice(0, max(1, t.shape[j % t.ndim] - 1)),)])
        elif what == "step":
            handles.append(t[::-1] if j % 2 else t[::2])
        elif what == "add":
            handles.append(t + float(n))
        elif what == "outer":
            handles.append(t.reshape([-1, 1]) + t.reshape([1, -1]) if t.size <= 3 else t * t)
        elif what == "expand":
            handles.append(t[0:1].expand(t.shape))
        elif what == "detach":
            handles.append(t.detach())
        elif what == "write":
            t.fill_(100.0 + n)
        elif what == "write part":
            t[0] = 200.0 + n
        else:
            t.add_(handles[j % len(handles)].sum() + paddle.zeros(t.shape, "float64"))
    return handles


@settings(max_examples=300)
@given(program=steps())
def test_random_programs(program):
    """Values of all handles agree, or one of the two has refused."""
    results = []
    for run in (eager, traced):
        try:
            results.append(run(lambda x: interpret(program, x)))
        except RuntimeError as error:
            event(f"{run.__name__} refuses: {str(error).split(':')[0][:9]}")
            results.append(None)
    if None not in results:
        event("compared")
        for i, (a, b) in enumerate(zip(*results, strict=True)):
            np.testing.assert_array_equal(a, b, err_msg=f"handle {i}")
