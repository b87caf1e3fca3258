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

    def under_no_grad(operate):
        with paddle.no_grad():
            for _ in range(100):
                operate(x)

    def backward(y):
        y.backward()
        x.clear_gradient(False)

    def chain(operate):
        y = x
        for _ in range(10):
            y = operate(y)
        backward(y)

    found = {}
    for name, operate in (("add", lambda t: t + t), ("multiply", lambda t: t * t)):
        found |= {
            f"{name}": lambda operate=operate: operate(constant),
            f"{name}, under no_grad": lambda operate=operate: under_no_grad(operate),
            f"{name}, taped": lambda operate=operate: operate(x),
            f"{name}, forward and backward": lambda operate=operate: backward(operate(x)),
            f"{name}, chain of 10, forward and backward": lambda operate=operate: chain(operate),
        }
    return found
