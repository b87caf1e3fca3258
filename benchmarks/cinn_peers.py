"""The frameworks that `cinn_cases.py` asks: each writes the formulas in its own operators, and says how they are run.

    forward(function, floats, fixed)      a call without gradients
    both(function, floats, fixed, seed)   a call that gives the output and the gradients of `floats`; seed: the
                                          gradient of the output (None: the output is a loss)

fixed: what has no gradient (class numbers, cosines and sines).  A framework without a formula lacks its method.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Call = Callable[[], object]
Arrays = Sequence[Any]
FORWARD, BOTH = "forward", "forward and backward"
RATE, BETA1, BETA2, EPSILON, DECAY = 1e-3, 0.9, 0.95, 1e-8, 0.1


def angles_of(length: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Cosines and sines of rotary embedding: [length, 1, width], both halves alike."""
    half = np.outer(np.arange(length), 10000.0 ** (-np.arange(0, width, 2) / width))
    both = np.concatenate([half, half], -1)[:, None]
    return np.cos(both).astype(np.float32), np.sin(both).astype(np.float32)


class Composed:
    """Formulas that read alike in minipd, Paddle, torch and jax; m: the module of operators."""

    ways: tuple[str, ...] = (FORWARD, BOTH)
    m: Any

    def rms_norm(self, x, weight):
        return x * self.m.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * weight

    def softmax(self, x):
        e = self.m.exp(x - self.top(x))
        return e / e.sum(-1, keepdim=True)

    def cross_entropy(self, x, label):
        z = x - self.top(x)
        total = self.m.exp(z).sum(-1, keepdim=True)
        return (self.m.log(total) - self.pick(z, label)).mean()

    def swiglu(self, gate, up):
        return gate * self.m.sigmoid(gate) * up

    def rope(self, x, cos, sin):
        half = x.shape[-1] // 2
        return x * cos + self.m.concat([-x[..., half:], x[..., :half]], -1) * sin

    def updated(self, param, grad, moment1, moment2):
        """A step of AdamW, after many others."""
        m1, m2 = moment1 * BETA1 + grad * (1 - BETA1), moment2 * BETA2 + grad * grad * (1 - BETA2)
        return param * (1 - RATE * DECAY) - m1 * RATE / (self.m.sqrt(m2) + EPSILON), m1, m2


class OfPaddle(Composed):
    """What minipd and Paddle write alike."""

    def ready(self, function: Callable) -> Callable:
        return function

    def top(self, x):
        return x.max(-1, keepdim=True).detach()

    def pick(self, z, label):
        return self.m.take_along_axis(z, label, -1)

    def array(self, shape):
        return self.m.rand(shape)

    def labels(self, count, classes):
        return self.m.to_tensor(np.random.default_rng(0).integers(0, classes, (count, 1)))

    def angles(self, length, width):
        return [self.m.to_tensor(a) for a in angles_of(length, width)]

    def forward(self, function: Callable, floats: Arrays, fixed: Arrays) -> Call:
        run = self.ready(function)

        def call():
            with self.m.no_grad():
                run(*floats, *fixed)
        return call

    def both(self, function: Callable, floats: Arrays, fixed: Arrays, seed: Any) -> Call:
        run = self.ready(function)
        for x in floats:
            x.stop_gradient = False

        def call():
            for x in floats:
                x.clear_gradient(False)
            run(*floats, *fixed).backward(*([] if seed is None else [seed]))
        return call

    def adamw(self, size):
        param, grad, moment1, moment2 = (self.array([size]) for _ in range(4))

        def step():
            new = self.updated(param, grad, moment1, moment2)
            for old, value in zip((param, moment1, moment2), new, strict=True):
                self.m.assign(value, old)
        return self.forward(step, [], [])


class Minipd(OfPaddle):
    def __init__(self):
        import minipd
        self.m = minipd


class MinipdCompiled(Minipd):
    def ready(self, function):
        return self.m.jit.to_static(function, backend="CINN")


class MinipdOneProgram(MinipdCompiled):
    """The gradients asked for inside the compiled function, as in a compiled training step: one program computes output
    and gradients."""

    ways = (BOTH,)

    def both(self, function, floats, fixed, seed):
        def step(*given):
            inputs = given[:len(floats)]
            for x in inputs:
                x.stop_gradient = False
            y = function(*given)
            return y, self.m.grad(y, inputs, seed)
        run = self.ready(step)
        return lambda: run(*floats, *fixed)


class Paddle(OfPaddle):
    """Eager; AdamW is its optimizer."""

    def __init__(self):
        import paddle
        self.m = paddle

    def adamw(self, size):
        param = self.m.create_parameter([size], "float32")
        optimizer = self.m.optimizer.AdamW(RATE, BETA1, BETA2, parameters=[param], weight_decay=DECAY)
        (param * self.array([size])).sum().backward()
        return optimizer.step


class PaddleStatic(Paddle):
    adamw = None

    def ready(self, function):
        # Paddle takes no methods of classes that are no Layers, and no *arguments.
        def of_one(a):
            return function(a)

        def of_two(a, b):
            return function(a, b)

        def of_three(a, b, c):
            return function(a, b, c)
        number = len(inspect.signature(function).parameters)
        return self.m.jit.to_static((of_one, of_two, of_three)[number - 1], full_graph=True)


class PaddleFused(Paddle):
    """Operators that Paddle's library has for single formulas; RMSNorm has no gradient there."""

    ways = (FORWARD,)
    cross_entropy = softmax = rope = adamw = None

    def rms_norm(self, x, weight):
        return self.m.incubate.nn.functional.fused_rms_norm(x, weight, None, 1e-6, 1)[0]

    def swiglu(self, gate, up):
        return self.m.incubate.nn.functional.swiglu(gate, up)


class Torch(Composed):
    """AdamW is its optimizer, fused."""

    def __init__(self):
        import torch
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        self.m = torch

    def ready(self, function: Callable) -> Callable:
        return function

    def top(self, x):
        return x.amax(-1, keepdim=True).detach()

    def pick(self, z, label):
        return z.gather(-1, label)

    def array(self, shape):
        return self.m.rand(shape)

    def labels(self, count, classes):
        return self.m.randint(classes, (count, 1))

    def angles(self, length, width):
        return [self.m.tensor(a) for a in angles_of(length, width)]

    def forward(self, function, floats, fixed):
        run = self.ready(function)

        def call():
            with self.m.no_grad():
                run(*floats, *fixed)
        return call

    def both(self, function, floats, fixed, seed):
        run = self.ready(function)
        for x in floats:
            x.requires_grad_(True)

        def call():
            for x in floats:
                x.grad = None
            run(*floats, *fixed).backward(*([] if seed is None else [seed]))
        return call

    def adamw(self, size):
        param = self.m.nn.Parameter(self.array([size]))
        param.grad = self.array([size])
        return self.m.optim.AdamW([param], lr=RATE, betas=(BETA1, BETA2), weight_decay=DECAY, fused=True).step


class TorchCompiled(Torch):
    def ready(self, function):
        return self.m.compile(function, dynamic=False)

    def adamw(self, size):
        param = self.m.nn.Parameter(self.array([size]))
        param.grad = self.array([size])
        optimizer = self.m.optim.AdamW([param], lr=RATE, betas=(BETA1, BETA2), weight_decay=DECAY, foreach=True)
        return self.m.compile(optimizer.step)


class TorchLibrary(Torch):
    """The operators that torch has for some of the formulas, instead of the formulas."""

    rope = adamw = None

    def softmax(self, x):
        return self.m.softmax(x, -1)

    def cross_entropy(self, x, label):
        return self.m.nn.functional.cross_entropy(x, label[:, 0])

    def rms_norm(self, x, weight):
        return self.m.nn.functional.rms_norm(x, x.shape[-1:], weight, 1e-6)

    def swiglu(self, gate, up):
        return self.m.nn.functional.silu(gate) * up


class Jax(Composed):
    """Output and gradients are one program."""

    def __init__(self):
        import jax
        self.jax, self.m = jax, _JaxOperators()

    def rms_norm(self, x, weight):
        return x * self.jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * weight

    def softmax(self, x):
        return self.jax.nn.softmax(x, -1)

    def cross_entropy(self, x, label):
        picked = self.jax.numpy.take_along_axis(x, label, 1)
        return (self.jax.nn.logsumexp(x, -1, keepdims=True) - picked).mean()

    def array(self, shape):
        return self.jax.numpy.asarray(np.random.default_rng(0).random(shape, np.float32))

    def labels(self, count, classes):
        return self.jax.numpy.asarray(np.random.default_rng(0).integers(0, classes, (count, 1)))

    def angles(self, length, width):
        return [self.jax.numpy.asarray(a) for a in angles_of(length, width)]

    def forward(self, function, floats, fixed):
        run = self.jax.jit(function)
        return lambda: self.jax.block_until_ready(run(*floats, *fixed))

    def both(self, function, floats, fixed, seed):
        def step(floats, fixed, seed):
            y, backward = self.jax.vjp(lambda *xs: function(*xs, *fixed), *floats)
            return y, backward(self.jax.numpy.ones_like(y) if seed is None else seed)
        run = self.jax.jit(step)
        return lambda: self.jax.block_until_ready(run(floats, fixed, seed))

    def adamw(self, size):
        run = self.jax.jit(self.updated, donate_argnums=(0, 2, 3))
        param, grad, *moments = (self.array([size]) + 0 for _ in range(4))
        state = [param, *moments]

        def step():
            state[:] = run(state[0], grad, *state[1:])
            self.jax.block_until_ready(state)
        return step


class _JaxOperators:
    """jax's operators under the names that the formulas use."""

    def __init__(self):
        import jax
        self.sigmoid, self.sqrt, self.concat = jax.nn.sigmoid, jax.numpy.sqrt, jax.numpy.concatenate


def by_hand() -> Any:
    from cinn_by_hand import ByHand
    return ByHand()


FRAMEWORKS: dict[str, Callable[[], Any]] = {
    "minipd compiled": MinipdCompiled, "minipd one program": MinipdOneProgram, "minipd": Minipd, "by hand": by_hand,
    "torch": Torch, "torch library": TorchLibrary, "torch compiled": TorchCompiled, "jax": Jax, "paddle": Paddle,
    "paddle to_static": PaddleStatic, "paddle fused": PaddleFused}
