"""IRSchedule: a function in block form, and the primitives that transform it.

Loops and blocks go by their names, which are unique in a function.  Each primitive checks that the function keeps its
meaning, raises ScheduleError if it can't tell, and is recorded in `trace`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minipd.cinn.ir.ast import For, Function, ScheduleBlock
from minipd.cinn.schedule.errors import ScheduleError
from minipd.cinn.schedule.nests import Cache, Nests, inside
from minipd.cinn.schedule.primitives.cache import cache_read, cache_write
from minipd.cinn.schedule.primitives.compute_at import compute_at, reverse_compute_at
from minipd.cinn.schedule.primitives.inline import compute_inline, reverse_compute_inline
from minipd.cinn.schedule.primitives.kinds import bind, check_kinds, parallel, unroll, vectorize
from minipd.cinn.schedule.primitives.loops import add_unit_loop, fuse, reorder, split, split_evenly
from minipd.cinn.schedule.primitives.marks import annotate, sync_threads, unannotate
from minipd.cinn.schedule.primitives.rfactor import rfactor
from minipd.cinn.schedule.primitives.simple_compute_at import simple_compute_at
from minipd.cinn.schedule.primitives.storage import set_buffer
from minipd.cinn.schedule.trace import Step, Trace

__all__ = ["PRIMITIVES", "IRSchedule"]

Primitive = Callable[..., tuple[Function, Any]]
PRIMITIVES: dict[str, Primitive] = {p.__name__: p for p in (
    add_unit_loop, annotate, bind, cache_read, cache_write, compute_at, compute_inline, fuse, parallel, reorder,
    reverse_compute_at, reverse_compute_inline, rfactor, set_buffer, simple_compute_at, split, split_evenly,
    sync_threads, unannotate, unroll, vectorize)}


class IRSchedule:
    """A function that is being scheduled.  A method for each primitive; what it does, and needs, is said where the
    primitive is (`PRIMITIVES`), with loops before and after.  All raise ScheduleError, and then change nothing.

    >>> import numpy as np
    >>> from minipd.cinn.ir.ast import Dim, For, IterVar, Load, Param, ScheduleBlock, Store, Var
    >>> f32, n, vi = np.dtype("float32"), Dim("x", 0), Var("vi")
    >>> copy = ScheduleBlock("y", (IterVar("vi", n),), (Var("i_y"),), Store("y", (vi,), Load("x", (vi,), f32)))
    >>> s = IRSchedule(Function("copy", (Param("x", f32, 1), Param("y", f32, 1, True)), For("i_y", n, copy)))
    >>> outer, inner = s.split("i_y", [-1, 16])
    >>> s.parallel(outer)
    >>> s.vectorize(inner)
    >>> print(s.trace)
    s.split('i_y', [-1, 16])
    s.parallel('i_y_0')
    s.vectorize('i_y_1')
    >>> s.get_loops("y")
    ['i_y_0', 'i_y_1']
    """

    def __init__(self, function: Function) -> None:
        self._cache: Cache = {}
        self._nests = Nests(function, self._cache)
        self._steps: list[Step] = []

    @property
    def function(self) -> Function:
        """The function as it is by now."""
        return self._nests.function

    @property
    def trace(self) -> Trace:
        """What was done."""
        return Trace(tuple(self._steps))

    def apply(self, primitive: str, *args: Any) -> Any:
        """A primitive by its name.   Raises: ScheduleError."""
        if primitive not in PRIMITIVES:
            raise ScheduleError(f"no primitive {primitive!r}; there are {', '.join(PRIMITIVES)}")
        function, made = PRIMITIVES[primitive](self._nests, *args)
        nests = Nests(function, self._cache)
        check_kinds(nests, f"{primitive}({', '.join(map(str, args))})")
        self._nests = nests
        outputs = () if made is None else (made,) if isinstance(made, str) else tuple(made)
        self._steps.append(Step(primitive, tuple(tuple(a) if isinstance(a, list) else a for a in args), outputs))
        return made

    # -------------------------------------------------------------------------------------------------- look-ups
    def get_all_blocks(self) -> list[str]:
        """The blocks, in order."""
        return list(self._nests.blocks)

    def get_block(self, name: str) -> Any:
        """The block of that name."""
        return self._nests.block(name, f"get_block({name})")

    def get_loops(self, block: str) -> list[str]:
        """The loops around a block, from outside in."""
        self._nests.block(block, f"get_loops({block})")
        return list(self._nests.loops_of(block))

    def get_root_block(self) -> list[str]:
        """What stands in the block around everything: the outermost loop of each nest, or its block."""
        found = (x for x in self._nests.nests if isinstance(x, For | ScheduleBlock))
        return [x.var if isinstance(x, For) else x.name for x in found]

    def get_child_blocks(self, loop: str) -> list[str]:
        """The blocks in a loop, in order."""
        return [b.name for b in inside(self._nests.loop(loop, f"get_child_blocks({loop})"))]

    # ----------------------------------------------------------------------------------------------------- loops
    def split(self, loop: str, factors: Sequence[int]) -> list[str]:
        return self.apply("split", loop, tuple(factors))  # type: ignore[no-any-return]

    def split_evenly(self, loop: str, parts: int, at_least: int = 1, at_most: int | None = None) -> list[str]:
        return self.apply("split_evenly", loop, parts, at_least, at_most)  # type: ignore[no-any-return]

    def fuse(self, loops: Sequence[str]) -> str:
        return self.apply("fuse", tuple(loops))  # type: ignore[no-any-return]

    def reorder(self, loops: Sequence[str]) -> None:
        self.apply("reorder", tuple(loops))

    def add_unit_loop(self, block: str) -> str:
        return self.apply("add_unit_loop", block)  # type: ignore[no-any-return]

    def parallel(self, loop: str) -> None:
        self.apply("parallel", loop)

    def vectorize(self, loop: str, factor: int | None = None) -> list[str] | None:
        return self.apply("vectorize", loop, *([] if factor is None else [factor]))  # type: ignore[no-any-return]

    def unroll(self, loop: str) -> None:
        self.apply("unroll", loop)

    def bind(self, loop: str, axis: str) -> None:
        self.apply("bind", loop, axis)

    # ---------------------------------------------------------------------------------------------------- blocks
    def compute_inline(self, block: str) -> None:
        self.apply("compute_inline", block)

    def reverse_compute_inline(self, block: str) -> None:
        self.apply("reverse_compute_inline", block)

    def simple_compute_at(self, block: str, loop: str) -> None:
        self.apply("simple_compute_at", block, loop)

    def compute_at(self, block: str, loop: str) -> None:
        self.apply("compute_at", block, loop)

    def reverse_compute_at(self, block: str, loop: str) -> None:
        self.apply("reverse_compute_at", block, loop)

    def cache_read(self, block: str, buffer: str, memory: str) -> str:
        return self.apply("cache_read", block, buffer, memory)  # type: ignore[no-any-return]

    def cache_write(self, block: str, memory: str) -> str:
        return self.apply("cache_write", block, memory)  # type: ignore[no-any-return]

    def annotate(self, name: str, key: str, value: Any) -> None:
        self.apply("annotate", name, key, value)

    def unannotate(self, name: str, key: str) -> None:
        self.apply("unannotate", name, key)

    def sync_threads(self, block: str, after: bool = True) -> None:
        self.apply("sync_threads", block, after)

    def rfactor(self, loop: str) -> str:
        return self.apply("rfactor", loop)  # type: ignore[no-any-return]

    def set_buffer(self, block: str, place: str) -> None:
        self.apply("set_buffer", block, place)
