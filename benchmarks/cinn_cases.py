"""What `cinn.py` measures: formulas that have no kernel of their own, in the operators of minipd or of torch.

Forward runs without gradients; forward and backward is the gradient of a loss, or of an output with a given gradient.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

#: case -> (formula, shapes of its arrays); LABELS: a class for each row of the array before
LABELS = "labels"
FORMULAS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "RMSNorm 4096x4096": ("rms_norm", ((4096, 4096), (4096,))),
    "RMSNorm 2048x512": ("rms_norm", ((2048, 512), (512,))),
    "softmax 2048x4096": ("softmax", ((2048, 4096),)),
    "cross entropy 2048x4096": ("cross_entropy", ((2048, 4096), LABELS)),
    "cross entropy 2048x32000": ("cross_entropy", ((2048, 32000), LABELS)),
    "SwiGLU 2048x2048": ("swiglu", ((2048, 2048), (2048, 2048))),
    "AdamW 15000000": ("adamw", ((15_000_000,),) * 4),
}
WAYS = ("forward", "forward and backward")


def rms_norm(m: Any, x: Any, weight: Any) -> Any:
    return x * m.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * weight


def swiglu(m: Any, gate: Any, up: Any) -> Any:
    return gate * m.sigmoid(gate) * up


def adamw(m: Any, param: Any, grad: Any, moment1: Any, moment2: Any) -> tuple[Any, Any, Any]:
    """A step with learning rate 1e-3, weight decay 0.01, after many others."""
    m1, m2 = moment1 * 0.9 + grad * 0.1, moment2 * 0.999 + grad * grad * 0.001
    return param * (1 - 1e-5) - m1 * 1e-3 / (m.sqrt(m2) + 1e-8), m1, m2


class Minipd:
    """compiled: through to_static(backend="CINN")."""

    def __init__(self, compiled: bool):
        import minipd
        self.paddle, self.compiled = minipd, compiled
        self.no_grad = minipd.no_grad

    def formulas(self) -> dict[str, Callable]:
        paddle = self.paddle

        def softmax(x: Any) -> Any:
            e = paddle.exp(x - x.max(-1, keepdim=True).detach())
            return e / e.sum(-1, keepdim=True)

        def cross_entropy(x: Any, label: Any) -> Any:
            z = x - x.max(-1, keepdim=True).detach()
            total = paddle.exp(z).sum(-1, keepdim=True)
            return (paddle.log(total) - paddle.take_along_axis(z, label, -1)).mean()
        return {"softmax": softmax, "cross_entropy": cross_entropy, "rms_norm": partial(rms_norm, paddle),
                "swiglu": partial(swiglu, paddle), "adamw": partial(adamw, paddle)}

    def ready(self, formula: Callable) -> Callable:
        return self.paddle.jit.to_static(formula, backend="CINN") if self.compiled else formula

    def array(self, shape: tuple[int, ...]) -> Any:
        return self.paddle.rand(shape)

    def variable(self, shape: tuple[int, ...]) -> Any:
        x = self.array(shape)
        x.stop_gradient = False
        return x

    def labels(self, count: int, classes: int) -> Any:
        import numpy as np
        return self.paddle.to_tensor(np.random.default_rng(0).integers(0, classes, (count, 1)))

    def clear(self, x: Any) -> None:
        x.clear_gradient(False)


class Torch:
    """compiled: through torch.compile."""

    def __init__(self, compiled: bool):
        import torch
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        self.torch, self.compiled = torch, compiled
        self.no_grad = torch.no_grad

    def formulas(self) -> dict[str, Callable]:
        torch = self.torch

        def softmax(x: Any) -> Any:
            e = torch.exp(x - x.amax(-1, keepdim=True).detach())
            return e / e.sum(-1, keepdim=True)

        def cross_entropy(x: Any, label: Any) -> Any:
            z = x - x.amax(-1, keepdim=True).detach()
            total = torch.exp(z).sum(-1, keepdim=True)
            return (torch.log(total) - z.gather(-1, label)).mean()
        return {"softmax": softmax, "cross_entropy": cross_entropy, "rms_norm": partial(rms_norm, torch),
                "swiglu": partial(swiglu, torch), "adamw": partial(adamw, torch)}

    def ready(self, formula: Callable) -> Callable:
        return self.torch.compile(formula, dynamic=False) if self.compiled else formula

    def array(self, shape: tuple[int, ...]) -> Any:
        return self.torch.rand(shape)

    def variable(self, shape: tuple[int, ...]) -> Any:
        return self.torch.rand(shape, requires_grad=True)

    def labels(self, count: int, classes: int) -> Any:
        return self.torch.randint(classes, (count, 1))

    def clear(self, x: Any) -> None:
        x.grad = None


class TorchLibrary(Torch):
    """The operators that torch has for some of the formulas, instead of the formulas."""

    def formulas(self) -> dict[str, Callable]:
        nn = self.torch.nn.functional
        return {"softmax": lambda x: nn.softmax(x, -1), "cross_entropy": lambda x, t: nn.cross_entropy(x, t[:, 0]),
                "rms_norm": lambda x, w: nn.rms_norm(x, x.shape[-1:], w, 1e-6), "swiglu": lambda g, u: nn.silu(g) * u}


CONTENDERS: dict[str, Callable[[], Any]] = {
    "minipd": lambda: Minipd(False), "minipd compiled": lambda: Minipd(True), "torch": lambda: Torch(False),
    "torch compiled": lambda: Torch(True), "torch library": lambda: TorchLibrary(False),
    "torch library compiled": lambda: TorchLibrary(True)}


class Case:
    """One formula, one way: arrays and compiled function are made when it is first called, and those of the case before
    are let go."""

    last: Case | None = None

    def __init__(self, own: Any, name: str, way: str):
        self.own, self.name, self.way = own, name, way
        self.call: Callable[[], object] | None = None

    def __call__(self) -> None:
        if self.call is None:
            if Case.last is not None:
                Case.last.call = None
            Case.last, self.call = self, self.made()
        self.call()

    def made(self) -> Callable[[], object]:
        own, (formula, shapes) = self.own, FORMULAS[self.name]
        backward = self.way != "forward"
        variables = [(own.variable if backward else own.array)(s) for s in shapes if s != LABELS]
        arguments = [*variables, *([own.labels(*shapes[0])] if LABELS in shapes else [])]
        function = own.ready(own.formulas()[formula])

        def forward() -> None:
            with own.no_grad():
                function(*arguments)

        def both() -> None:
            for x in variables:
                own.clear(x)
            function(*arguments).backward(*seed)
        seed = [] if LABELS in shapes else [own.array(shapes[0])]       # the gradient of what is no loss
        return both if backward else forward


def cases(contender: str) -> dict[str, Callable[[], None]]:
    """contender: one of `CONTENDERS`."""
    own = CONTENDERS[contender]()
    known = own.formulas()
    return {f"{name}, {way}": Case(own, name, way) for name, (formula, _) in FORMULAS.items() for way in WAYS
            if formula in known and (formula, way) != ("adamw", "forward and backward")}
