"""Every public function, called with random arguments: it answers, or it says in the user's terms what is wrong.

Only the documented types of exceptions come out, with messages about arguments, never about the inside; nothing crashes
and nothing hangs.  Arguments are drawn by a parameter's name and annotation, most of them of the right kind.
"""

import builtins
import inspect
import math
import random
import signal
import sys
import types

import numpy as np
import pytest

import minipd as paddle
from minipd.framework.boundary import INSIDE
from minipd.framework.tensor import Tensor

DOCUMENTED = (TypeError, ValueError, IndexError, RuntimeError, NotImplementedError, FloatingPointError, MemoryError)

#: what is not called: it touches files or processes, switches something for all that follows, or waits for others
LEFT_OUT = set("""save load seed manual_seed set_flags set_default_dtype set_grad_enabled set_printoptions set_device
    install_as_paddle enable_static disable_static set_rng_state set_cuda_rng_state set_global_initializer
    disable_signal_handler LazyGuard summary flops enable_compat disable_compat""".split())

NAMESPACES = [paddle, paddle.nn.functional] + [
    sys.modules[name] for name in ("minipd.linalg", "minipd.fft", "minipd.signal") if name in sys.modules]


def public_functions():
    found = {}
    for module in NAMESPACES:
        for name in module.__all__:
            f = getattr(module, name)
            if isinstance(f, types.FunctionType) and name not in LEFT_OUT:
                found[f"{module.__name__.replace('minipd', 'paddle')}.{name}"] = f
    return found


FUNCTIONS = public_functions()


class Arguments:
    """Random arguments of one function."""

    def __init__(self, rng: random.Random):
        self.rng, self.np = rng, np.random.default_rng(rng.getrandbits(32))

    def shape(self):
        return tuple(self.rng.choice((0, 1, 1, 2, 3, 3, 5)) for _ in range(self.rng.choice((0, 1, 1, 2, 2, 3, 4))))

    def tensor(self):
        dtype = self.rng.choice(["float32"] * 6 + ["int64", "int64", "bool", "float64", "float16", "bfloat16", "uint8",
                                                   "complex64"])
        shape = self.rng.choice((self.common, self.common, self.shape()))
        x = paddle.to_tensor(np.asarray(self.np.integers(-2, 4, shape) if dtype in ("int64", "uint8", "bool") else
                                        self.np.standard_normal(shape)), dtype=dtype)
        x.stop_gradient = self.rng.random() < 0.7
        return x

    def whole(self):
        return self.rng.choice((0, 1, 1, 2, 2, 3, -1, -2, 7, 1 << 62))

    def axis(self):
        return self.rng.choice((0, 0, 1, 1, -1, 2, None, 9, (0, 1), [0]))

    def anything(self):
        return self.rng.choice((None, True, 1.5, math.nan, math.inf, -3, "mean", "x", (), [1, 2], (2, 3), {}, object(),
                                np.ones((2, 3)), 1j, [self.tensor()], "float32"))

    def of(self, p):
        if self.rng.random() < 0.08:
            return self.anything()
        name, kind = p.name, p.annotation if isinstance(p.annotation, str) else ""
        if "Tensor" in kind and "Sequence" not in kind and "list" not in kind:
            return self.tensor()
        if name in ("axis", "dim", "axes", "start_axis", "stop_axis"):
            return self.axis()
        if name in ("x", "inputs", "tensors") and kind == "Any":
            return self.rng.choice(([self.tensor(), self.tensor()], self.tensor(), [self.tensor()]))
        if name in ("y", "other", "value", "label", "weight", "index", "indices", "mask", "condition"):
            return self.rng.choice((self.tensor(), self.tensor(), self.whole(), 0.5))
        if "shape" in name or "size" in name or name in ("perm", "stride", "padding", "repeat_times", "pad"):
            return self.rng.choice((self.whole(), [self.whole(), 2], list(self.common), (1,), "SAME"))
        if "dtype" in name:
            return self.rng.choice(("float32", "int64", "complex64", paddle.float64, None, "float", "bool", "q"))
        if kind.startswith("bool"):
            return self.rng.random() < 0.5
        if kind.startswith("int"):
            return self.whole()
        if kind.startswith("float"):
            return self.rng.choice((0.0, 0.5, 1.0, -1.0, 2, math.inf))
        if kind.startswith("str"):
            return self.rng.choice(("mean", "sum", "none", "NCHW", "NHWC", "nearest", "reflect", "fro", "zz"))
        return self.anything()

    def draw(self, function):
        self.common = self.shape()
        args, kwargs = [], {}
        for p in inspect.signature(function).parameters.values():
            if p.kind is p.VAR_POSITIONAL:
                args += [self.of(p) for _ in range(self.rng.randint(0, 2))]
            elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty:
                args.append(self.of(p))
            elif p.kind is not p.VAR_KEYWORD and p.name != "name" and self.rng.random() < 0.3:
                kwargs[p.name] = self.of(p)
        return args, kwargs


def shown(args, kwargs):
    def one(v):
        return f"{v.dtype.name}{list(v.shape)}" if isinstance(v, Tensor) else repr(v)[:80]
    return ", ".join([*map(one, args), *(f"{k}={one(v)}" for k, v in kwargs.items())])


def complaint(function, args, kwargs):
    """What is wrong with how a function took its arguments; None if nothing is."""
    def hangs(signum, frame):
        raise KeyboardInterrupt
    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(10)
    try:
        function(*args, **kwargs)
    except KeyboardInterrupt:
        return "took more than 10 s"
    except DOCUMENTED as error:
        if isinstance(error, np.linalg.LinAlgError) or INSIDE.search(str(error)) or not str(error):
            return f"{type(error).__name__}: {error}"
    except builtins.Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return None


def complaints(name, seed, calls):
    found = []
    for n in range(calls):
        arguments = Arguments(random.Random(f"{name} {seed} {n}"))
        args, kwargs = arguments.draw(FUNCTIONS[name])
        wrong = complaint(FUNCTIONS[name], args, kwargs)
        if wrong:
            found.append(f"{name}({shown(args, kwargs)})\n    {wrong}")
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_random_arguments(name):
    found = complaints(name, 0, 25)
    assert not found, "\n".join(found[:3])


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_many_random_arguments(name):
    """About ten minutes in all."""
    found = complaints(name, 1, 1000)
    assert not found, "\n".join(found[:3])
