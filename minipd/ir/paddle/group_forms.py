"""Forms of collectives.

Paddle's name their group by the number of a communicator, `ring_id`, and know only what works on the first dimension,
in equal parts; along another one they stand between operators that bring it to the front, as Paddle's own reshards.

The ranks of a group are not in the text.  A program numbers its groups as they come, and `Program.rings` remembers
which they are; where that is not known (of a text, or a file) a collective stays as it is when it is read.
What has no such form (unequal parts, a reduction that is no sum in a reduce_scatter) stays ours: `minipd.all_gather`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minipd.framework.dim import is_symbolic
from minipd.framework.errors import InputError
from minipd.framework.rank import current
from minipd.ir.operation import Operation, user_error
from minipd.ir.paddle.form import form
from minipd.ir.paddle.load import Loader
from minipd.ir.paddle.save import Call, Saver
from minipd.ir.types import DenseTensorType, VectorType
from minipd.ir.value import Value

__all__: list[str] = []

#: Paddle's `reduce_type`, by number
REDUCTIONS = ("sum", "max", "min", "prod", "avg", "any", "all")


@form("all_reduce")
class AllReduce:
    def save(to, call):
        return to.op("all_reduce", call.tensors, {"ring_id": ring(to, call), "reduce_type": REDUCTIONS.index(
            call.attrs["op"])}, call.types)

    def load(at, op):
        return at.row("all_reduce", *at.inputs(op), group=group(at, op), op=REDUCTIONS[at.attrs(op)["reduce_type"]])


@form("broadcast")
class Broadcast:
    """Paddle counts the root within the group."""

    def save(to, call):
        root = tuple(call.attrs["group"]).index(call.attrs["root"])
        return to.op("broadcast", call.tensors, {"ring_id": ring(to, call), "root": root}, call.types)

    def load(at, op):
        ranks = group(at, op)
        return at.row("broadcast", *at.inputs(op), group=ranks, root=ranks[at.attrs(op)["root"]])


@form("all_gather")
class AllGather:
    """Along another axis, what has been gathered is parted again, and joined along that."""

    def save(to, call):
        axis, n = call.attrs["axis"], len(call.attrs["group"])
        equal(call, "sizes")
        x, = call.tensors
        attrs = {"ring_id": ring(to, call), "nranks": n}
        if axis == 0:
            return to.op("all_gather", [x], attrs, call.types)
        part = DenseTensorType(x.shape, x.dtype)
        all_, = to.op("all_gather", [x], attrs, [DenseTensorType((n * x.shape[0], *x.shape[1:]), x.dtype)])
        vector, = to.op("split_with_num", [all_, to.number(0, "int32")], {"num": n}, [VectorType((part,) * n)])
        parts = to.build.build("builtin.split", [vector], {"stop_gradient": [True] * n}, [part] * n)
        return to.op("concat", [to.build.combine(parts.results()), to.number(axis, "int32")], {}, call.types)

    def load(at, op):
        (x,), ranks = at.inputs(op), group(at, op)
        return at.row("all_gather", x, group=ranks, axis=0, sizes=(x.shape[0],) * len(ranks))


@form("reduce_scatter")
class ReduceScatter:
    """It adds up."""

    def save(to, call):
        call.expect(op="sum")
        axis, n = call.attrs["axis"], len(call.attrs["group"])
        equal(call, "sizes")
        x, = call.tensors
        perm = [axis if i == 0 else 0 if i == axis else i for i in range(len(x.shape))]
        if axis:
            x = transposed(to, x, perm)
        out, = to.op("reduce_scatter", [x], {"ring_id": ring(to, call), "nranks": n},
                     call.types if axis == 0 else [DenseTensorType((x.shape[0] // n, *x.shape[1:]), x.dtype)])
        return transposed(to, out, perm) if axis else out

    def load(at, op):
        (x,), ranks = at.inputs(op), group(at, op)
        n = len(ranks)
        return at.row("reduce_scatter", x, group=ranks, index=place(ranks), axis=0, sizes=(x.shape[0] // n,) * n,
                      op="sum")


@form("all_to_all")
class AllToAll:
    """What goes to one rank is brought to the front, and what comes is joined along another axis behind it."""

    def save(to, call):
        n, cut, join = len(call.attrs["group"]), call.attrs["split_axis"], call.attrs["concat_axis"]
        equal(call, "split_sizes")
        equal(call, "concat_sizes")
        x, = call.tensors
        attrs = {"ring_id": ring(to, call)}
        if cut == join == 0:
            return to.op("all_to_all", [x], attrs, call.types)
        if is_symbolic(x.shape):
            raise InputError("sizes that are numbers", user_error(call.op, str(list(x.shape))),
                             "save the program of inputs with fixed sizes")
        shape = [*x.shape[:cut], n, x.shape[cut] // n, *x.shape[cut + 1:]]
        x = reshaped(to, x, shape)                                              # [.., n, cut / n, ..]
        x = transposed(to, x, [cut, *(i for i in range(len(shape)) if i != cut)])
        part = list(x.shape[1:])
        x = reshaped(to, x, [n * part[0], *part[1:]])
        x, = to.op("all_to_all", [x], attrs, [x.type()])
        x = reshaped(to, x, [n, *part])
        x = transposed(to, x, [*range(1, join + 1), 0, *range(join + 1, len(part) + 1)])
        return reshaped(to, x, [*part[:join], n * part[join], *part[join + 1:]])

    def load(at, op):
        (x,), ranks = at.inputs(op), group(at, op)
        sizes = (x.shape[0] // len(ranks),) * len(ranks)
        return at.row("all_to_all", x, group=ranks, index=place(ranks), split_axis=0, concat_axis=0, split_sizes=sizes,
                      concat_sizes=sizes)


def ring(to: Saver, call: Call) -> int:
    """The number of a call's group in this program."""
    ranks, rings = tuple(call.attrs["group"]), to.program.rings
    return next((n for n, known in rings.items() if known == ranks), 0) or _new_ring(rings, ranks)


def _new_ring(rings: dict[int, tuple[int, ...]], ranks: tuple[int, ...]) -> int:
    """Paddle's number 0 is all ranks."""
    number = len(rings) + 1
    rings[number] = ranks
    return number


def group(at: Loader, op: Operation) -> tuple[int, ...]:
    """The ranks of Paddle's communicator.

    Raises: NotOurs if they are not known.
    """
    found = at.rings.get(at.attrs(op)["ring_id"])
    if found is None:
        raise at.refuse()
    return found


def place(ranks: tuple[int, ...]) -> int:
    """This rank's place among them: in Paddle every process knows it by itself."""
    rank = current().rank
    return ranks.index(rank) if rank in ranks else 0


def equal(call: Call, name: str) -> None:
    """Raises: InputError unless the ranks have equal parts."""
    sizes: Sequence[Any] = call.attrs[name]
    if any(size != sizes[0] for size in sizes):
        raise InputError("equal parts, for Paddle's operator knows no others", user_error(
            call.op, f"{name}={list(sizes)}"), "pad what is split")


def transposed(to: Saver, x: Value, perm: list[int]) -> Value:
    return to.op("transpose", [x], {"perm": perm}, [DenseTensorType(tuple(x.shape[i] for i in perm), x.dtype)])[0]


def reshaped(to: Saver, x: Value, shape: list[Any]) -> Value:
    return to.op("reshape", [x, to.ints(shape)], {}, [DenseTensorType(tuple(shape), x.dtype)])[0]
