"""What `dispatch.py` measures, for numpy and for any framework with Paddle's names: operators on 16 floats."""

from __future__ import annotations

import importlib

import numpy as np

SIZE = 16
#: operations per iteration, of the cases with more than one
OPS = {f"{name}, {case}": n for name in ("add", "multiply")
       for case, n in (("under no_grad", 100), ("chain of 10, forward and backward", 10))}


def cases(framework: str) -> dict:
    """framework: the module to import."""
    array = np.ones(SIZE, np.float32)
    if framework == "numpy":
        return {"add": lambda: array + array, "multiply": lambda: array * array}
    paddle = importlib.import_module(framework)
    constant = paddle.to_tensor(array)
    x = paddle.to_tensor(array, stop_gradient=False)

    def add_under_no_grad():
        with paddle.no_grad():
            for _ in range(100):
                x + x

    def multiply_under_no_grad():
        with paddle.no_grad():
            for _ in range(100):
                x * x

    def backward(y):
        y.backward()
        x.clear_gradient(False)

    def chain_of_add():
        y = x
        for _ in range(10):
            y = y + y
        backward(y)

    def chain_of_multiply():
        y = x
        for _ in range(10):
            y = y * y
        backward(y)

    return {
        "add": lambda: constant + constant,
        "add, under no_grad": add_under_no_grad,
        "add, taped": lambda: x + x,
        "add, forward and backward": lambda: backward(x + x),
        "add, chain of 10, forward and backward": chain_of_add,
        "multiply": lambda: constant * constant,
        "multiply, under no_grad": multiply_under_no_grad,
        "multiply, taped": lambda: x * x,
        "multiply, forward and backward": lambda: backward(x * x),
        "multiply, chain of 10, forward and backward": chain_of_multiply,
    }
