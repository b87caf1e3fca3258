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

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.constraints import Asking, Constraints
from minipd.framework.environment import is_started, rank_and_size
from minipd.framework.flags import flag_in
from minipd.framework.meta import Meta, describe
from minipd.framework.nan_inf import checked
from minipd.framework.printing import Options
from minipd.framework.random import Generator
from minipd.framework.rank import current, set_root
from minipd.framework.room import require_room
from minipd.framework.tensor import Tensor
from minipd.framework.views import share_view

__all__: list[str] = []

#: makes the handler that records, over an interpreter function; the autograd floor puts its tape here
_tape: Callable[[Callable, Any], Callable] | None = None

#: joins the ranks that a launcher started with this one, and returns its communicator; the dist floor puts it here
_join: Callable[[], Any] | None = None

_CODE_OF_NUM, ndarray, new = dtypes.CODE_OF_NUM, np.ndarray, object.__new__
_KEEP = object()


class RankContext:
    """The state of one rank.  `rank` of `world_size`, with its communicator `comm` (None: a single process, or a rank
    that has not joined the others yet: see `join`)."""

    def __init__(self, rank: int = 0, world_size: int = 1, comm: Any = None):
        self.rank, self.world_size, self.comm = rank, world_size, comm
        self.ground: Ground = Kernels()
        self.middle: Any = None             # the dist interpreter
        self.amp: Any = None
        self.events: Any = None
        self.constraints: Constraints | None = None     # where a trace records what it assumes of open sizes
        self.asking: Asking | None = None               # the user code in force that asks about them
        self.saved_hooks: Any = None        # what the tape saves goes through them (`autograd.saved_hooks`)
        self.grad_enabled = True
        self.default_dtype = dtypes.float32.np
        self.rng = Generator()
        self.mesh: Any = None
        self.mesh_numbers: dict[Any, int] = {}          # of meshes that were asked for one (`ProcessMesh.unique_id`)
        self.groups: dict[int, Any] = {}    # of ranks that communicate, by number (`dist.group`)
        self.tasks: list[Any] = []          # communication that has begun, and that nobody has waited for yet
        self.saves: list[Any] = []          # checkpoints that are still being written (`dist.checkpoint`)
        self.gloo: Any = None               # processes that meet without a launcher (`dist.gloo`)
        self.flags: dict[str, Any] = {}
        self.counters: defaultdict[str, int] = defaultdict(int)
        self.warned: set[str] = set()       # operators of which this rank has been told that they have no SPMD rule
        self.prim: dict[str, Any] = {}      # Paddle's switches for decomposition (`decomposition.prim`)
        self.lazy_init = False
        self.printing = Options()
        self.static_mode = False            # what is called is written into a program (`framework.mode`)
        self.programs: Any = None           # of static mode (`static.program`)
        self.global_initializers: tuple = (None, None)      # of weights, of biases: instead of what layers choose
        self.compose()

    def branch(self) -> RankContext:
        """The same rank in another thread: shared state, but eager, with a stack and a grad mode of its own."""
        other = copy.copy(self)
        other.ground, other.middle, other.amp, other.events, other.grad_enabled = Kernels(), None, None, None, True
        other.saved_hooks = other.constraints = other.asking = None
        other.static_mode, other.programs = False, self.programs and self.programs.branch()
        other.compose()
        return other

    def compose(self) -> None:
        """Build `run` (payloads) and `handler` (handles) out of the layers that are on.

        Two handlers are built, one that records and one that does not: switching between them is an assignment.
        """
        run = self.ground.run
        checks = flag_in(self.flags, "FLAGS_check_nan_inf")
        #: somebody looks at what operators compute
        self.watched = checks or self.events is not None
        if checks:
            run = checked(run, flag_in(self.flags, "FLAGS_check_nan_inf_level") > 0)
        if self.events is not None:
            run = self.events.over(run)
        if self.middle is not None:
            run = self.middle.over(run)
        self.run: Callable = run
        #: nothing but kernels: no layer wants to see an operator's call
        self.is_plain = run == self.ground.run and isinstance(self.ground, Kernels) and self.amp is None
        handlers = [without_tape(run), without_tape(run) if _tape is None else _tape(run, self.saved_hooks)]
        handlers = [self.ground.around(handler) for handler in handlers]
        if self.amp is not None:
            handlers = [self.amp.over(handler) for handler in handlers]
        self.handlers: list[Callable] = handlers
        self.set_grad_enabled(self.grad_enabled)

    def join(self) -> Any:
        """This rank's communicator; None in a process alone.  One that a launcher started joins the others now, if it
        has not yet."""
        return _join() if self.comm is None and self.world_size > 1 and _join is not None else self.comm

    def layers(self, names: Iterable[str]) -> dict[str, Any]:
        """What is on now, by name."""
        return {name: getattr(self, name) for name in names}

    def switch(self, layers: dict[str, Any]) -> None:
        """These instead of those that are on; others stay."""
        for name, layer in layers.items():
            setattr(self, name, layer)
        if layers.keys() - {"grad_enabled"}:
            self.compose()
        else:
            self.set_grad_enabled(self.grad_enabled)

    def set_grad_enabled(self, on: bool) -> None:
        """Record operators from now on, or not."""
        self.grad_enabled = on
        self.handler: Callable = self.handlers[on]

    def unique_name(self, prefix: str) -> str:
        """`prefix_0`, `prefix_1`, ...: Paddle's `unique_name.generate`."""
        n = self.counters[prefix]
        self.counters[prefix] = n + 1
        return f"{prefix}_{n}"


class Ground:
    """What stands below all layers: it runs a call of a row on payloads.  Most take no notice of what else it is told.

    lazy: it notes calls, and computes them later.  spells: it wants to know how attributes were written.  layers: what
    it is told of the layers that are being called, if it wants to know (`enter(name)`, `leave()`).  whole: it makes a
    call of a function that is one operator elsewhere (`framework.whole`), if it wants to.
    """

    lazy = False
    spells = True
    layers: Any = None
    whole: Any = None

    def run(self, row: Any, payloads: Any, attrs: dict) -> Any:
        """The result of a call, a payload; a tuple of them for rows with more than one result."""
        raise NotImplementedError

    def key(self, rng: Generator) -> Any:
        """The key of the next random draw."""
        raise NotImplementedError

    def around(self, handler: Callable) -> Callable:
        """The handler with what it does besides: a trace notes in its program which handles want a gradient."""
        return handler

    def rebinding(self, x: Tensor) -> None:
        """A tensor is about to be written in place: its handle will hold another value."""

    def settle(self, asked: str) -> None:
        """Compute what has been noted so far, because of what is asked."""

    def by_tape(self) -> bool:
        """Whether this trace can be differentiated by the tape, which knows hooks and rules that no row has.  Where it
        is asked, it will be."""
        return False

    # ----------------------------------------------------------------------- what lives from run to run of a program
    def parameter_made(self, param: Any) -> None:
        """A parameter has been made, and has no values yet; `param.initialize()` computes them."""
        if not current().lazy_init:
            param.initialize()

    def buffer_made(self, buffer: Tensor) -> None:
        """A layer keeps a tensor from now on."""

    def adopt(self, optimizer: Any, params: Any) -> None:
        """An optimizer is about to update these parameters."""

    def trainable(self) -> Any:
        """The parameters that an optimizer without a list of its own updates."""
        return []


class Kernels(Ground):
    """The ground floor of eager mode: compute now, on arrays."""

    spells = False

    def run(self, row: Any, payloads: Any, attrs: dict) -> Any:
        if payloads and type(key := payloads[row.key]) is ndarray:
            kernel = row.kernels[_CODE_OF_NUM[key.dtype.num]]
        else:                               # a Python number, or no operand at all
            kernel = kernel_of(row, payloads)
        try:
            out = kernel(*payloads, **attrs) if attrs else kernel(*payloads)
        except Exception as error:
            explain(row, payloads, attrs, error)
            raise
        if type(out) is ndarray or row.multi:
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
        metas = row.infer_meta(*payloads, **attrs)
        for meta in metas if row.multi else (metas,):
            require_room(row.name, meta.shape, meta.dtype.itemsize, error)
    except Exception as better:
        raise better from error
    called = [*map(describe, payloads), *(f"{k}={v}" for k, v in attrs.items())]
    error.add_note(f"in {row.name}({', '.join(called)})")


class MetaOnly(Ground):
    """The ground floor that reckons shapes and dtypes and computes nothing."""

    def run(self, row: Any, payloads: Any, attrs: dict) -> Any:
        return row.infer_meta(*payloads, **attrs)

    def key(self, rng: Generator) -> Meta:
        """The key of the next random draw, which nobody reads."""
        return Meta((2,), dtypes.int64.np)


def kernel_of(row: Any, payloads: Any) -> Callable:
    """The row's kernel where a Python number stands for the key operand: that of the first array's dtype, if any."""
    for p in payloads:
        if isinstance(p, np.ndarray):
            return row.kernels[_CODE_OF_NUM[p.dtype.num]]
    return row.kernels[dtypes.float32.code]


def without_tape(run: Callable) -> Callable:
    """The handler when no gradient is recorded: unwrap, run, wrap."""
    def handler(row: Any, inputs: Any, attrs: dict) -> Any:
        payloads: list = []
        for x in inputs:
            payloads.append(x.payload if isinstance(x, Tensor) else x)
        out = run(row, payloads, attrs)
        if row.multi:
            outs = tuple(map(Tensor, out))
            if row.view:
                for o in outs:
                    share_view(inputs[0], o, row, attrs)
            return outs
        t = new(Tensor)                     # Tensor(out), without the frame of its __init__
        t.payload = out
        if row.view:
            share_view(inputs[0], t, row, attrs)
        return t
    return handler


def install_tape(factory: Callable[[Callable, Any], Callable]) -> None:
    """The autograd floor plugs its tape in: `factory(run, hooks)` returns the handler that records, over `run`."""
    global _tape
    _tape = factory
    current().compose()


def install_join(join: Callable[[], Any]) -> None:
    """The dist floor says how a rank joins the others: `join()` returns its communicator."""
    global _join
    _join = join


class using:
    """`with using(ground=..., middle=..., grad=..., amp=..., events=...)`, and so on: other layers, for a while.

    Layers that are not named stay as they are.  Exception-safe, and one object may be entered again inside itself.
    """

    def __init__(self, ground: Any = _KEEP, middle: Any = _KEEP, grad: Any = _KEEP, amp: Any = _KEEP,
                 events: Any = _KEEP, saved_hooks: Any = _KEEP, constraints: Any = _KEEP, asking: Any = _KEEP):
        self.wanted = {k: v for k, v in (("ground", ground), ("middle", middle), ("grad_enabled", grad), ("amp", amp),
                                         ("events", events), ("saved_hooks", saved_hooks),
                                         ("constraints", constraints), ("asking", asking)) if v is not _KEEP}
        self.entered: list[tuple[RankContext, dict]] = []

    def __enter__(self) -> RankContext:
        ctx = current()
        self.entered.append((ctx, ctx.layers(self.wanted)))
        ctx.switch(self.wanted)
        return ctx

    def __exit__(self, *exc: object) -> None:
        ctx, before = self.entered.pop()
        ctx.switch(before)


set_root(RankContext(*(rank_and_size() if is_started() else ())))
