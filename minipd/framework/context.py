"""The context of one rank, and the stack of interpreters that gives an operator call its meaning.

`dispatch(row, inputs, attrs)` is the one door.  What happens behind it is decided by the layers of the current
context, outermost first (decision 1 of the architecture):

    amp  ->  tape  ->  dist  ->  kernel | trace | meta

amp and tape work on handles (Tensor); from dist down, interpreters work on payloads and share one protocol,
`run(row, payloads, attrs) -> payload` (a tuple of payloads for rows with more than one result).  The layers are
composed into one function, `context.handler`, whenever they change; a call never searches them, and a layer that is
off costs nothing.

Everything that Paddle keeps process-global lives here, one object per rank, so that ranks can share a process.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta, describe
from minipd.framework.random import Generator
from minipd.framework.rank import current, set_root
from minipd.framework.tensor import Tensor
from minipd.framework.views import share_view

__all__: list[str] = []

#: makes the outermost handler of a context when gradients are on; the autograd floor puts its tape here
_tape: Callable[[RankContext], Callable] | None = None

_KEEP = object()


class RankContext:
    """The state of one rank.  `rank` of `world_size`, with its communicator `comm` (None: a single process)."""

    def __init__(self, rank: int = 0, world_size: int = 1, comm: Any = None):
        self.rank, self.world_size, self.comm = rank, world_size, comm
        self.ground: Any = Kernels()
        self.middle: Any = None             # the dist interpreter
        self.amp: Any = None
        self.events: Any = None
        self.grad_enabled = True
        self.default_dtype = dtypes.float32.np
        self.rng = Generator()
        self.mesh: Any = None
        self.flags: dict[str, Any] = {}
        self.counters: defaultdict[str, int] = defaultdict(int)
        self.lazy_init = False
        self.static_program: Any = None
        self.compose()

    def compose(self) -> None:
        """Build `run` (payloads) and `handler` (handles) out of the layers that are on."""
        run = self.ground.run
        if self.events is not None:
            run = self.events.over(run)
        if self.middle is not None:
            run = self.middle.over(run)
        self.run: Callable = run
        self.direct = self.middle is None and self.events is None and type(self.ground) is Kernels
        handler = _tape(self) if self.grad_enabled and _tape is not None else without_tape(self)
        around = getattr(self.ground, "around", None)
        if around is not None:              # a trace notes in its program which handles want a gradient
            handler = around(handler)
        self.handler: Callable = handler if self.amp is None else self.amp.over(handler)

    def unique_name(self, prefix: str) -> str:
        """`prefix_0`, `prefix_1`, ...: Paddle's `unique_name.generate`."""
        n = self.counters[prefix]
        self.counters[prefix] = n + 1
        return f"{prefix}_{n}"


class Kernels:
    """The ground floor of eager mode: compute now, on arrays."""

    def run(self, row: Any, payloads: Any, attrs: dict) -> Any:
        if row.comm:
            comm = current().comm
            if comm is None:
                raise RuntimeError(f"{row.name}: this rank has no communicator; start ranks with `minipd launch -n N "
                                   "script.py`, or simulate them with minipd.dist.comm.sim.World(N).run(fn)")
            return row.kernel(comm, *payloads, **attrs)
        try:
            out = kernel_of(row, payloads)(*payloads, **attrs)
        except Exception as error:
            explain(row, payloads, attrs, error)
            raise
        if type(out) is np.ndarray or row.multi:
            return out
        return np.asarray(out)              # numpy turns 0-D results into scalars

    def key(self, rng: Generator) -> np.ndarray:
        """The key of the next random draw."""
        return rng.next_key()


def explain(row: Any, payloads: Any, attrs: dict, error: Exception) -> None:
    """A kernel has failed.  Kernels take for granted what the shape rule demands, and no eager call pays for asking it;
    so it is asked now, and what it raises says better what is wrong.  Else the error is told which call it belongs to.
    """
    try:
        row.infer_meta(*payloads, **attrs)
    except Exception as better:
        raise better from None
    called = ", ".join(describe(p) for p in payloads) + "".join(f", {k}={v}" for k, v in attrs.items())
    error.add_note(f"in {row.name}({called})")


class MetaOnly:
    """The ground floor that reckons shapes and dtypes and computes nothing."""

    def run(self, row: Any, payloads: Any, attrs: dict) -> Any:
        return row.infer_meta(*payloads, **attrs)

    def key(self, rng: Generator) -> Meta:
        """The key of the next random draw, which nobody reads."""
        return Meta((2,), dtypes.int64.np)


def kernel_of(row: Any, payloads: Any) -> Callable:
    """The row's kernel for the dtype of its key operand (of the first array, if a Python number stands there)."""
    try:
        return row.kernels[dtypes.CODE_OF_NUM[payloads[row.key].dtype.num]]
    except (AttributeError, IndexError):
        for p in payloads:
            if isinstance(p, np.ndarray):
                return row.kernels[dtypes.CODE_OF_NUM[p.dtype.num]]
        return row.kernel


def without_tape(ctx: RankContext) -> Callable:
    """The handler when no gradient is recorded: unwrap, run, wrap."""
    run = ctx.run

    def handler(row: Any, inputs: Any, attrs: dict) -> Any:
        out = run(row, [x.payload if isinstance(x, Tensor) else x for x in inputs], attrs)
        if row.multi:
            outs = tuple(map(Tensor, out))
            if row.view:
                for o in outs:
                    share_view(inputs[0], o, row, attrs)
            return outs
        t = Tensor(out)
        if row.view:
            share_view(inputs[0], t, row, attrs)
        return t
    return handler


def install_tape(factory: Callable[[RankContext], Callable]) -> None:
    """The autograd floor plugs its tape in: `factory(context)` returns the handler that records."""
    global _tape
    _tape = factory
    current().compose()


class using:
    """`with using(ground=..., middle=..., grad=..., amp=..., events=...)`: other layers, for a while.

    Layers that are not named stay as they are.  Re-entrant and exception-safe; also restores on generators' close.
    """

    def __init__(self, ground: Any = _KEEP, middle: Any = _KEEP, grad: Any = _KEEP, amp: Any = _KEEP,
                 events: Any = _KEEP):
        self.wanted = {k: v for k, v in (("ground", ground), ("middle", middle), ("grad_enabled", grad), ("amp", amp),
                                         ("events", events)) if v is not _KEEP}

    def __enter__(self) -> RankContext:
        self.ctx = ctx = current()
        self.before = {k: getattr(ctx, k) for k in self.wanted}
        self._set(self.wanted)
        return ctx

    def __exit__(self, *exc: object) -> None:
        self._set(self.before)

    def _set(self, layers: dict) -> None:
        for k, v in layers.items():
            setattr(self.ctx, k, v)
        self.ctx.compose()


set_root(RankContext())
