"""In-place operators and writes: gradients before and after, what is refused, and what the errors say."""

import copy
import pickle

import numpy as np
import pytest

import minipd as paddle
from minipd.nn import functional as F


def leaf(data):
    return paddle.to_tensor(data, dtype="float64", stop_gradient=False)


def value(data):
    return paddle.to_tensor(data, dtype="float64")


# ------------------------------------------------------------------------------------------- saved, then written
def test_a_saved_value_that_was_written_is_caught():
    """Hard case A8 (Paddle PR #27901, #45119): the error names tensor, operator, both versions, and the way out."""
    a = leaf(np.ones((4, 2, 3)))
    b = a**2
    b.name = "b"
    c = b**2
    b[1:2] = 3.3
    with pytest.raises(RuntimeError) as caught:
        F.relu(c).sum().backward()
    assert str(caught.value) == (
        "tensor b f64[4, 2, 3] was saved for the gradient of pow and modified in place afterwards: expected version 0, "
        "found 1. Compute the in-place result out of place, or write before the value is used, or give the operator a "
        "clone()")
    assert b.inplace_version == 1


def test_written_before_it_is_used():
    """The legal half of A8."""
    a = leaf(np.ones(4))
    b = a**2
    b[1:2] = 3.3
    (b**2).sum().backward()
    assert a.grad.tolist() == [4.0, 0.0, 4.0, 4.0]


def test_a_saved_result_that_was_written_is_caught():
    x = leaf([1.0, 2.0])
    y = x.exp()
    y.add_(value([1.0, 1.0]))
    with pytest.raises(RuntimeError, match=r"tensor \(the result of exp\) f64\[2\] was saved for the gradient of exp "
                                           "and modified in place afterwards: expected version 0, found 1"):
        y.sum().backward()


def test_writing_through_any_other_handle_is_caught_too():
    for alias in (lambda y: y[0:1], lambda y: y.reshape([2, 1]), lambda y: y.detach(), copy.copy):
        x = leaf([1.0, 2.0])
        y = x * 1.0
        z = y * y
        alias(y).fill_(9.0) if not alias(y).stop_gradient else alias(y).set_value(alias(y) * 0.0)
        with pytest.raises(RuntimeError, match="was saved for the gradient of multiply and modified"):
            z.sum().backward()


def test_a_write_to_what_was_not_saved_is_fine():
    x = leaf([1.0, 2.0])
    y = x * 2.0
    z = y + 1.0                                     # + keeps no values
    y.zero_()
    z.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


# ------------------------------------------------------------------------------------------------- the operators
def test_in_place_operators_are_the_operators():
    """Same values and gradients as out of place, for tensors, numbers and themselves as the other operand."""
    cases = {
        "add_": lambda y, w: y + w, "subtract_": lambda y, w: y - w, "multiply_": lambda y, w: y * w,
        "divide_": lambda y, w: y / w,
    }
    for name, f in cases.items():
        for other in ("w", 2.0, "itself"):
            x, w = leaf([1.0, 2.0]), leaf([3.0, 5.0])
            y = x * 1.5
            z = f(y, y if other == "itself" else w if other == "w" else other)
            z.sum().backward()
            want = z.tolist(), x.grad.tolist(), w.grad if w.grad is None else w.grad.tolist()
            x, w = leaf([1.0, 2.0]), leaf([3.0, 5.0])
            y = x * 1.5
            same = getattr(y, name)(y if other == "itself" else w if other == "w" else other)
            assert same is y and y.inplace_version == 1 and not y.is_leaf
            y.sum().backward()
            assert (y.tolist(), x.grad.tolist(), w.grad if w.grad is None else w.grad.tolist()) == want, (name, other)
    for name in ("exp", "sqrt", "rsqrt", "tanh", "sigmoid", "relu", "abs"):
        x = leaf([0.5, 2.0])
        (z := getattr(F if name in ("sigmoid", "relu") else paddle, name)(x * 1.5)).sum().backward()
        want = z.tolist(), x.grad.tolist()
        x = leaf([0.5, 2.0])
        y = x * 1.5
        getattr(y, f"{name}_")().sum().backward()
        assert (y.tolist(), x.grad.tolist()) == want


def test_written_many_times():
    x = leaf([1.0, 2.0])
    y = x * 1.0
    for n in range(1, 6):
        y.multiply_(x)
        assert y.inplace_version == n
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 6 * 2.0**5]


def test_scale_takes_its_attributes_in_order():
    x = paddle.to_tensor([1.0, 2.0])
    assert x.scale_(10.0, 1.0) is x and x.tolist() == [11.0, 21.0]
    assert x.scale_(paddle.to_tensor(2.0), 1.0, False).tolist() == [24.0, 44.0]
    with pytest.raises(TypeError, match="scale: expected whole numbers for a tensor of int64, got scale=0.5"):
        paddle.to_tensor([1, 2]).scale_(0.5)


def test_augmented_assignment_is_not_in_place():
    """As in Paddle: `y += 1` makes a new tensor and binds the name to it."""
    x = leaf([2.0])
    y = z = x * 1.0
    y += 1.0
    assert z is not y and z.tolist() == [2.0] and z.inplace_version == 0


def test_results_must_fit():
    y = value([1.0, 2.0])
    with pytest.raises(ValueError, match=r"in-place add_: expected a result like the tensor written, f64\[2\], got "
                                         r"f64\[3, 2\]"):
        y.add_(value(np.ones((3, 2))))
    h = paddle.to_tensor([1.0, 2.0], dtype="float32")
    with pytest.raises((ValueError, TypeError), match="f32.*f64"):
        h.add_(y)
    i = paddle.to_tensor([1, 2])
    with pytest.raises(ValueError, match="in-place pow_: expected a result like .* i64"):
        i.pow_(0.5)
    assert y.tolist() == [1.0, 2.0] and h.tolist() == [1.0, 2.0] and i.tolist() == [1, 2]


# -------------------------------------------------------------------------------------------------------- leaves
@pytest.mark.parametrize("write", [
    lambda x: x.add_(value([1.0, 1.0])), lambda x: x.__setitem__(0, 1.0), lambda x: x.zero_(), lambda x: x.fill_(3.0),
    lambda x: x[0:1].zero_(), lambda x: x.reshape([2, 1]).add_(value([[1.0], [1.0]])),
    lambda x: x[0:2][0:1].__setitem__(0, 5.0), lambda x: paddle.assign(value([5.0, 6.0]), x),
])
def test_a_leaf_that_wants_a_gradient_is_not_written(write):
    """... nor is a view of it: its gradient would belong to a value that is gone."""
    x = leaf([3.0, 4.0])
    x.name = "weight"
    with pytest.raises(RuntimeError, match=r"on (a view of )?leaf weight f64\[2\], which wants a gradient.*"
                                           r"no_grad\(\), or work on a copy"):
        write(x)
    assert x.tolist() == [3.0, 4.0]
    with paddle.no_grad():
        write(x)
    assert x.tolist() != [3.0, 4.0] and x.is_leaf and not x.stop_gradient
    (x * x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * x.numpy())


def test_set_value_changes_values_only():
    """It needs no no_grad, and neither a leaf nor a history is lost by it (as in Paddle)."""
    x = leaf([1.0, 2.0])
    x.set_value(np.array([5.0, 6.0]))
    assert x.tolist() == [5.0, 6.0] and x.is_leaf and not x.stop_gradient
    y = x * 2.0
    new = value([1.0, 1.0])
    y.set_value(new)
    (y * x).sum().backward()
    assert x.grad.tolist() == [1 + 2 * 5.0, 1 + 2 * 6.0]
    y.set_value(np.zeros(2))
    assert new.tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match=r"set_value of .*: expected shape \[2\], got \[3\]"):
        y.set_value(np.zeros(3))


def test_under_no_grad_only_values_change():
    """Paddle's rule for results too: the history stays, the gradient is taken at the new value."""
    x = leaf([3.0, 4.0])
    a = x * 2.0
    with paddle.no_grad():
        a[0] = 5.0
    (a * a).sum().backward()
    assert not a.stop_gradient and a.tolist() == [5.0, 8.0] and x.grad.tolist() == [20.0, 32.0]


def test_what_a_handle_has_missed_it_still_misses_after_a_write_under_no_grad():
    x, w = leaf([3.0, 4.0]), leaf([1.0])
    a = x * 2.0
    v = a[0:1]
    a[0:1] = w                                      # v knows nothing of w
    with paddle.no_grad():
        v.add_(value([1.0]))                        # nor does it now
    with pytest.raises(RuntimeError, match="its gradient history misses that write: take the view again"):
        v * 2.0
    assert (a.tolist(), v.tolist()) == ([2.0, 8.0], [2.0])


# ---------------------------------------------------------------------------------------------------------- writes
def test_gradients_around_a_written_part():
    x, v = leaf([1.0, 2.0, 3.0]), leaf([10.0])
    y = x * 2.0
    y[1] = v * 3.0
    (y * y).sum().backward()
    assert x.grad.tolist() == [8.0, 0.0, 24.0] and v.grad.tolist() == [180.0]


def test_a_constant_becomes_tracked_by_what_is_written_into_it():
    w = leaf([2.0])
    y = paddle.zeros([3], "float64")
    y[1] = w
    y[2] = w * w
    (y * value([100.0, 10.0, 1.0])).sum().backward()
    assert not y.stop_gradient and w.grad.tolist() == [14.0]
    z = paddle.zeros([2], "float64")
    paddle.assign(w.expand([2]), z)
    (z * value([1.0, 2.0])).sum().backward()
    assert w.grad.tolist() == [17.0]


def test_parts_of_itself():
    """The value read is the old one, however the parts overlap."""
    x = leaf([1.0, 2.0, 3.0])
    y = x * 1.0
    y[1:] = y[:-1]
    (y * value([1.0, 10.0, 100.0])).sum().backward()
    assert y.tolist() == [1.0, 1.0, 2.0] and x.grad.tolist() == [11.0, 100.0, 0.0]
    x = leaf([1.0, 2.0, 3.0])
    y = x * 1.0
    y[:] = y[::-1]
    (y * value([1.0, 10.0, 100.0])).sum().backward()
    assert y.tolist() == [3.0, 2.0, 1.0] and x.grad.tolist() == [100.0, 10.0, 1.0]


def test_detached_memory_is_one_memory():
    x = leaf([1.0, 2.0])
    y = x * 1.0
    d = y.detach()
    assert d.stop_gradient and d.is_leaf
    with paddle.no_grad():
        d[0] = 9.0
    assert y.tolist() == [9.0, 2.0] and y.inplace_version == d.inplace_version == 1
    (y * y).sum().backward()
    assert x.grad.tolist() == [18.0, 4.0]


def test_a_leafs_values_may_be_written_through_detach():
    """How initialisers write parameters."""
    x = leaf([1.0, 2.0])
    x.detach()[0] = 7.0
    (x * x[:]).sum().backward()
    assert x.grad.tolist() == [14.0, 4.0]


def test_expanded_memory_is_not_written():
    x = value([[1.0], [2.0]])
    y = x.expand([2, 3])
    with pytest.raises(RuntimeError, match=r"in-place set_value_ on .* several elements share one memory cell"):
        y[0, 0] = 5.0
    assert x.tolist() == [[1.0], [2.0]]


def test_a_reshape_that_copies_is_no_view():
    """A transposed array has no other shape without a copy: numpy makes one, and Paddle does."""
    x = value([[1.0, 2.0], [3.0, 4.0]])
    y = x.transpose([1, 0]).reshape([4])
    x[0] = 9.0
    assert y.tolist() == [1.0, 3.0, 2.0, 4.0] and y.inplace_version == 0
    w = leaf([[1.0, 2.0], [3.0, 4.0]])
    a = w * 1.0
    b = a.transpose([1, 0]).reshape([4])
    z = a * a
    b.zero_()                                       # does not touch a
    z.sum().backward()
    assert w.grad.tolist() == [[2.0, 4.0], [6.0, 8.0]]


# ------------------------------------------------------------------------------------------------ toggling and copies
def test_stop_gradient_may_be_switched_on_a_result():
    """History is kept: while it is stopped the tensor is a constant, afterwards it is what it was (as in Paddle)."""
    x = leaf([3.0])
    y = x * 2.0
    y.stop_gradient = True
    (y * x).backward()
    assert x.grad.tolist() == [6.0]
    y.stop_gradient = False
    x.clear_gradient()
    (y * x).backward()
    assert x.grad.tolist() == [12.0]


def test_a_result_without_history_becomes_a_leaf():
    x = value([3.0])
    y = x * 2.0
    y.stop_gradient = False
    (y * y).backward()
    assert y.is_leaf and y.grad.tolist() == [12.0]


def test_stopping_later_does_not_change_what_was_recorded():
    x = leaf([3.0])
    a = x * 1.0
    y = a * 2.0
    a.stop_gradient = x.stop_gradient = True
    y.backward()
    assert x.grad.tolist() == [2.0]


def test_deep_copies():
    x = leaf([1.0, 2.0])
    x.name = "x"
    (x * x).sum().backward()
    a = copy.deepcopy(x)
    assert a.tolist() == [1.0, 2.0] and not a.stop_gradient and a.is_leaf and a.grad is None and a.name != "x"
    a.set_value(np.zeros(2))
    assert x.tolist() == [1.0, 2.0]
    y = x * 3.0
    b = copy.deepcopy(y)
    assert b.is_leaf and not b.stop_gradient
    (b * b).sum().backward()
    assert b.grad.tolist() == [6.0, 12.0] and x.grad.tolist() == [2.0, 4.0]
    z = pickle.loads(pickle.dumps(y))
    assert z.tolist() == [3.0, 6.0] and z.is_leaf and not z.stop_gradient and z.grad is None
    assert pickle.loads(pickle.dumps(x)).name == "x"
    both = copy.deepcopy([x, x])
    assert both[0] is both[1]
    p = paddle.framework.tensor.Parameter(np.ones(2))
    p.optimize_attr["learning_rate"] = 0.5
    q = copy.deepcopy(p)
    q.optimize_attr["learning_rate"] = 0.1
    assert type(q) is type(p) and not q.stop_gradient and p.optimize_attr == {"learning_rate": 0.5}
    assert paddle.framework.tensor.Parameter(np.ones(2)).optimize_attr == {"learning_rate": 1.0}


def test_shallow_copies_share_memory_and_history():
    x = leaf([1.0, 2.0])
    y = x * 3.0
    z = copy.copy(y)
    assert z is not y
    (z * z).sum().backward()
    assert x.grad.tolist() == [18.0, 36.0]
    with paddle.no_grad():
        z[0] = 0.0
    assert y.tolist() == [0.0, 6.0]


def test_the_parts_of_split_are_copies():
    """As in Paddle: writing one reaches neither the tensor nor what its gradient saved."""
    x = leaf([1.0, 2.0, 3.0, 4.0])
    y = x * 1.0
    z = y * y
    a, b = paddle.split(y, 2)
    a.zero_()
    b.multiply_(x[:2])
    assert y.tolist() == [1.0, 2.0, 3.0, 4.0] and y.inplace_version == 0
    (z.sum() + b.sum()).backward()
    assert x.grad.tolist() == [2.0 + 3.0, 4.0 + 4.0, 6.0 + 1.0, 8.0 + 2.0]
