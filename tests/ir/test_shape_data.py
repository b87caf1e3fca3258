"""What is known of tensors of sizes while tracing."""

import numpy as np
import pytest

import minipd as paddle
from minipd.framework.dim import symbol
from minipd.ir.shape_data import elements
from minipd.ir.traced import trace
from minipd.static.input import InputSpec

S, T = symbol("S0"), symbol("S1")


def data(function):
    """The elements of what a function gives for an open matrix, and what it gives for one of 5 x 7."""
    program = trace(function, InputSpec([None, None], "float32", "x")).program
    found = elements(program.get_output_value_by_name("output_0"))
    return None if found is None else found.tolist()


@pytest.mark.parametrize("function, known", [
    (lambda x: paddle.shape(x), [S, T]),
    (lambda x: paddle.shape(x)[0], S),
    (lambda x: paddle.shape(x)[-1:], [T]),
    (lambda x: paddle.shape(x)[0] * 2 + 1, 2 * S + 1),
    (lambda x: 10 - paddle.shape(x)[0], 10 - S),
    (lambda x: paddle.shape(x)[0] // 2, S // 2),
    (lambda x: paddle.shape(x)[0] % 2, S - S // 2 * 2),
    (lambda x: paddle.shape(x).prod(), S * T),
    (lambda x: paddle.shape(x).sum(), S + T),
    (lambda x: paddle.numel(x) - 1, S * T - 1),
    (lambda x: paddle.shape(x).astype("int32"), [S, T]),
    (lambda x: paddle.concat([paddle.shape(x), paddle.full([1], 4, "int64")]), [S, T, 4]),
    (lambda x: paddle.stack([paddle.shape(x)[1], paddle.shape(x)[0]]), [T, S]),
    (lambda x: paddle.split(paddle.shape(x), 2)[1], [T]),
    (lambda x: paddle.shape(x.transpose([1, 0]).reshape([-1])), [S * T]),
    (lambda x: paddle.shape(x).reshape([2, 1]), [[S], [T]]),
    (lambda x: paddle.to_tensor([2, 3]), None),                 # captured: data
    (lambda x: paddle.shape(x) / 2, None),
    (lambda x: paddle.shape(x)[0] > 3, None),
    (lambda x: x.argmax(), None),
    (lambda x: paddle.shape(x)[0] // 0, None),
    (lambda x: paddle.full([100], 1, "int64"), None),
    (lambda x: paddle.shape(x)[0] + x.argmax(), None),
])
def test_elements(function, known):
    assert data(function) == known


def test_a_long_chain_of_sums_ends():
    def long(x):
        n = paddle.shape(x)[0]
        for _ in range(60):
            n = n + n                       # each is read twice: without memory, 2 to the power 60 steps
        return n
    assert data(long) == 2 ** 60 * S

    def longer(x):
        n = paddle.shape(x)[0]
        for _ in range(3000):
            n = n + 1
        return n
    assert data(longer) is None


def test_questions_to_a_traced_tensor_of_sizes():
    asked = {}

    def ask(x, y):
        n, m = paddle.shape(x)[0], paddle.shape(y)[0]
        asked.update(item=n.item(), list=paddle.shape(x).tolist(), int=int(m), range=list(range(m)))
        for question in (lambda: int(n), lambda: range(n), lambda: n.numpy(), lambda: bool(n), lambda: float(m)):
            with pytest.raises(TypeError, match="being traced"):
                question()
        return x
    trace(ask, InputSpec([None, 2], "float32", "x"), InputSpec([3], "float32", "y"))
    assert asked == {"item": S, "list": [S, 2], "int": 3, "range": [0, 1, 2]}


def test_a_size_beside_a_tensor_is_an_operation_of_dialect_shape():
    program = trace(lambda x: x * x.shape[0], InputSpec([None], "float32", "x")).program
    names = [op.name() for op in program.walk()]
    assert "shape.dim" in names
    line, = (s for s in program.to_string("exact").splitlines() if '"shape.dim" ()' in s)
    assert 'size: dim(S0)' in line and line.endswith('-> tensor<i64>')


def test_a_float_of_a_size_is_refused():
    with pytest.raises(TypeError, match="expected an int or a dimension, got a float"):
        trace(lambda x: paddle.zeros([x.shape[0] * 0.5]), InputSpec([None], "float32", "x"))
    assert np.shape(paddle.zeros([int(4 * 0.5)])) == (2,)
