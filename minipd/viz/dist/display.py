"""A mesh shows its ranks, a distributed tensor its pieces, a reshard's plan its steps."""

from __future__ import annotations

from minipd.dist.mesh import ProcessMesh
from minipd.dist.reshard.plan import Plan
from minipd.dist.value import DistValue
from minipd.framework.dim import symbol
from minipd.framework.tensor import Tensor, attach
from minipd.viz.shown import shown_by

__all__: list[str] = []

#: the dimensions of a tensor A of which a plan knows only how many it has
LETTERS = "IJKLMNOPQRS"


def _tensor(self: Tensor) -> str | None:
    return shown_by("tensor")(self) if isinstance(self.payload, DistValue) else None     # None: its text is enough


def _plan(self: Plan) -> str:
    from minipd import viz
    shape = [symbol(LETTERS[d]) if d < len(LETTERS) else symbol(f"D{d}") for d in range(self.ndim)]
    return viz.reshard(shape, self.mesh, self.src, self.dst, None, "A").svg


ProcessMesh._repr_svg_ = shown_by("mesh")               # type: ignore[attr-defined]
DistValue._repr_svg_ = shown_by("tensor")               # type: ignore[attr-defined]
attach(_repr_svg_=_tensor)
Plan._repr_svg_ = _plan                                 # type: ignore[attr-defined]
