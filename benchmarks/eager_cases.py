"""What `eager.py` measures: operators on 16 floats, in numpy, in torch, and in any framework with Paddle's names."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

SHAPE = (4, 4)
CHAIN = 10
#: operations per iteration, of the cases with more than one
OPS = {f"{name}, {case}": n for name in ("add", "multiply")
       for case, n in (("under no_grad", 100), (f"chain of {CHAIN}, forward and backward", CHAIN))}



def operators(m: Any, kind: str) -> dict[str, Callable]:
    """The operators as functions of x and y; kind: "numpy", "torch" or "paddle" (whose names minipd has)."""
    axis = {"dim" if kind == "torch" else "axis": 1}
    found: dict[str, Callable] = {
        "add": lambda x, y: x + y,
        "multiply": lambda x, y: x * y,
        "divide": lambda x, y: x / y,
        "add a number": lambda x, y: x + 1.0,
        "matmul": lambda x, y: x @ y,
        "exp": lambda x, y: m.exp(x),
        "tanh": lambda x, y: m.tanh(x),
        "maximum": lambda x, y: m.maximum(x, y),
        "where": lambda x, y: m.where(x > y, x, y),
        "sum": lambda x, y: x.sum(),
        "mean over an axis": lambda x, y: x.mean(1),
        "reshape": lambda x, y: x.reshape((2, 8)),
        "slice": lambda x, y: x[1:3],
        "transpose": {"numpy": lambda x, y: x.transpose((1, 0)), "torch": lambda x, y: x.permute((1, 0)),
                      "paddle": lambda x, y: x.transpose((1, 0))}[kind],
        "concat": {"numpy": lambda x, y: m.concatenate((x, y)), "torch": lambda x, y: m.cat((x, y)),
                   "paddle": lambda x, y: m.concat((x, y))}[kind],
    }
    if kind != "numpy":
        functional = m.nn.functional
        found |= {
            "relu": lambda x, y: functional.relu(x),
            "softmax": lambda x, y: functional.softmax(x, **axis),
            "layer_norm": lambda x, y: functional.layer_norm(x, (4,)),
            "linear": (lambda x, y: functional.linear(x, y)),
        }
    return found


def cases(framework: str) -> dict:
    """framework: the module to import."""
    array = np.full(SHAPE, 0.5, np.float32)
    m = importlib.import_module(framework)
    if framework == "numpy":
        return {name: bound(f, array, array) for name, f in operators(m, "numpy").items()}
    if framework == "torch":
        m.set_num_threads(1)
        constant, x = m.tensor(array), m.tensor(array, requires_grad=True)
    else:
        constant, x = m.to_tensor(array), m.to_tensor(array, stop_gradient=False)
    found: dict[str, Callable] = {}
    for name, f in operators(m, "torch" if framework == "torch" else "paddle").items():
        seed = f(constant, constant)
        seed = seed.detach().clone()
        found[name] = bound(f, constant, constant)
        if name in ("add", "multiply"):
            found[f"{name}, under no_grad"] = under_no_grad(m, f, x)
            found[f"{name}, taped"] = bound(f, x, x)
            found[f"{name}, chain of {CHAIN}, forward and backward"] = chain(f, x, constant)
        found[f"{name}, forward and backward"] = forward_and_backward(f, x, constant, seed)
    return found


def bound(f: Callable, x: Any, y: Any) -> Callable:
    return lambda: f(x, y)


def under_no_grad(m: Any, f: Callable, x: Any) -> Callable:
    def run() -> None:
        with m.no_grad():
            for _ in range(100):
                f(x, x)
    return run


def forward_and_backward(f: Callable, x: Any, y: Any, seed: Any) -> Callable:
    def run() -> None:
        f(x, y).backward(seed)
        x.grad = None
    return run


def chain(f: Callable, x: Any, seed: Any) -> Callable:
    def run() -> None:
        y = x
        for _ in range(CHAIN):
            y = f(y, y)
        y.backward(seed)
        x.grad = None
    return run
