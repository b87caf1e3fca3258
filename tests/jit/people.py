"""What the programs of `test_as_people_write` are made of.

A case takes `compiled`, which compiles a function or a layer, or leaves it as it is; it returns what can be compared.
"""

import dataclasses

import numpy as np

import minipd as paddle

nn, F, T = paddle.nn, paddle.nn.functional, paddle.to_tensor
CASES = {}


def case(f):
    CASES[f.__name__] = f
    return f


def val(x):
    """A nested result as plain values: tensors with dtype, shape and whether they want a gradient."""
    if isinstance(x, paddle.Tensor):
        return x.dtype.name, list(x.shape), x.stop_gradient, np.round(x.numpy().astype("float64"), 4).tolist()
    if isinstance(x, (list, tuple)):
        return type(x).__name__, [val(v) for v in x]
    if isinstance(x, dict):
        return {k: val(v) for k, v in x.items()}
    return (type(x).__name__, val(vars(x))) if dataclasses.is_dataclass(x) else x


def mlp(seed=0):
    paddle.seed(seed)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def X(*shape, seed=0):
    return T(np.random.RandomState(seed).randn(*shape).astype("float32"))


@dataclasses.dataclass
class Batch:
    x: object
    y: object = None
    n: int = 1
