"""Operators that do more than compute their results: they print, they stop the run, they draw from a generator.

They are rows like all others, and every interpreter runs them; their trait keeps passes from removing, merging or
moving them.
"""

from __future__ import annotations

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta
from minipd.framework.rank import current
from minipd.framework.row import Trait, op
from minipd.ops import holes

__all__: list[str] = []


def told(x: np.ndarray, name: str | None, message: str = "", summarize: int = 20, *, type: bool = True,
         shape: bool = True, layout: bool = True, lod: bool = True) -> str:
    """A tensor as Paddle prints it in a program: the first `summarize` numbers (-1: all), as float32.

    >>> print(told(np.array([[1.5, 2]]), "x", lod=False, layout=False))
    Variable: x
      - place: Place(cpu)
      - shape: [1, 2]
      - dtype: float64
      - data: [1.500000 2.000000]
    """
    x = np.asarray(x)
    shown = x.ravel() if summarize < 0 else x.ravel()[:summarize]
    lines = [f"Variable: {name}"] if name else []
    lines += [f"  - message: {message}"] if message else []
    lines += ["  - lod: {}"] if lod else []
    lines += ["  - place: Place(cpu)"]
    lines += [f"  - shape: {list(x.shape)}"] if shape else []
    lines += ["  - layout: NCHW"] if layout else []
    lines += [f"  - dtype: {dtypes.of(x.dtype).name}"] if type else []
    return "\n".join([*lines, f"  - data: [{' '.join(f'{np.float32(v):f}' for v in shown.astype(np.float32))}]"])


@op("print", Trait.SIDE_EFFECT, Trait.ALLOCATES, Trait.EXACT)
class Print:
    """x, which is printed on the way; the gradient too, unless print_phase is "FORWARD"."""

    def infer_meta(x, *, first_n=-1, message="", summarize=20, print_tensor_name=True, print_tensor_type=True,
                   print_tensor_shape=True, print_tensor_layout=True, print_tensor_lod=True, print_phase="BOTH",
                   is_forward=True):
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, *, first_n=-1, message="", summarize=20, print_tensor_name=True, print_tensor_type=True,
               print_tensor_shape=True, print_tensor_layout=True, print_tensor_lod=True, print_phase="BOTH",
               is_forward=True):
        if first_n != 0 and print_phase in ("BOTH", "FORWARD" if is_forward else "BACKWARD"):
            print(told(x, "var" if print_tensor_name else None, message, summarize, type=print_tensor_type,
                       shape=print_tensor_shape, layout=print_tensor_layout, lod=print_tensor_lod))
        return np.array(x)

    def vjp_x(g, first_n, message, summarize, print_tensor_name, print_tensor_type, print_tensor_shape,
              print_tensor_layout, print_tensor_lod, print_phase):
        if print_phase == "FORWARD":
            return g
        return Print(g, first_n=first_n, message=message, summarize=summarize, print_tensor_name=print_tensor_name,
                     print_tensor_type=print_tensor_type, print_tensor_shape=print_tensor_shape,
                     print_tensor_layout=print_tensor_layout, print_tensor_lod=print_tensor_lod,
                     print_phase=print_phase, is_forward=False)


class AssertionFailed(AssertionError, ValueError):
    """A program was stopped: a ValueError, as Paddle's programs raise, and what Python's `assert` raises as well."""


@op("assert", Trait.SIDE_EFFECT, Trait.MULTI, Trait.ALLOCATES, Trait.EXACT, Trait.DISCRETE)
class Assert:
    """Stops the run with `AssertionFailed`, having printed the tensors `data`, unless `cond` is true.  No results."""

    outputs = ()

    def infer_meta(cond, *data, summarize=20, message=""):
        if np.dtype(cond.dtype) != np.bool_ or tuple(cond.shape) not in ((), (1,)):
            raise TypeError(f"assert: expected a bool tensor of one element, got {cond.dtype}{list(cond.shape)}")
        return ()

    def kernel(xp, cond, *data, summarize=20, message=""):
        if not np.asarray(cond).item():
            for i, x in enumerate(data):
                print(told(x, f"data[{i}]", "", summarize))
            raise AssertionFailed(f"Assert: expected the condition to be true, got false{message and f': {message}'}")
        return ()


@op("draw_key", Trait.SIDE_EFFECT, Trait.RANDOM, Trait.ALLOCATES, Trait.EXACT)
class DrawKey:
    """The key, int64[2], of the next random draw of the layer at `path`, from this rank's generator.

    Outside of regions, keys are inputs of the program.  How often a region draws is known only when it runs.
    """

    def infer_meta(*, path):
        return Meta((2,), np.dtype(np.int64))

    def kernel(xp, *, path):
        return current().rng.next_key(path)


holes.explain("vjp", "draws a key, which is no number that something could be differentiated by", "draw_key")
