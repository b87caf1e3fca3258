"""A call as the other ranks see it: the part that must be equal on every member of the group.

It is a plain tuple, `(kind, shape, dtype, *parameters)`, because one is built for every collective, and comparing
tuples is all that a check needs.  In the shape, a dimension that may differ between the members is None.  `barrier`
and `all_gather_object` have neither shape nor dtype.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import numpy as np

from minipd.framework.meta import Meta, describe

__all__: list[str] = []

#: (kind, shape or None, dtype or None, *parameters)
Call = tuple

#: The names of the parameters, in the order in which a call holds them.
PARAMETERS = {
    "all_reduce": ("op",),
    "all_gather": ("axis", "sizes"),
    "reduce_scatter": ("axis", "sizes", "op"),
    "all_to_all": ("split_axis", "concat_axis", "split_sizes", "concat_sizes"),
    "broadcast": ("root",),
    "all_gather_object": (),
    "barrier": (),
}

_COMM, _PACKAGE = (str(Path(__file__).parents[i]) for i in (0, 2))
_MODELS = str(Path(_PACKAGE, "models"))


def array_text(shape: tuple, dtype: np.dtype) -> str:
    """`f32[4, ?]`: dtype and shape in the house's notation, `?` for what may differ between ranks.

    >>> array_text((4, None), np.dtype("float32"))
    'f32[4, ?]'
    """
    return describe(Meta(tuple("?" if n is None else n for n in shape), dtype))


def call_text(call: Call, number: int | None = None) -> str:
    """A call, with its number if known: how many collectives the group had before.

    >>> call_text(("all_reduce", (4,), np.dtype("float32"), "sum"), 17)
    'all_reduce#17(f32[4], op=sum)'
    >>> call_text(("barrier", None, None), 0)
    'barrier#0()'
    """
    kind, shape, dtype, *values = call
    parts = [] if shape is None else [array_text(shape, dtype)]
    parts += [f"{name}={value}" for name, value in zip(PARAMETERS[kind], values, strict=True) if value is not None]
    return f"{kind}{'' if number is None else f'#{number}'}({', '.join(parts)})"


class Made(NamedTuple):
    """A call that a rank has made: of which group, with which number, and where in the user's code."""

    rank: int
    group: tuple[int, ...]
    number: int
    call: Call
    site: str

    def __str__(self) -> str:
        return f"rank {self.rank} called {call_text(self.call, self.number)} of the group {self.group}, at {self.site}"

    def same(self, other: Made) -> bool:
        """Whether these two belong together."""
        return self[1:4] == other[1:4]


def mismatch_text(made: Sequence[Made]) -> str:
    """What a MismatchError says of calls that should be the same and are not.

    >>> f32 = np.dtype("float32")
    >>> print(mismatch_text([Made(0, (0, 1), 17, ("all_reduce", (3,), f32, "sum"), "a.py:1 in f"),
    ...                      Made(1, (0, 1), 17, ("all_reduce", (4,), f32, "max"), "a.py:1 in f")]))
    the members of a group must make the same calls in the same order:
      rank 0 called all_reduce#17(f32[3], op=sum) of the group (0, 1), at a.py:1 in f
      rank 1 called all_reduce#17(f32[4], op=max) of the group (0, 1), at a.py:1 in f
    They differ in shape: (3,) and (4,); op: sum and max.  (#n: this group had n collectives before.)
    """
    first = made[0]
    other = next(m for m in made if not m.same(first))
    names = ["group", "number", "kind"]
    if first.call[0] == other.call[0]:
        names += ["shape", "dtype", *PARAMETERS[first.call[0]]]
    pairs = zip(names, (first.group, first.number, *first.call), (other.group, other.number, *other.call), strict=False)
    differences = "; ".join(f"{name}: {a} and {b}" for name, a, b in pairs if a != b)
    return "\n".join(["the members of a group must make the same calls in the same order:", *(f"  {m}" for m in made),
                      f"They differ in {differences}.  (#n: this group had n collectives before.)"])


def call_site(frame: FrameType | None) -> str:
    """Where the user's code made a call, as `file:line in function`.

    That is the innermost frame outside of this package, or in its models, which are written as a user would; where
    there is none, the innermost that is not of communication.
    """
    place = "an unknown line"
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith(_COMM):
            here = f"{Path(path).name}:{frame.f_lineno} in {frame.f_code.co_name}"
            if path.startswith(_MODELS) or not path.startswith(_PACKAGE):
                return here
            place = here if place == "an unknown line" else place
        frame = frame.f_back
    return place


def caller_site() -> str:
    """`call_site` of whoever is running now."""
    return call_site(sys._getframe(1))
