"""What a function of several operators wrote into a program, so that it can be written as one operator again.

The last operation of the call keeps a note (among `as_written`): the function, the names of the operations that it
wrote, where its tensors are read and its results come from, and its other arguments.  The note is a fact about
neighbours, which passes may have changed since: `group_of` gives the group only where it is still all there.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minipd.framework.tensor import Tensor
from minipd.ir.attributes import attribute
from minipd.ir.block import Block
from minipd.ir.operation import Operation
from minipd.ir.value import Value

__all__ = ["Call", "Group", "group_of", "written_behind"]

KEY = "whole"


class Group(NamedTuple):
    """Operations that a call of `function` wrote.

    tensors: parameter -> its value, or the list of them; args: parameter -> what else was given; results: its values.
    """

    function: str
    ops: list[Operation]
    tensors: dict[str, Any]
    args: dict[str, Any]
    results: list[Value]


#: the signature of a function, which takes longer to find than to use
signature_of = functools.cache(inspect.signature)


class Call:
    """A call of a function that a trace is about to make: what it is given, as it is now."""

    def __init__(self, function: Callable, args: tuple, named: dict[str, Any]):
        bound = signature_of(function).bind(*args, **named)
        bound.apply_defaults()
        self.function = function.__name__
        self.given = {k: v for k, v in bound.arguments.items() if v is not None and k != "name"}
        self.payloads = {k: [x.payload for x in members] for k, v in self.given.items()
                         if (members := tensors_of(v)) is not None}

    def note(self, out: Any, ops: list[Operation], value_of: Callable[[Any], Value | None],
             is_key: Callable[[Operation], bool]) -> None:
        """Note on the last of the operations that they are this call, where they are no more and no less.

        value_of: the value that stands for a payload.  is_key: whether an operation gives but the key of a draw.
        """
        if not ops or any(op.regions for op in ops):
            return
        number = {op: i for i, op in enumerate(ops)}
        made = {r: (i, j) for op, i in number.items() for j, r in enumerate(op.results())}
        reads: dict[Any, tuple[int, int]] = {}
        for op, i in number.items():
            for j, source in enumerate(op.operands_source()):
                if source is not None and source not in made:
                    reads.setdefault(source, (i, j))
        tensors: list[tuple[str, Any]] = []
        rest: list[tuple[str, Any]] = []
        results = [made.get(x.payload) if isinstance(x, Tensor) else None
                   for x in (out if isinstance(out, (list, tuple)) else [out])]
        outside = set(reads)
        for name, given in self.given.items():
            if name not in self.payloads:
                if not is_plain(given):
                    return
                rest.append((name, tuple(given) if isinstance(given, list) else given))
                continue
            payloads = self.payloads[name]
            values = [value_of(p) for p in payloads]
            if any(v not in reads for v in values):
                return
            outside -= set(values)
            places = tuple(reads[v] for v in values)
            tensors.append((name, places if isinstance(given, (list, tuple)) else places[0]))
            # what it has written in place is a result, too
            results += [made.get(x.payload) for x, p in zip(tensors_of(given) or (), payloads, strict=True)
                        if x.payload is not p]
        if None in results or not results or any(not is_key(v.get_defining_op()) for v in outside):
            return
        note = (self.function, " ".join(op.name() for op in ops), tuple(tensors), tuple(rest), tuple(results))
        said = ops[-1].attributes.get("as_written")
        ops[-1].attributes["as_written"] = attribute((*(() if said is None else said.value), (KEY, note)))


def tensors_of(given: Any) -> Sequence[Tensor] | None:
    """The tensors that an argument is; None if it is none."""
    if isinstance(given, Tensor):
        return (given,)
    return given if isinstance(given, (list, tuple)) and given and all(isinstance(x, Tensor) for x in given) else None


def written_behind(block: Block, before: Operation | None) -> list[Operation]:
    """The last operations of a block, from the one behind `before` on, without inputs of the program."""
    found: list[Operation] = []
    op = block.back()
    while op is not None and op is not before:
        found.append(op)
        op = op.prev
    return [op for op in reversed(found) if op.name() not in ("pd_op.data", "builtin.parameter")]


def is_plain(x: Any) -> bool:
    """Whether an attribute can hold it as it is."""
    if isinstance(x, (list, tuple)):
        return all(map(is_plain, x))
    return type(x) in (bool, int, float, str)


def group_of(op: Operation, said: Sequence[tuple[str, Any]], is_key: Callable[[Operation], bool]) -> Group | None:
    """The group that ends with `op`, if what was said of it holds.  is_key: whether an operation from outside is but a
    key of a random draw."""
    note = next((value for name, value in said if name == KEY), None)
    if note is None:
        return None
    try:
        return _group(op, is_key, *note)
    except (AttributeError, IndexError, TypeError, ValueError):         # a note that is none: it says nothing
        return None


def _group(op: Operation, is_key: Callable[[Operation], bool], function: str, names: str, tensors: tuple, rest: tuple,
           results: tuple) -> Group | None:
    wanted = names.split()
    ops: list[Operation] = []
    while len(ops) < len(wanted) and op is not None:
        ops.insert(0, op)
        op = op.prev                                                    # type: ignore[assignment]
    if [o.name() for o in ops] != wanted:
        return None
    inside = set(ops)
    outs: list[Value] = [ops[i].result(j) for i, j in results]
    if any(user not in inside for o in ops for r in o.results() if r not in outs for user in r.all_used_ops()):
        return None

    def at(place: Any) -> Any:
        return [at(p) for p in place] if isinstance(place[0], tuple) else ops[place[0]].operand_source(place[1])
    values = {name: at(place) for name, place in tensors}
    known = {v for x in values.values() for v in (x if isinstance(x, list) else [x])}
    others = {v.get_defining_op() for o in ops for v in o.operands_source() if v is not None and v not in known}
    if any(o is None or not is_key(o) for o in others - inside):
        return None
    return Group(function, ops, values, dict(rest), outs)
