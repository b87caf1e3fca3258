"""One call of every operator that Paddle decomposes, forward or in its gradient (its C++: 56 rules, and 51).

`CASES[name].call(paddle, *tensors)` runs with the real Paddle, whose answers `python -m tests.decomposition.record`
writes into `tests/golden/decomposition.jsonl.xz`, and with minipd.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

#: the operators that have a rule `<Name>Op::Decomp`
FORWARD = """add_n addmm any baddbmm batch_norm batch_norm_ bce_loss bmm clip diag dropout elu embedding eye flatten
full_like fused_rms_norm_quant gelu group_norm hardsigmoid hardswish heaviside huber_loss index_sample index_select
instance_norm kldiv_loss layer_norm leaky_relu lerp linear_v2 log_loss log_softmax masked_fill mean mean_all meshgrid
numel one_hot p_norm reciprocal relu relu6 sigmoid_cross_entropy_with_logits silu softmax softsign square
squared_l2_norm squeeze stack swiglu swish unbind unsqueeze unstack""".split()

#: the operators of which `<Name>GradOp::DecompVjp` (and the composed rules of the tape) write the gradient in others
GRADIENT = """abs add angle bce_loss concat cos divide elementwise_pow elu erf exp floor gelu group_norm hardsigmoid
hardswish index_add index_put layer_norm leaky_relu linear_v2 log masked_fill matmul max maximum mean minimum multiply
p_norm pow reduce_as relu6 relu reshape roll rsqrt sigmoid silu sin slice softmax sqrt squeeze stack subtract sum swiglu
tanh transpose unsqueeze""".split()


class Case(NamedTuple):
    """call(paddle, *tensors) -> a tensor, or several.  inputs: the tensors, float ones as float64.

    values: whether the inputs are numbers that the operator meets anywhere (huge, tiny, infinite, NaN).
    """

    call: Callable[..., Any]
    inputs: tuple[np.ndarray, ...]
    values: bool = False


#: numbers that a formula written carelessly loses: huge and tiny ones, both zeros, no numbers
NUMBERS = np.array([-np.inf, -1e30, -1e4, -104.0, -88.5, -20.0, -8.0, -5.5, -3.0, -1.0, -0.5, -1e-3, -1e-12, -0.0,
                    0.0, 1e-12, 1e-3, 0.25, 0.5, 1.0, 2.0, 3.0, 5.5, 6.0, 8.0, 20.0, 88.0, 104.0, 1e4, 1e30, np.inf,
                    np.nan])
PROBABILITIES = np.array([0.0, 1e-30, 1e-7, 1e-3, 0.25, 0.5, 0.75, 1 - 1e-6, 1.0])
RNG = np.random.default_rng(9)


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


def positive(*shape: int) -> np.ndarray:
    return RNG.uniform(0.3, 2.0, size=shape)


def whole(*shape: int, below: int) -> np.ndarray:
    return RNG.integers(0, below, shape)


def pairs(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each of the first with each of the second."""
    a, b = np.meshgrid(first, second, indexing="ij")
    return a.ravel(), b.ravel()


SOME = np.array([-np.inf, -1e30, -3.0, -1e-12, -0.0, 0.0, 0.5, 3.0, 1e30, np.inf, np.nan])
X, Y = normal(3, 5), normal(3, 5)
X.flat[4] = Y.flat[4]           # a tie
ROWS = np.stack([normal(6), 1e4 * normal(6), 1e-6 * normal(6), np.array([-np.inf, 0.0, 1.0, 2.0, 88.0, -3.0]),
                 np.full(6, 3.0), np.array([1e30, -1e30, 0.0, 1.0, 2.0, 3.0])])
IMAGES = normal(2, 4, 3, 5)


def _batch_norm(paddle: Any, x: Any, mean: Any, variance: Any, scale: Any, bias: Any) -> Any:
    out = paddle.nn.functional.batch_norm(x, mean, variance, scale, bias, training=True, momentum=0.8)
    return out, mean, variance


def _masked_fill(paddle: Any, x: Any, mask: Any, value: Any) -> Any:
    return paddle.masked_fill(x, mask, value)


def _unary(name: str, **attrs: Any) -> Callable[..., Any]:
    """`paddle.nn.functional.<name>`, or `paddle.<name>`."""
    def call(paddle: Any, *xs: Any) -> Any:
        home = paddle.nn.functional if hasattr(paddle.nn.functional, name) else paddle
        return getattr(home, name)(*xs, **attrs)
    return call


def _numbers(name: str, **attrs: Any) -> Case:
    return Case(_unary(name, **attrs), (NUMBERS,), values=True)


def _two(name: str) -> Case:
    return Case(_unary(name), pairs(SOME, SOME), values=True)


#: operator, or operator and variant -> the call
CASES: dict[str, Case] = {
    # activations, and other functions of one number
    **{name: _numbers(name) for name in ("abs", "cos", "sin", "erf", "exp", "floor", "log", "sqrt", "rsqrt", "tanh",
                                         "reciprocal", "square", "relu", "relu6", "silu", "softsign", "swish",
                                         "sigmoid", "angle", "hardswish", "hardsigmoid", "gelu")},
    "elu": _numbers("elu", alpha=0.75), "leaky_relu": _numbers("leaky_relu", negative_slope=0.25),
    "clip": _numbers("clip", min=-2.5, max=5.5),
    "pow": Case(lambda paddle, x: paddle.pow(x, 3.0), (NUMBERS,), values=True),
    "gelu tanh": _numbers("gelu", approximate=True),
    # of two
    **{name: _two(name) for name in ("add", "subtract", "multiply", "divide", "maximum", "minimum", "heaviside")},
    "swiglu": Case(_unary("swiglu"), pairs(NUMBERS, np.array([-3.0, 0.0, 2.0])), values=True),
    "elementwise_pow": Case(_unary("pow"), pairs(np.array([0.0, 1e-12, 0.5, 1.0, 3.0, 1e15, np.inf, np.nan]),
                                                 np.array([-2.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.5])), values=True),
    "lerp": Case(lambda paddle, x, y, w: paddle.lerp(x, y, w), (X, Y, positive(3, 1) / 2)),
    # losses
    "bce_loss": Case(lambda paddle, p, y: paddle.nn.functional.binary_cross_entropy(p, y, reduction="none"),
                     pairs(PROBABILITIES, np.array([0.0, 0.3, 1.0])), values=True),
    "sigmoid_cross_entropy_with_logits": Case(
        lambda paddle, x, y: paddle.nn.functional.binary_cross_entropy_with_logits(x, y, reduction="none"),
        pairs(NUMBERS, np.array([0.0, 0.3, 1.0])), values=True),
    "log_loss": Case(lambda paddle, p, y: paddle.nn.functional.log_loss(p, y, epsilon=1e-4),
                     tuple(a[:, None] for a in pairs(PROBABILITIES, np.array([0.0, 0.3, 1.0]))), values=True),
    "huber_loss": Case(lambda paddle, x, y: paddle.nn.functional.smooth_l1_loss(x, y, reduction="none", delta=1.5),
                       pairs(SOME, np.array([-1e30, 0.0, 0.5, 2.0])), values=True),
    "kldiv_loss": Case(lambda paddle, x, y: paddle.nn.functional.kl_div(x, y, reduction="none"),
                       pairs(np.array([-np.inf, -100.0, -3.0, 0.0, 1.0]), PROBABILITIES), values=True),
    "kldiv_loss log": Case(lambda paddle, x, y: paddle.nn.functional.kl_div(x, y, reduction="sum", log_target=True),
                           (normal(3, 5), normal(3, 5))),
    # along dimensions
    **{name: Case(_unary(name, axis=-1), (ROWS,), values=True) for name in ("softmax", "log_softmax", "mean", "max",
                                                                           "sum")},
    "mean_all": Case(lambda paddle, x: paddle.mean(x), (X,)),
    "p_norm": Case(lambda paddle, x: paddle.linalg.norm(x, p=3.0, axis=-1), (X,)),
    "p_norm 2": Case(lambda paddle, x: paddle.linalg.norm(x, p=2.0, axis=-1, keepdim=True), (ROWS,), values=True),
    "p_norm inf": Case(lambda paddle, x: paddle.linalg.norm(x, p=float("inf"), axis=0), (X,)),
    "p_norm 0": Case(lambda paddle, x: paddle.linalg.norm(x, p=0.0, axis=0), (np.rint(X),)),
    "squared_l2_norm": Case(lambda paddle, x: paddle._C_ops.squared_l2_norm(x), (X,)),
    "any": Case(lambda paddle, x: paddle.any(x, axis=1), (np.array([[False, True], [False, False], [True, True]]),)),
    "reduce_as": Case(lambda paddle, x, y: paddle.reduce_as(x, y), (normal(2, 3, 5), normal(3, 1))),
    # norms
    "layer_norm": Case(lambda paddle, x, w, b: paddle.nn.functional.layer_norm(x, [5], w, b),
                       (np.concatenate([X, 1e4 + normal(2, 5), np.full((1, 5), 3.0)]), positive(5), normal(5))),
    "group_norm": Case(lambda paddle, x, w, b: paddle.nn.functional.group_norm(x, 2, 1e-5, w, b),
                       (IMAGES, positive(4), normal(4))),
    "instance_norm": Case(lambda paddle, x, w, b: paddle.nn.functional.instance_norm(x, weight=w, bias=b),
                          (IMAGES, positive(4), normal(4))),
    "batch_norm": Case(lambda paddle, x, m, v, w, b: paddle.nn.functional.batch_norm(x, m, v, w, b),
                       (IMAGES, normal(4), positive(4), positive(4), normal(4))),
    "batch_norm_": Case(_batch_norm, (IMAGES, normal(4), positive(4), positive(4), normal(4))),
    # products
    "matmul": Case(lambda paddle, x, y: paddle.matmul(x, y, transpose_y=True), (normal(2, 3, 5), normal(4, 5))),
    "bmm": Case(_unary("bmm"), (normal(2, 3, 5), normal(2, 5, 4))),
    "addmm": Case(_unary("addmm", beta=0.5, alpha=2.0), (normal(3, 4), normal(3, 5), normal(5, 4))),
    "baddbmm": Case(_unary("baddbmm", beta=0.5, alpha=2.0), (normal(2, 3, 4), normal(2, 3, 5), normal(2, 5, 4))),
    "linear_v2": Case(lambda paddle, x, w, b: paddle.nn.functional.linear(x, w, b),
                      (normal(2, 3, 5), normal(5, 4), normal(4))),
    # shapes
    "reshape": Case(lambda paddle, x: paddle.reshape(x, [5, -1]), (X,)),
    "flatten": Case(lambda paddle, x: paddle.flatten(x, 1, 2), (IMAGES,)),
    "squeeze": Case(lambda paddle, x: paddle.squeeze(x, [1]), (normal(3, 1, 2),)),
    "unsqueeze": Case(lambda paddle, x: paddle.unsqueeze(x, [0, 2]), (X,)),
    "transpose": Case(lambda paddle, x: paddle.transpose(x, [0, 2, 1, 3]), (IMAGES,)),
    "roll": Case(lambda paddle, x: paddle.roll(x, [1, -2], [0, 1]), (X,)),
    "slice": Case(lambda paddle, x: paddle.slice(x, [0, 1], [1, -3], [3, 5]), (X,)),
    "concat": Case(lambda paddle, x, y: paddle.concat([x, y], 1), (X, normal(3, 2))),
    "stack": Case(lambda paddle, x, y: paddle.stack([x, y], 1), (X, Y)),
    "unstack": Case(lambda paddle, x: paddle.unstack(x, 1), (X,)),
    "unbind": Case(lambda paddle, x: paddle.unbind(x, 0), (X,)),
    "meshgrid": Case(lambda paddle, x, y: paddle.meshgrid(x, y), (normal(3), normal(2))),
    "add_n": Case(lambda paddle, x, y, z: paddle.add_n([x, y, z]), (X, Y, normal(3, 5))),
    # by number and mask
    "embedding": Case(lambda paddle, i, w: paddle.nn.functional.embedding(i, w, padding_idx=2),
                      (np.array([[1, 0, 2], [3, 1, 1]]), normal(4, 5))),
    "index_select": Case(lambda paddle, x, i: paddle.index_select(x, i, 1), (X, np.array([4, 0, 4]))),
    "index_sample": Case(_unary("index_sample"), (X, np.array([[0, 4], [1, 1], [3, 2]]))),
    "index_add": Case(lambda paddle, x, i, v: paddle.index_add(x, i, 0, v), (X, np.array([2, 0, 2]), normal(3, 5))),
    "index_put": Case(lambda paddle, x, i, j, v: paddle.index_put(x, (i, j), v, accumulate=True),
                      (X, np.array([2, 0, 2]), np.array([4, 1, 4]), normal(3))),
    "masked_fill": Case(_masked_fill, (X, Y > 0.0, np.array(2.5))),
    "one_hot": Case(lambda paddle, i: paddle.nn.functional.one_hot(i, 4), (np.array([[1, 0, 3], [3, 1, 2]]),)),
    "diag": Case(lambda paddle, x: paddle.diag(x, 1, 0.0), (normal(3),)),
    # without numbers
    "eye": Case(lambda paddle, x: paddle.eye(3, 5, "float32"), (X,)),
    "full_like": Case(lambda paddle, x: paddle.full_like(x, 2.5), (X,)),
    "numel": Case(lambda paddle, x: paddle.numel(x), (X,)),
    "dropout": Case(lambda paddle, x: paddle.nn.functional.dropout(x, 0.25, training=False, mode="downscale_in_infer"),
                    (X,)),
}
