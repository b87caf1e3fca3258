"""The formulas of `cinn_cases.py` as kernels written by hand with numba: the yardstick for generated ones.

They keep their buffers from call to call, and have no care for NaN or numbers outside of exp's range.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from cinn_peers import BETA1, BETA2, BOTH, DECAY, EPSILON, FORWARD, RATE, angles_of
from llvmlite import ir

from minipd.cinn.codegen.scalar import from_bits
from minipd.framework.numba_setup import numba

F, I = np.float32, np.int32
types, prange = numba.types, numba.prange
kernel = numba.njit(parallel=True, fastmath=True, error_model="numpy", nogil=True)
inlined = numba.njit(inline="always", fastmath={"nnan", "ninf", "nsz", "contract"}, error_model="numpy")
P0, P1, P2, P3, P4, P5 = map(F, (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1,
                                 5.0000001201e-1))
RATE_, BETA1_, BETA2_, EPSILON_, KEPT = F(RATE), F(BETA1), F(BETA2), F(EPSILON), F(1 - RATE * DECAY)
REST1, REST2 = F(1 - BETA1), F(1 - BETA2)


@numba.extending.intrinsic
def largest(context, x, y):
    """The larger one, if none is NaN."""
    def generate(context, builder, signature, arguments):
        kind = ir.FloatType()
        function = builder.module.declare_intrinsic("llvm.maxnum", [kind], ir.FunctionType(kind, [kind, kind]))
        return builder.call(function, arguments, fastmath=("fast",))
    return types.float32(types.float32, types.float32), generate


@inlined
def exp(x):
    x = x if x > F(-87.3) else F(-87.3)
    x = x if x < F(88.3) else F(88.3)
    k = np.rint(x * F(1.44269504))
    r = x - k * F(0.693359375)
    r = r - k * F(-2.12194440e-4)
    square = r * r
    p = (P0 * r + P1) * square * square + (P2 * r + P3) * square + (P4 * r + P5)
    return (p * square + (r + F(1))) * from_bits(I((I(k) + I(127)) << I(23)))


@kernel
def rms_norm(x, weight, y, scale):
    n, d = x.shape
    for i in prange(n):
        total = F(0)
        for j in range(d):
            total += x[i, j] * x[i, j]
        scale[i] = F(1) / math.sqrt(total / F(d) + F(1e-6))
        for j in range(d):
            y[i, j] = x[i, j] * scale[i] * weight[j]


@kernel
def rms_norm_grad(g, x, weight, scale, dx, parts):
    n, d = x.shape
    tasks = parts.shape[0]
    for task in prange(tasks):
        for j in range(d):
            parts[task, j] = F(0)
        for i in range(task * n // tasks, (task + 1) * n // tasks):
            total, r = F(0), scale[i]
            for j in range(d):
                total += g[i, j] * weight[j] * x[i, j]
            c = total * r * r / F(d)
            for j in range(d):
                dx[i, j] = r * (g[i, j] * weight[j] - x[i, j] * c)
                parts[task, j] += g[i, j] * x[i, j] * r


@kernel
def softmax(x, y):
    n, d = x.shape
    for i in prange(n):
        top, total = F(-np.inf), F(0)
        for j in range(d):
            top = largest(top, x[i, j])
        for j in range(d):
            e = exp(x[i, j] - top)
            y[i, j] = e
            total += e
        per_total = F(1) / total
        for j in range(d):
            y[i, j] *= per_total


@kernel
def softmax_grad(g, y, dx):
    n, d = y.shape
    for i in prange(n):
        total = F(0)
        for j in range(d):
            total += g[i, j] * y[i, j]
        for j in range(d):
            dx[i, j] = y[i, j] * (g[i, j] - total)


@kernel
def cross_entropy(x, label, losses):
    n, d = x.shape
    for i in prange(n):
        top, total = F(-np.inf), F(0)
        for j in range(d):
            top = largest(top, x[i, j])
        for j in range(d):
            total += exp(x[i, j] - top)
        losses[i] = math.log(total) + top - x[i, label[i]]


@kernel
def cross_entropy_both(x, label, losses, dx):
    n, d = x.shape
    for i in prange(n):
        top, total, picked = F(-np.inf), F(0), x[i, label[i]]
        for j in range(d):
            top = largest(top, x[i, j])
        for j in range(d):
            e = exp(x[i, j] - top)
            dx[i, j] = e
            total += e
        losses[i] = math.log(total) + top - picked
        factor = F(1) / (total * F(n))
        for j in range(d):
            dx[i, j] *= factor
        dx[i, label[i]] -= F(1) / F(n)


@kernel
def swiglu(gate, up, y):
    n, d = y.shape
    for i in prange(n):
        for j in range(d):
            y[i, j] = gate[i, j] / (F(1) + exp(-gate[i, j])) * up[i, j]


@kernel
def swiglu_grad(g, gate, up, dgate, dup):
    n, d = g.shape
    for i in prange(n):
        for j in range(d):
            sigmoid = F(1) / (F(1) + exp(-gate[i, j]))
            silu = gate[i, j] * sigmoid
            dgate[i, j] = g[i, j] * up[i, j] * (sigmoid + silu * (F(1) - sigmoid))
            dup[i, j] = g[i, j] * silu


@kernel
def rope(x, cos, sin, y, sign):
    """x: [batch, length, heads, width].  sign -1: the gradient."""
    batch, length, heads, width = x.shape
    half = width // 2
    for row in prange(batch * length):
        b, t = row // length, row % length
        for h in range(heads):
            for j in range(half):
                first, second, c, s = x[b, t, h, j], x[b, t, h, half + j], cos[t, 0, j], sin[t, 0, j] * sign
                y[b, t, h, j] = first * c - second * s
                y[b, t, h, half + j] = second * c + first * s


@kernel
def adamw(param, grad, moment1, moment2, tasks):
    n = param.size
    for task in prange(tasks):
        start, stop = task * n // tasks, (task + 1) * n // tasks
        p, g, m, v = param[start:stop], grad[start:stop], moment1[start:stop], moment2[start:stop]
        for i in range(p.size):                     # from 0, or numba has each index wrap around where it is negative
            m[i] = BETA1_ * m[i] + REST1 * g[i]
            v[i] = BETA2_ * v[i] + REST2 * g[i] * g[i]
            p[i] = p[i] * KEPT - RATE_ * m[i] / (math.sqrt(v[i]) + EPSILON_)


class ByHand:
    """The kernels as one of `cinn_peers.FRAMEWORKS`; a formula's `both` is the kernels of both ways."""

    ways = (FORWARD, BOTH)

    def __init__(self) -> None:
        self.tasks = int(os.environ["NUMBA_NUM_THREADS"])

    def array(self, shape: tuple[int, ...]) -> np.ndarray:
        return np.random.default_rng(0).random(shape, F)

    def labels(self, count: int, classes: int) -> np.ndarray:
        return np.random.default_rng(0).integers(0, classes, count)

    def angles(self, length: int, width: int) -> tuple[np.ndarray, np.ndarray]:
        return angles_of(length, width)

    def forward(self, function: Callable, floats: Sequence[Any], fixed: Sequence[Any]) -> Callable[[], object]:
        return function(None, *floats, *fixed)

    def both(self, function: Callable, floats: Sequence[Any], fixed: Sequence[Any], seed: Any) -> Callable[[], object]:
        return function(np.empty(0, F) if seed is None else seed, *floats, *fixed)

    # Each gets the output's gradient (None: forward only) and the inputs, and returns the call.
    def rms_norm(self, g, x, weight):
        y, dx = np.empty_like(x), np.empty_like(x)
        scale, parts = np.empty(len(x), F), np.empty((self.tasks, x.shape[1]), F)
        if g is None:
            return lambda: rms_norm(x, weight, y, scale)

        def both():
            rms_norm(x, weight, y, scale)
            rms_norm_grad(g, x, weight, scale, dx, parts)
            return parts.sum(0)
        return both

    def softmax(self, g, x):
        y, dx = np.empty_like(x), np.empty_like(x)
        return (lambda: softmax(x, y)) if g is None else lambda: (softmax(x, y), softmax_grad(g, y, dx))

    def cross_entropy(self, g, x, label):
        losses, dx = np.empty(len(x), F), np.empty_like(x)
        if g is None:
            return lambda: (cross_entropy(x, label, losses), losses.mean())
        return lambda: (cross_entropy_both(x, label, losses, dx), losses.mean())

    def swiglu(self, g, gate, up):
        y, dgate, dup = np.empty_like(up), np.empty_like(up), np.empty_like(up)
        if g is None:
            return lambda: swiglu(gate, up, y)
        return lambda: (swiglu(gate, up, y), swiglu_grad(g, gate, up, dgate, dup))

    def rope(self, g, x, cos, sin):
        y, dx = np.empty_like(x), np.empty_like(x)
        if g is None:
            return lambda: rope(x, cos, sin, y, F(1))
        return lambda: (rope(x, cos, sin, y, F(1)), rope(g, cos, sin, dx, F(-1)))

    def adamw(self, size):
        arrays = [self.array((size,)) for _ in range(4)]
        return lambda: adamw(*arrays, self.tasks)
