"""What `cinn.py` measures: formulas that have no kernel of their own, in the operators of a framework.

Forward runs without gradients; forward and backward is the gradient of a loss, or of an output with a given gradient.
AdamW updates its arrays where they are.  The frameworks themselves: `cinn_peers.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cinn_peers import FRAMEWORKS

#: case -> (formula, shapes of its arrays, numbers that it is given besides)
LABELS, ANGLES = "labels", "angles"
FORMULAS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "RMSNorm 4096x4096": ("rms_norm", ((4096, 4096), (4096,))),
    "RMSNorm 2048x512": ("rms_norm", ((2048, 512), (512,))),
    "softmax 2048x4096": ("softmax", ((2048, 4096),)),
    "cross entropy 2048x4096": ("cross_entropy", ((2048, 4096), LABELS)),
    "cross entropy 2048x32000": ("cross_entropy", ((2048, 32000), LABELS)),
    "SwiGLU 2048x768": ("swiglu", ((2048, 768), (2048, 768))),
    "RoPE 8x256x6x48": ("rope", ((8, 256, 6, 48), ANGLES)),
    "AdamW 15 M": ("adamw", (15_000_000,)),
    "AdamW 100 M": ("adamw", (100_000_000,)),
}
FORWARD, BOTH = "forward", "forward and backward"


class Case:
    """One formula, one way: arrays and compiled function are made when it is first called, and those of the case before
    are let go."""

    last: Case | None = None

    def __init__(self, make: Callable[[], Callable[[], object]]):
        self.make = make
        self.call: Callable[[], object] | None = None

    def __call__(self) -> None:
        if self.call is None:
            if Case.last is not None:
                Case.last.call = None
            Case.last, self.call = self, self.make()
        self.call()


def ready(own: Any, name: str, way: str) -> Callable[[], object]:
    """The call that is measured."""
    formula, (shape, *others) = FORMULAS[name]
    if formula == "adamw":
        return own.adamw(shape)
    floats = [own.array(shape), *(own.array(s) for s in others if s not in (LABELS, ANGLES))]
    fixed = [own.labels(*shape) for s in others if s == LABELS]
    fixed += [x for s in others if s == ANGLES for x in own.angles(shape[1], shape[-1])]
    function = getattr(own, formula)
    if way == FORWARD:
        return own.forward(function, floats, fixed)
    return own.both(function, floats, fixed, None if formula == "cross_entropy" else own.array(shape))


def cases(contender: str) -> dict[str, Callable[[], None]]:
    """contender: one of `cinn_peers.FRAMEWORKS`."""
    own = FRAMEWORKS[contender]()
    wanted = [(name, way) for name, (formula, _) in FORMULAS.items() if getattr(own, formula, None)
              for way in ((FORWARD,) if formula == "adamw" else own.ways)]
    return {f"{name}, {way}": Case(lambda name=name, way=way: ready(own, name, way)) for name, way in wanted}
