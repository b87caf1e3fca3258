"""Control flow in global programs: what a branch means to completion and to partition.

Both evaluate *both* regions, under the interpreter that evaluates everything else: completion to find placements,
partition to write them.  Every rank takes the same branch, because the condition is replicated; so a branch may
communicate.

A region is a barrier for what is Partial: a value that a region reads is resolved before the branch.  Resolved inside,
it would be so in one branch only.

Both regions must yield a result under the same placements, so completion writes a reshard before a yield where they do
not.  On a mesh axis on which one of them is replicated it takes the other's placement, which costs nothing; on one on
which they are placed in two ways both are replicated, with a warning.
"""

from __future__ import annotations

import warnings
from typing import Any

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement, Replicate
from minipd.dist.value import DistValue
from minipd.framework.rank import current
from minipd.framework.row import ROWS
from minipd.ir.block import Block
from minipd.ir.builder import Builder
from minipd.ir.evaluate import Walk
from minipd.ir.operation import Operation, captured, user_error
from minipd.ir.trace import Trace
from minipd.ir.types import StackType
from minipd.ir.value import Value

__all__: list[str] = []

Env = dict[Value, Any]
Placements = tuple[Placement, ...]


class Branches:
    """For completion: finds the placements of what branches yield, and of what travels on stacks."""

    def __init__(self, mesh: ProcessMesh):
        self.mesh = mesh
        self.replicated: Placements = (Replicate(),) * mesh.ndim
        #: the operation that created a stack -> the payloads pushed onto it
        self.pushed: dict[Operation | None, list[Any]] = {}

    def __call__(self, op: Operation, env: Env, walk: Walk) -> None:
        """What `evaluate` asks of control flow."""
        match op.name():
            case "pd_op.if":
                self.enter(op, env)
                self.branch(op, env, walk)
            case "cf.stack_create":
                self.create(op, env)
            case "cf.tuple_push":
                stack, *values = op.operands_source()
                self.pushed[stack.get_defining_op()] = [renewed(env[v]) for v in values]
                self.push(op, env, self.pushed[stack.get_defining_op()])
            case "cf.tuple_pop":
                self.pop(op, env, self.pushed[op.operand_source(0).get_defining_op()])
            case _:
                raise NotImplementedError(user_error(op, "expected control flow that can be distributed (pd_op.if); "
                                                     "run this program on one rank, or write it without"))

    def placed(self, x: Any, placements: Placements) -> DistValue:
        """A payload under `placements`."""
        return current().run(ROWS["reshard"], [x], {"mesh": self.mesh, "placements": placements})

    def enter(self, op: Operation, env: Env) -> None:
        """Before a branch: whatever Partial a region reads is resolved."""
        for value in captured(op):
            x = env.get(value)
            if type(x) is DistValue and any(p.is_partial() for p in x.held().placements):
                self.placed(x, tuple(Replicate() if p.is_partial() else p for p in x.placements))

    def branch(self, op: Operation, env: Env, walk: Walk) -> None:
        """Evaluate both regions, and agree on the placements of the results."""
        yields = [walk(region.front()) for region in op.regions]
        differ = []
        for i, (result, *pair) in enumerate(zip(op.results(), *yields, strict=True)):
            agreed = list(map(meet, *map(self.placements_of, pair), self.mesh.sizes))
            if None in agreed:
                differ.append(f"result {i} is {pair[0]!r} in one and {pair[1]!r} in the other")
            placements = tuple(p or Replicate() for p in agreed)
            for region, x in zip(op.regions, pair, strict=True):
                self.bring(region.front(), i, x, placements, env)
            env[result] = renewed(self.placed(pair[0], placements))
        if differ:
            warnings.warn(user_error(op, f"expected branches that place their results alike, but {'; '.join(differ)}. "
                                     "Replicated where they differ, which communicates; reshard inside one branch"),
                          stacklevel=2)

    def bring(self, block: Block, i: int, x: Any, placements: Placements, env: Env) -> None:
        """Write a reshard before the yield of a region, unless what it yields is placed so."""
        if placements != (x.placements if type(x) is DistValue else self.replicated):
            end = block.back()
            assert end is not None
            value, = Builder(block, end).call(ROWS["reshard"], [end.operand_source(i)],
                                              {"mesh": self.mesh, "placements": placements})
            end.operand(i).set_source(value)
            env[value] = renewed(self.placed(x, placements))

    def placements_of(self, x: Any) -> Placements:
        """A payload that is not distributed is replicated."""
        return x.held().placements if type(x) is DistValue else self.replicated

    def create(self, op: Operation, env: Env) -> None:
        """A stack has no placements."""

    def push(self, op: Operation, env: Env, payloads: list[Any]) -> None:
        """Nor has a push results."""

    def pop(self, op: Operation, env: Env, payloads: list[Any]) -> None:
        """What was pushed, placed as it was then."""
        env.update(zip(op.results(), map(renewed, payloads), strict=True))


class LocalBranches(Branches):
    """For partition: writes the branches and stacks of one rank's program, by the placements that completion found."""

    def __init__(self, mesh: ProcessMesh, trace: Trace):
        super().__init__(mesh)
        self.trace = trace

    def branch(self, op: Operation, env: Env, walk: Walk) -> None:
        condition = self.local(self.placed(env[op.operand_source(0)], self.replicated))
        new = self.trace.build.build("pd_op.if", [condition], dict(op.attributes), num_regions=2)
        placements = [r.type().placements for r in op.results()]                # type: ignore[attr-defined]
        yields: list[Value] = []
        for region, target in zip(op.regions, new.regions, strict=True):
            with self.trace.inside(target.add_block()):
                payloads = walk(region.front())
                yields = [self.local(self.placed(x, p)) for x, p in zip(payloads, placements, strict=True)]
                self.trace.build.build("cf.yield", yields)
        for value in yields:
            new.add_result(value.type())
        new.attributes.update(op.attributes)            # the flags of results, of which there are as many
        for result, local, placed in zip(op.results(), new.results(), placements, strict=True):
            env[result] = DistValue(local, result.shape, result.dtype, self.mesh, placed)

    def create(self, op: Operation, env: Env) -> None:
        new = self.trace.build.build("cf.stack_create", (), {}, [StackType(end) for end in StackType.ENDS])
        env.update(zip(op.results(), new.results(), strict=True))

    def push(self, op: Operation, env: Env, payloads: list[Any]) -> None:
        values = [self.local(x) for x in payloads]
        self.trace.build.build("cf.tuple_push", [env[op.operand_source(0)], *values])
        payloads[:] = map(renewed, payloads, values)

    def pop(self, op: Operation, env: Env, payloads: list[Any]) -> None:
        types = [(x.local if type(x) is DistValue else x).type() for x in payloads]
        new = self.trace.build.build("cf.tuple_pop", [env[op.operand_source(0)]], dict(op.attributes), types)
        env.update(zip(op.results(), map(renewed, payloads, new.results()), strict=True))

    def local(self, x: Any) -> Value:
        """This rank's value of a payload."""
        return self.trace.value(x.held().local if type(x) is DistValue else x)


def renewed(x: Any, local: Any = None) -> Any:
    """The value as it is held now, with its own memory of what it will be resolved to (and another local payload).

    Inside and outside of a region the same value is resolved by other operations.
    """
    if type(x) is not DistValue:
        return x if local is None else local
    x = x.held()
    return DistValue(x.local if local is None else local, x.shape, x.dtype, x.mesh, x.placements)


def meet(p: Placement, q: Placement, size: int) -> Placement | None:
    """The placement on an axis of `size` ranks that both branches can take for nothing; None if there is none."""
    if p is q or q.is_replicated() or size == 1:
        return p
    return q if p.is_replicated() else None
