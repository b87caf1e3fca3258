"""One function of distributed tensors, run eagerly on simulated ranks and as the programs of the same ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minipd.dist.api import shard_tensor
from minipd.dist.placements import Placement
from minipd.framework.tensor import Tensor
from minipd.ir.traced import trace
from minipd.static import InputSpec
from tests.dist.programs import run_on
from tests.dist.ranks import on_mesh

Given = tuple[Any, Sequence[Placement]]     # a value and how it is placed


def eager(mesh: str, function: Callable, *given: Given) -> list[list[np.ndarray]]:
    """What `function` of the tensors returns, whole: by rank."""
    def run(grid: Any) -> list[np.ndarray]:
        out = function(*(shard_tensor(np.asarray(a), grid, p, stop_gradient=np.asarray(a).dtype.kind != "f")
                         for a, p in given))
        return [t.numpy() for t in ([out] if isinstance(out, Tensor) else out)]
    return on_mesh(mesh, run)


def static(mesh: str, function: Callable, *given: Given) -> list[np.ndarray]:
    """The same from the programs of the ranks, put together."""
    arrays = {f"x{i}": np.asarray(a) for i, (a, _) in enumerate(given)}
    specs = [InputSpec(a.shape, str(a.dtype), n, stop_gradient=a.dtype.kind != "f") for n, a in arrays.items()]
    traced = trace(function, *specs)
    arrays |= {n: np.asarray(a) for n, a in traced.captures.items()}        # constants, which every rank has
    ran = run_on(mesh, traced.program, {f"x{i}": p for i, (_, p) in enumerate(given)}, arrays)
    return list(ran.outputs.values())


def both(mesh: str, function: Callable, *given: Given) -> list[np.ndarray]:
    """The results, the same ones on every rank and in both ways."""
    first, *others = eager(mesh, function, *given)
    for results in (*others, static(mesh, function, *given)):
        for a, b in zip(first, results, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-14)
    return first
