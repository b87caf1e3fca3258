"""Collectives and messages of objects, which travel pickled: what arrives is a copy."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from minipd.dist.collective.arrays import member, peer, tag_of
from minipd.dist.group import Group, entered, existing
from minipd.dist.joining import current_comm
from minipd.framework.rank import current

__all__ = ["all_gather_object", "broadcast_object_list", "recv_object_list", "scatter_object_list", "send_object_list"]


def all_gather_object(object_list: list[Any], obj: Any, group: Group | None = None) -> None:
    """Each member's object, appended to `object_list` in the order of the group."""
    g = entered(group, "all_gather_object")
    if g is not None:
        object_list.extend(current_comm().all_gather_object(obj, tuple(g.ranks)))


def broadcast_object_list(object_list: list[Any], src: int, group: Group | None = None) -> None:
    """The objects of rank `src`, in place of those in the lists of the other members, which are as long."""
    g = entered(group, "broadcast_object_list")
    if g is None:
        return
    root, ranks = member(src, g, "broadcast_object_list"), tuple(g.ranks)
    texts = [_pickled(obj) for obj in object_list] if current().rank == root else []
    sizes = np.array([t.size for t in texts] or [0] * len(object_list), np.int64)
    sizes = current_comm().broadcast(sizes, root, ranks)
    whole = np.concatenate(texts) if texts else np.empty(sizes.sum(), np.uint8)
    whole = current_comm().broadcast(whole, root, ranks)
    object_list[:] = [_unpickled(part) for part in np.split(whole, np.cumsum(sizes)[:-1])] if len(sizes) else []


def scatter_object_list(out_object_list: list[Any], in_object_list: list[Any] | None = None, src: int = 0,
                        group: Group | None = None) -> None:
    """Rank `src` gives each member its object; `out_object_list` then holds that one and nothing else.

    in_object_list: on `src`, one object for each member; elsewhere it is not looked at.
    """
    g = entered(group, "scatter_object_list")
    if g is None:
        return
    root, ranks = member(src, g, "scatter_object_list"), tuple(g.ranks)
    texts: list[np.ndarray] = []
    if current().rank == root:
        if in_object_list is None or len(in_object_list) != g.nranks:
            raise ValueError(f"scatter_object_list: expected a list of {g.nranks} objects, one for each rank of the "
                             f"group, got {in_object_list if in_object_list is None else len(in_object_list)}")
        texts = [_pickled(obj) for obj in in_object_list]
    sizes = np.array([t.size for t in texts] or [0] * g.nranks, np.int64)
    sizes = current_comm().broadcast(sizes, root, ranks)
    whole = np.concatenate(texts) if texts else np.empty(0, np.uint8)
    coming = tuple(int(sizes[g.rank]) if r == root else 0 for r in ranks)
    mine = current_comm().all_to_all(whole, ranks, 0, 0, tuple(t.size for t in texts) or (0,) * g.nranks, coming)
    out_object_list[:] = [_unpickled(mine)]


def send_object_list(object_list: list[Any], dst: int | None = None, group: Group | None = None,
                     dst_in_group: int | None = None) -> None:
    """Give copies of the objects to rank `dst` (0 if None), or to number `dst_in_group` of the group, which calls
    `recv_object_list` with a list as long."""
    g = _listed(object_list, group, "send_object_list")
    if g is not None:
        other = peer(_rank(dst, dst_in_group, g, "dst", "send_object_list"), g, "send_object_list")
        current_comm().send(_pickled(list(object_list)), other, tag_of(g))


def recv_object_list(object_list: list[Any], src: int | None = None, group: Group | None = None,
                     src_in_group: int | None = None) -> None:
    """The objects that rank `src` (0 if None), or number `src_in_group` of the group, sent, into `object_list`.

    Raises: ValueError if there came another number of objects, or a tensor.
    """
    g = _listed(object_list, group, "recv_object_list")
    if g is None:
        return
    other = peer(_rank(src, src_in_group, g, "src", "recv_object_list"), g, "recv_object_list")
    message = current_comm().recv(other, tag_of(g))
    found = _unpickled(message) if message.dtype == np.uint8 and message.ndim == 1 else message
    if not isinstance(found, list) or len(found) != len(object_list):
        came = f"{len(found)} of them" if isinstance(found, list) else "a tensor"
        raise ValueError(f"recv_object_list: expected {len(object_list)} objects from rank {other}, got {came}")
    object_list[:] = found


def _listed(object_list: Any, group: Group | None, what: str) -> Group | None:
    """The group, if this rank is in it."""
    if not object_list:
        raise ValueError(f"{what}: expected a list of at least one object, got {object_list!r}")
    return entered(existing(group, what), what)


def _rank(rank: int | None, number: int | None, group: Group, name: str, what: str) -> int:
    """The global rank that is given as such, or by its number in the group."""
    if number is None:
        return 0 if rank is None else rank
    if rank is not None:
        raise ValueError(f"{what}: expected {name} or {name}_in_group, got both: {rank} and {number}")
    if not 0 <= number < group.nranks:
        raise ValueError(f"{what}: expected {name}_in_group from 0 to {group.nranks - 1}, got {number}")
    return group.ranks[number]


def _pickled(obj: Any) -> np.ndarray:
    return np.frombuffer(pickle.dumps(obj, pickle.HIGHEST_PROTOCOL), np.uint8)


def _unpickled(text: np.ndarray) -> Any:
    return pickle.loads(text.tobytes())
