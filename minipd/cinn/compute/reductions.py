"""Rows that fold dimensions.  (`mean` decomposes into a sum and a division.)"""

from __future__ import annotations

from typing import Any

from minipd.cinn.compute.table import Dims, reduction
from minipd.framework.dim import same

__all__: list[str] = []


@reduction("sum", "add")
@reduction("max", "max")
@reduction("min", "min")
@reduction("prod", "mul")
@reduction("any", "or")
@reduction("all", "and")
def over_axes(attrs: dict[str, Any], x: tuple, out: tuple) -> Dims:
    axis = attrs["axis"]
    if attrs.get("keepdim"):
        return tuple(None if i in axis else i for i in range(len(x)))
    return tuple(i for i in range(len(x)) if i not in axis)


@reduction("argmax", "argmax")
@reduction("argmin", "argmin")
def along_axis(attrs: dict[str, Any], x: tuple, out: tuple) -> Dims:
    return over_axes({**attrs, "axis": (attrs["axis"],)}, x, out)


@reduction("reduce_as", "add")
def down_to(attrs: dict[str, Any], x: tuple, out: tuple) -> Dims:
    lead = len(x) - len(out)
    return tuple(lead + i if same(x[lead + i], n) else None for i, n in enumerate(out))
