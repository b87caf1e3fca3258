"""The process mesh: ranks arranged in a grid whose axes have names.

A placement says what *one axis* of the mesh does to a tensor, so the mesh is all that separates "data parallel 2 x
tensor parallel 2" from "tensor parallel 4".  Ranks are numbered row-major: the last axis is the innermost, its
neighbours have consecutive ranks.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from minipd.framework.rank import current

__all__ = ["ProcessMesh", "parse_mesh"]


class ProcessMesh:
    """A grid of ranks (Paddle: `paddle.distributed.ProcessMesh`).

    Args:
        mesh: nested list or integer array of ranks; its shape is the mesh's shape.
        dim_names: one name per axis; `d0`, `d1`, ... if not given.
        shape, process_ids: the same as `mesh`, flat (Paddle keeps them for compatibility).

    Raises: ValueError if ranks are not different whole numbers >= 0, or names do not fit the axes.

    Two meshes are equal if they arrange the same ranks in the same shape; names do not matter (as in Paddle).

    >>> mesh = ProcessMesh([[0, 1, 2], [3, 4, 5]], dim_names=["dp", "tp"])
    >>> mesh.shape, mesh.dim_names, mesh.get_dim_size("tp"), mesh.coordinate(5), mesh.group(4, 1)
    ([2, 3], ['dp', 'tp'], 3, (1, 2), (3, 4, 5))
    """

    def __init__(self, mesh: Any = None, dim_names: list[str] | None = None, shape: Sequence[int] | None = None,
                 process_ids: Iterable[int] | None = None):
        if mesh is None:
            if shape is None or process_ids is None:
                raise ValueError("ProcessMesh: expected mesh=[[0, 1], [2, 3]], or both shape and process_ids")
            mesh = np.array(list(process_ids)).reshape(tuple(shape))
        if not isinstance(mesh, list | np.ndarray):
            raise ValueError("ProcessMesh: expected a list or an array of ranks such as [[0, 1], [2, 3]], "
                             f"got {mesh!r}")
        try:
            grid = np.array(mesh)
        except ValueError:                              # rows of different lengths
            grid = np.array(None)
        if grid.dtype.kind not in "iu" or 0 in (grid.size, grid.ndim) or grid.min() < 0 or (
                len(set(grid.flat)) != grid.size):
            raise ValueError(f"ProcessMesh: expected different ranks >= 0 in a full grid, got {mesh!r}")
        if dim_names is None:
            dim_names = [f"d{i}" for i in range(grid.ndim)]
        if not isinstance(dim_names, list) or len(dim_names) != grid.ndim or len(set(dim_names)) != grid.ndim:
            raise ValueError(f"ProcessMesh: expected a list of {grid.ndim} different names for the axes of a mesh "
                             f"{'x'.join(map(str, grid.shape))}, got {dim_names!r}")
        self._grid = grid.astype(np.int64)
        self._grid.flags.writeable = False
        #: the axes' sizes and names as tuples (`shape` and `dim_names` are fresh lists, as in Paddle)
        self.sizes: tuple[int, ...] = grid.shape
        self.names: tuple[str, ...] = tuple(dim_names)
        self._ids: tuple[int, ...] = tuple(self._grid.ravel().tolist())
        self._coordinates = dict(zip(self._ids, np.ndindex(self.sizes), strict=True))
        self._hash = hash((self.sizes, self._ids))

    # ------------------------------------------------------------------------------------------- Paddle's names
    @property
    def mesh(self) -> np.ndarray:
        """The ranks as an (unwritable) array of the mesh's shape."""
        return self._grid

    @property
    def shape(self) -> list[int]:
        return list(self.sizes)

    @property
    def ndim(self) -> int:
        return len(self.sizes)

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return len(self._ids)

    @property
    def dim_names(self) -> list[str]:
        return list(self.names)

    @property
    def process_ids(self) -> list[int]:
        """The ranks, row-major."""
        return list(self._ids)

    def contains(self, process_id: int) -> bool:
        return process_id in self._coordinates

    def empty(self) -> bool:
        return False

    def get_dim_size(self, dim: str | int | None) -> int:
        """The size of an axis, given by name or number; 1 for None."""
        return 1 if dim is None else self.sizes[self.axis(dim)]

    dim_size = get_dim_size

    def get_rank_by_dim_and_process_id(self, dim: str | int | None, process_id: int) -> int:
        """The rank's coordinate along an axis: 0 for None, -1 if the rank is not in the mesh."""
        if process_id not in self._coordinates:
            return -1
        return 0 if dim is None else self._coordinates[process_id][self.axis(dim)]

    @property
    def unique_id(self) -> int:
        """A number of the ranks in their grid: equal meshes, whatever the names of their axes, have the same."""
        numbers = current().mesh_numbers
        return numbers.setdefault((self.sizes, self._ids), len(numbers) + 1)

    def get_mesh_with_dim(self, dim_name: str, index: Any = None) -> ProcessMesh:
        """The mesh with axis `dim_name` moved to the front; with `index`, what is left at that place of it.

        >>> mesh = ProcessMesh([[0, 1, 2], [3, 4, 5]], dim_names=["dp", "tp"])
        >>> mesh.get_mesh_with_dim("tp"), mesh.get_mesh_with_dim("tp", 1)
        (shape [3, 2], process_ids [0, 3, 1, 4, 2, 5], dim_names ['tp', 'dp'], shape [2], process_ids [1, 4], \
dim_names ['dp'])
        """
        axis = self.axis(dim_name)
        order = [axis, *(i for i in range(self.ndim) if i != axis)]
        moved = ProcessMesh(self._grid.transpose(order), [self.names[i] for i in order])
        if index is None:
            return moved
        found = moved[index]
        return ProcessMesh(found.process_ids, [self.names[axis]]) if self.ndim == 1 else found

    def get_submesh_with_dim(self, dim_name: str) -> ProcessMesh | None:
        """This rank's line along an axis, as a mesh of that axis; None, with a warning, if it is not in the mesh.

        >>> ProcessMesh([[0, 1], [2, 3]], dim_names=["dp", "tp"]).get_submesh_with_dim("dp")
        shape [2], process_ids [0, 2], dim_names ['dp']
        """
        axis, rank = self.axis(dim_name), current().rank
        if rank not in self._coordinates:
            warnings.warn(f"get_submesh_with_dim: rank {rank} is not in the mesh {self.text()} of the ranks "
                          f"{self.process_ids}, so there is no line of it along {dim_name}", stacklevel=2)
            return None
        return ProcessMesh(list(self.group(rank, axis)), [self.names[axis]])

    def get_group(self, dim_name: str | None = None) -> Any:
        """The group of the ranks along an axis that this rank belongs to; `dim_name` may be left out for a mesh of one.

        The ranks of the mesh call this.  Raises: ValueError for no such axis, or none given where there are several;
        RuntimeError before `init_parallel_env`.
        """
        from minipd.dist.group import existing, new_group  # groups communicate, and know of meshes
        existing(None, "ProcessMesh.get_group")
        if dim_name is None and self.ndim > 1:
            raise ValueError(f"ProcessMesh.get_group: expected the name of one of the axes {self.dim_names}, got none; "
                             "with several axes a rank belongs to several groups")
        ranks = sorted(self.group(current().rank, 0 if dim_name is None else self.axis(dim_name)))
        return next((g for g in current().groups.values() if g.ranks == ranks), None) or new_group(ranks)

    def __getitem__(self, index: Any) -> ProcessMesh:
        """The sub-mesh that numpy's indexing with slices and whole numbers gives; with a name, `get_submesh_with_dim`.

        Raises: IndexError for a place outside of the mesh, ValueError if nothing is left.
        """
        if isinstance(index, str):
            return self.get_submesh_with_dim(index)         # type: ignore[return-value]    # None off the mesh
        parts = list(index) if isinstance(index, tuple) else [index]
        if Ellipsis in parts:
            at = parts.index(Ellipsis)
            parts[at:at + 1] = [slice(None)] * (self.ndim - len(parts) + 1)
        if not all(isinstance(part, slice | int | np.integer) for part in parts):
            raise TypeError("ProcessMesh: expected whole numbers and slices, one for each axis of "
                            f"{self.text()}, or the name of an axis, got {index!r}")
        picked = self._grid[tuple(parts)]
        kept = [name for name, part in zip(self.names, parts, strict=False) if isinstance(part, slice)]
        if picked.size == 0:
            raise ValueError(f"ProcessMesh: expected a part of {self.text()} with ranks in it, got {index!r}, which "
                             "has none")
        return ProcessMesh(picked, [*kept, *self.names[len(parts):]]) if picked.shape else ProcessMesh([int(picked)])

    # ------------------------------------------------------------------------------------- what the library asks
    def axis(self, dim: str | int) -> int:
        """The number of an axis given by name or number.  ValueError if there is none."""
        if isinstance(dim, str) and dim in self.names:
            return self.names.index(dim)
        if not isinstance(dim, str) and -self.ndim <= dim < self.ndim:
            return dim % self.ndim
        raise ValueError(f"expected an axis of the mesh {self.text()}, got {dim!r}")

    def coordinate(self, rank: int) -> tuple[int, ...]:
        """Where a rank stands, one number per axis.  ValueError if it is not in the mesh."""
        if rank not in self._coordinates:
            raise ValueError(f"expected a rank of the mesh {self.text()}, which has {self.process_ids}; "
                             f"got rank {rank}")
        return self._coordinates[rank]

    def group(self, rank: int, axis: int) -> tuple[int, ...]:
        """The ranks that differ from `rank` only along `axis`, in its order: who talks when that axis communicates.

        >>> ProcessMesh([[3, 1], [0, 2]]).group(2, axis=0)
        (1, 2)
        """
        at = self.coordinate(rank)
        return tuple(self._grid[at[:axis] + (slice(None),) + at[axis + 1:]].tolist())

    def text(self) -> str:
        """`dp=2,tp=3`: what `parse_mesh` reads."""
        return ",".join(f"{name}={size}" for name, size in zip(self.names, self.sizes, strict=True))

    def __eq__(self, other: object) -> bool:
        return self is other or isinstance(other, ProcessMesh) and (self.sizes, self._ids) == (other.sizes, other._ids)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"shape {self.shape}, process_ids {self.process_ids}, dim_names {self.dim_names}"


def parse_axes(text: str) -> dict[str, int]:
    """The axes and sizes that a command line gives, outermost first.

    Raises: ValueError if the text is no list of name=size with different names.

    >>> parse_axes("dp=2,tp=4")
    {'dp': 2, 'tp': 4}
    """
    parts = [re.fullmatch(r"\s*([A-Za-z]\w*)\s*=\s*([1-9]\d*)\s*", part) for part in text.split(",")]
    axes = {p[1]: int(p[2]) for p in parts if p}
    if len(axes) != len(parts):
        raise ValueError(f"mesh: expected axes with their sizes such as dp=2,tp=2, each name once, got {text!r}")
    return axes


def parse_mesh(text: str) -> ProcessMesh:
    """The mesh that a command line describes: axes outermost first, ranks numbered from 0.

    Raises: ValueError if the text is no list of name=size with different names.

    >>> parse_mesh("dp=2,tp=2")
    shape [2, 2], process_ids [0, 1, 2, 3], dim_names ['dp', 'tp']
    """
    axes = parse_axes(text)
    sizes = list(axes.values())
    return ProcessMesh(np.arange(math.prod(sizes)).reshape(sizes), list(axes))
