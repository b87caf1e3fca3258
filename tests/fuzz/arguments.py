"""Random arguments for public functions, drawn by a parameter's name and annotation, most of them of the right kind.

`complaint` calls a function and says what is wrong with how it took them: another exception than the documented ones, a
message about the inside, or a hang.
"""

import inspect
import math
import random
import resource
import signal
from contextlib import contextmanager

import numpy as np

import minipd as paddle
from minipd.framework.boundary import INSIDE
from minipd.framework.tensor import Tensor

DOCUMENTED = (TypeError, ValueError, IndexError, RuntimeError, NotImplementedError, FloatingPointError, MemoryError,
              ZeroDivisionError)

#: Sizes that nobody can mean: what takes them says so at once, and allocates nothing.
BOMBS = (1 << 62, 10**9, 1 << 40)


class Arguments:
    """Random arguments of one function."""

    def __init__(self, seed: str):
        self.rng = random.Random(seed)
        self.np = np.random.default_rng(self.rng.getrandbits(32))
        self.common = self.shape()

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
        return self.rng.choice((0, 1, 1, 2, 2, 3, 4, -1, -2, 7, self.rng.choice(BOMBS)))

    def axis(self):
        return self.rng.choice((0, 0, 1, 1, -1, 2, None, 9, (0, 1), [0]))

    def layer(self):
        return self.rng.choice((paddle.nn.Linear(3, 3), paddle.nn.ReLU(), paddle.nn.GRUCell(3, 3)))

    def parameters(self):
        """Of a layer; some have a gradient."""
        found = self.layer().parameters()
        for p in found:
            if self.rng.random() < 0.7:
                p.grad = paddle.ones_like(p)
        return found

    def dataset(self):
        return self.rng.choice((paddle.io.TensorDataset([paddle.ones([3, 2])]), [1, 2, 3], range(5)))

    def scheduler(self):
        return paddle.optimizer.lr.ExponentialDecay(0.1, 0.9)

    def index(self):
        def one():
            return self.rng.choice((0, 1, -1, 7, None, ..., slice(None), slice(1, None), slice(None, None, -1),
                                    slice(0, 9, 2), slice(None, None, 0), [0, 1], [], True, np.array([1, 0]),
                                    self.tensor(), 1.5, "x", (), slice("a")))
        return one() if self.rng.random() < 0.5 else tuple(one() for _ in range(self.rng.randint(0, 3)))

    def anything(self):
        return self.rng.choice((None, True, 1.5, math.nan, math.inf, -3, "mean", "x", (), [1, 2], (2, 3), {}, object(),
                                np.ones((2, 3)), 1j, [self.tensor()], "float32"))

    #: parameters that stand for a thing of some kind, by name
    THINGS = {"parameters": parameters, "parameter_list": parameters, "dataset": dataset, "datasets": dataset,
              "data_source": dataset, "layer": layer, "cell": layer, "encoder_layer": layer, "decoder_layer": layer,
              "cell_fw": layer, "cell_bw": layer, "model": layer, "models": layer, "learning_rate": scheduler,
              "index": index, "slices": index}

    def of(self, p):
        if self.rng.random() < 0.08:
            return self.anything()
        name, kind = p.name, p.annotation if isinstance(p.annotation, str) else ""
        if name in self.THINGS and self.rng.random() < 0.7:
            return self.THINGS[name](self)
        if "Tensor" in kind and "Sequence" not in kind and "list" not in kind:
            return self.tensor()
        if name in ("axis", "dim", "axes", "start_axis", "stop_axis"):
            return self.axis()
        if name in ("x", "inputs", "tensors") and kind == "Any":
            return self.rng.choice(([self.tensor(), self.tensor()], self.tensor(), [self.tensor()]))
        if name in ("y", "other", "value", "label", "weight", "index", "indices", "mask", "condition", "input"):
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

    def draw(self, function, skip=0):
        """Arguments for a function; of a method, those after `self`."""
        args, kwargs = [], {}
        for p in list(inspect.signature(function).parameters.values())[skip:]:
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


@contextmanager
def little_memory(room=2 << 30):
    """No more than `room` bytes beyond what is in use: what asks for more gets a MemoryError, not the machine."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as statm:
        now = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + room, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


class Hangs(BaseException):
    """Out of a call that took too long."""


def complaint(function, args, kwargs):
    """(what came out, what is wrong with how a function took its arguments); None for each where there is nothing."""
    def hangs(signum, frame):
        raise Hangs
    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(10)
    try:
        return function(*args, **kwargs), None
    except Hangs:
        return None, "took more than 10 s"
    except KeyError as error:                   # of what is looked up by name, in words
        return None, None if ": expected " in str(error) else f"KeyError: {error}"
    except DOCUMENTED as error:
        if isinstance(error, np.linalg.LinAlgError) or INSIDE.search(str(error)) or not str(error):
            return None, f"{type(error).__name__}: {error}"
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return None, None
