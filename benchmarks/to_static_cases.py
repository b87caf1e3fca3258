"""What `to_static.py` measures: functions of many small operators, as they are and compiled, in each framework."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

LAYERS, WIDTH = 20, 8
HEADS, DIM, TOKENS = 4, 32, 16
#: operators per iteration: five for each layer of the MLP and the sum; the block is one iteration
OPS = {"MLP, no gradient": 5 * LAYERS + 1, "MLP, forward": 5 * LAYERS + 1, "MLP, forward and backward": 5 * LAYERS + 1}


def cases(argument: str) -> dict[str, Callable[[], Any]]:
    """argument: "framework:way", way one of "eager", "to_static", "segments", "compile"."""
    framework, _, way = argument.partition(":")
    m = importlib.import_module(framework)
    torch = framework == "torch"
    if torch:
        m.set_num_threads(1)

    def tensor(array: np.ndarray, wants: bool = False) -> Any:
        if torch:
            return m.tensor(array, requires_grad=wants)
        if wants:                           # what Paddle's program takes from around the function is a parameter
            return m.create_parameter(list(array.shape), "float32",
                                      default_initializer=m.nn.initializer.Assign(array))
        return m.to_tensor(array, stop_gradient=True)

    def weights(*shapes: tuple[int, ...]) -> list[Any]:
        rng = np.random.default_rng(0)
        return [tensor((rng.standard_normal(s) * 0.3).astype(np.float32), True) for s in shapes]

    def compiled(f: Callable) -> Callable:
        if way == "eager":
            return f
        if torch:
            return m.compile(f)
        if framework == "paddle":
            return m.jit.to_static(f, full_graph=True)
        return m.jit.to_static(f, full_graph=way == "to_static")

    w = weights(*[(WIDTH, WIDTH)] * LAYERS)
    b = weights(*[(WIDTH,)] * LAYERS)
    x = tensor(np.full((2, WIDTH), 0.5, np.float32))

    def mlp(x: Any) -> Any:
        for i in range(LAYERS):
            x = m.tanh(x @ w[i] + b[i]) * 0.9 + 0.1
        return x.sum()

    wide = DIM, 3 * DIM
    q, k, v, o, gate, up, down, scale = weights(*[(DIM, DIM)] * 4, wide, wide, wide[::-1], (DIM,))
    tokens = tensor(np.random.default_rng(1).standard_normal((2, TOKENS, DIM)).astype(np.float32))
    root = float(DIM // HEADS) ** -0.5
    mask = tensor(np.triu(np.full((TOKENS, TOKENS), -1e9, np.float32), 1))

    def turned(x: Any, *axes: int) -> Any:
        return x.permute(axes) if torch else x.transpose(list(axes))

    def norm(x: Any) -> Any:
        mean = (x * x).mean(-1, keepdim=True)
        return m.multiply(x * m.rsqrt(mean + 1e-5), scale)

    def heads(x: Any) -> Any:
        return turned(x.reshape([2, TOKENS, HEADS, DIM // HEADS]), 0, 2, 1, 3)

    def block(x: Any) -> Any:
        softmax, silu = m.nn.functional.softmax, m.nn.functional.silu
        h = norm(x)
        scores = m.add(heads(h @ q) @ turned(heads(h @ k), 0, 1, 3, 2) * root, mask)
        y = turned(softmax(scores, -1) @ heads(h @ v), 0, 2, 1, 3).reshape([2, TOKENS, DIM])
        x = x + y @ o
        h = norm(x)
        return (x + (silu(h @ gate) * (h @ up)) @ down).mean()

    f, g = compiled(mlp), compiled(block)
    parameters = [*w, *b, q, k, v, o, gate, up, down, scale]

    def both(f: Callable, x: Any) -> Callable[[], None]:
        def step() -> None:
            f(x).backward()
            for p in parameters:
                if p.grad is not None:
                    p.grad = None if torch else p.clear_gradient(False)
        return step

    def quietly() -> None:
        with m.no_grad():
            f(x)
    one = tensor(np.ones(4, np.float32))

    def tiny(x: Any) -> Any:
        return x * 2.0 + 1.0
    t = compiled(tiny)
    return {"a call of two operators": lambda: t(one), "MLP, no gradient": quietly, "MLP, forward": lambda: f(x),
            "MLP, forward and backward": both(f, x), "Llama block, forward and backward": both(g, tokens)}
