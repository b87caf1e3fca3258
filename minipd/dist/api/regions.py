"""Code that sees what its rank holds, between code that sees global values: `LocalLayer` and `local_map`.

In a program (`dist.to_static`, `paddle.jit.to_static`) it stands between `dist_op.dtensor_to_local` and
`dist_op.dtensor_from_local`, with this rank's shapes: such a program is the rank's own from the trace on.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from minipd.dist.api.local import dtensor_from_local, dtensor_to_local, is_followed, refuse_unplaced
from minipd.dist.api.tensors import reshard
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement, check_placements
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.ir.structure import mapped
from minipd.nn.layer import Layer

__all__ = ["LocalLayer", "local_map"]

Attr = tuple[ProcessMesh, Sequence[Placement]]


class LocalLayer(Layer):
    """A layer whose `forward` is given what this rank holds, and whose results are parts of global values.

    out_dist_attrs: for each result, (mesh, placements): what global value the ranks' results are parts of.
    grad_dist_attrs: for each input, (mesh, placements) of its gradient, of which the ranks' gradients are parts; None
        for those of the input.  An input that all ranks have, and use for something else each, has a gradient that is
        Partial().

    Raises: ValueError for another number of inputs or results.

    >>> from minipd.dist.api.tensors import shard_tensor
    >>> from minipd.dist.placements import Partial, Shard
    >>> from minipd.dist.simulate import simulate
    >>> class Largest(LocalLayer):
    ...     def forward(self, x):
    ...         return x.max()
    >>> def run(mesh):
    ...     largest = Largest([(mesh, [Partial("sum")])], [None])       # the sum of every rank's largest element
    ...     return largest(shard_tensor([1.0, 5.0, 2.0, 3.0], mesh, [Shard(0)])).item()
    >>> simulate("x=2", run)
    [8.0, 8.0]
    """

    def __init__(self, out_dist_attrs: list[Attr], grad_dist_attrs: list[Attr | None]):
        super().__init__()
        self.out_dist_attrs = _attrs(out_dist_attrs, "out_dist_attrs", ())
        self.grad_dist_attrs = _attrs(grad_dist_attrs, "grad_dist_attrs", (type(None),))

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        who = type(self).__name__
        for x in inputs:
            refuse_unplaced(x, who)
        if len(inputs) != len(self.grad_dist_attrs):
            raise ValueError(f"{who}: expected {len(self.grad_dist_attrs)} inputs, one for each of grad_dist_attrs, "
                             f"got {len(inputs)}")
        local = [dtensor_to_local(x, *attr or ()) if _is_dist(x) else x
                 for x, attr in zip(inputs, self.grad_dist_attrs, strict=True)]
        out = super().__call__(*local, **kwargs)
        leaves = _leaves(out)
        if len(leaves) != len(self.out_dist_attrs):
            raise ValueError(f"{who}: expected {len(self.out_dist_attrs)} results, one for each of out_dist_attrs, "
                             f"got {len(leaves)}")
        return _rebuilt(out, (dtensor_from_local(x, *attr)
                              for x, attr in zip(leaves, self.out_dist_attrs, strict=True)))


def _attrs(given: Any, name: str, also: tuple) -> list:
    for attr in given:
        pair = isinstance(attr, (tuple, list)) and len(attr) == 2 and isinstance(attr[0], ProcessMesh)
        if not pair and not isinstance(attr, also):
            raise TypeError(f"LocalLayer: expected {name} to be a list of (ProcessMesh, placements), got {attr!r}")
    return list(given)


def local_map(func: Callable, out_placements: list, in_placements: list | None = None,
              process_mesh: ProcessMesh | None = None, reshard_inputs: bool = False) -> Callable:
    """`func` for distributed tensors: it is given what this rank holds, and its results are parts of global values.

    out_placements: for each result the placements of the global value, None for what is no tensor.  in_placements: for
    each argument those that it must have, None for any; lists, tuples and dicts count by their members.  process_mesh:
    that of the arguments unless given.  reshard_inputs: bring arguments to their in_placements, instead of refusing
    them.
    The gradient of an argument is placed as the argument is; `LocalLayer` can say otherwise.
    Raises: ValueError for numbers of arguments or results that do not fit, for placements that an argument does not
    have, and for a mesh that neither is given nor can be seen.

    >>> from minipd.dist.api.tensors import shard_tensor
    >>> from minipd.dist.placements import Partial, Shard
    >>> from minipd.dist.simulate import simulate
    >>> largest = local_map(lambda x: x.max(), [[Partial("max")]], [[Shard(0)]])
    >>> simulate("x=2", lambda mesh: largest(shard_tensor([1.0, 5.0, 2.0], mesh, [Shard(0)])).item())
    [5.0, 5.0]
    """
    return functools.partial(_mapped, func, out_placements, in_placements, process_mesh, reshard_inputs)


def _mapped(func: Callable, out_placements: list, in_placements: list | None, mesh: ProcessMesh | None,
            reshard_inputs: bool, /, *args: Any, **kwargs: Any) -> Any:
    given = _leaves(args)
    for x in given:
        refuse_unplaced(x, "local_map")
    if in_placements is not None and len(in_placements) != len(given):
        raise ValueError(f"local_map: expected {len(in_placements)} arguments, one for each of in_placements, got "
                         f"{len(given)}")
    local = []
    for i, x in enumerate(given):
        if not _is_dist(x):
            local.append(x)
            continue
        mesh = x.process_mesh if mesh is None else mesh
        wanted = None if in_placements is None else in_placements[i]
        local.append(dtensor_to_local(x if wanted is None else _placed(i, x, mesh, wanted, reshard_inputs)))
    out = func(*_rebuilt(args, local), **kwargs)
    leaves = _leaves(out)
    if len(leaves) != len(out_placements):
        raise ValueError(f"local_map: expected {len(out_placements)} results, one for each of out_placements, got "
                         f"{len(leaves)}")
    return _rebuilt(out, (_result(i, x, mesh, placed)
                          for i, (x, placed) in enumerate(zip(leaves, out_placements, strict=True))))


def _placed(i: int, x: Tensor, mesh: ProcessMesh, wanted: Sequence[Placement], may: bool) -> Tensor:
    placements = check_placements(wanted, mesh, x.ndim, f"local_map: in_placements[{i}]")
    if x.process_mesh == mesh and x.payload.placements == placements:
        return x
    if not may:
        raise ValueError(f"local_map: expected argument {i} with the placements {list(placements)} on {mesh.text()}, "
                         f"got {x.payload!r} on {x.payload.mesh.text()}; pass reshard_inputs=True to have it changed")
    return reshard(x, mesh, placements)


def _result(i: int, x: Any, mesh: ProcessMesh | None, placements: Any) -> Any:
    if placements is None:
        return x
    if not isinstance(x, Tensor) or _is_dist(x) and not is_followed(x):
        got = describe(x.payload) if isinstance(x, Tensor) else repr(x)
        raise ValueError(f"local_map: expected result {i} to be an ordinary tensor, to be placed as {placements}, got "
                         f"{got}; None in out_placements leaves a result as it is")
    if mesh is None:
        raise ValueError(f"local_map: expected a mesh for the placements {placements} of result {i}, got no "
                         "distributed argument and no process_mesh; pass process_mesh")
    return dtensor_from_local(x, mesh, placements)


def _is_dist(x: Any) -> bool:
    return isinstance(x, Tensor) and hasattr(x.payload, "placements")


def _leaves(tree: Any) -> list:
    """What is in nested lists, tuples and dicts, in order."""
    found: list = []
    mapped(tree, found.append)
    return found


def _rebuilt(tree: Any, leaves: Iterable) -> Any:
    """The nested structure with other leaves."""
    others = iter(leaves)
    return mapped(tree, lambda _: next(others))
