"""A mesh shows its ranks, a distributed tensor its pieces."""

from __future__ import annotations

from minipd.dist.mesh import ProcessMesh
from minipd.dist.value import DistValue
from minipd.framework.tensor import Tensor
from minipd.viz.shown import shown_by

__all__: list[str] = []


def _tensor(self: Tensor) -> str | None:
    return shown_by("tensor")(self) if isinstance(self.payload, DistValue) else None     # None: its text is enough


ProcessMesh._repr_svg_ = shown_by("mesh")               # type: ignore[attr-defined]
DistValue._repr_svg_ = shown_by("tensor")               # type: ignore[attr-defined]
Tensor._repr_svg_ = _tensor                             # type: ignore[attr-defined]
