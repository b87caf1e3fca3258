"""Control flow in global programs: what branches and loops mean to completion and to partition.

Both evaluate *both* regions, under the interpreter that evaluates everything else: completion to find placements,
partition to write them.  Every rank takes the same branch, because the condition is replicated; so a branch may
communicate.

A region is a barrier for what is Partial: a value that a region reads is resolved before the branch.  Resolved inside,
it would be so in one branch only.

Both regions must yield a result under the same placements, so completion writes a reshard before a yield where they do
not.  On a mesh axis on which one of them is replicated it takes the other's placement, which costs nothing; on one on
which they are placed in two ways both are replicated, with a warning.

A loop's body must leave what it carries as it got it.  Completion starts with the placements of what the loop starts
with, evaluates the body, lets both agree as branches do, and evaluates it again until nothing changes; so what the body
shards is sharded from the start.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from minipd.dist.crossing import elsewhere
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement, Replicate, whole
from minipd.dist.value import DistValue
from minipd.framework.meta import Meta
from minipd.framework.rank import current
from minipd.framework.row import ROWS
from minipd.ir.builder import Builder
from minipd.ir.evaluate import Walk
from minipd.ir.operation import Operation, captured, user_error, walk_inside
from minipd.ir.schema import op_attrs
from minipd.ir.trace import Trace
from minipd.ir.types import DenseTensorType, StackType
from minipd.ir.value import Value

__all__: list[str] = []

Env = dict[Value, Any]
Placements = tuple[Placement, ...]


class Branches:
    """For completion: finds the placements of what branches yield, and of what travels on stacks.

    left: the stacks that a program gives as outputs, by name, for the program that takes them.
    """

    def __init__(self, mesh: ProcessMesh | None, left: dict[str, Stack] | None = None):
        self._mesh, self.left = mesh, {} if left is None else left

    @property
    def mesh(self) -> ProcessMesh:
        """Where the branch or loop is that is being evaluated."""
        assert self._mesh is not None
        return self._mesh

    @property
    def replicated(self) -> Placements:
        return (Replicate(),) * self.mesh.ndim

    def __call__(self, op: Operation, env: Env, walk: Walk) -> None:
        """What `evaluate` asks of control flow."""
        match op.name():
            case "pd_op.if" | "pd_op.while":
                around, self._mesh = self._mesh, self.mesh_of(op, env)
                self.enter(op, env)
                (self.branch if op.name() == "pd_op.if" else self.loop)(op, env, walk)
                self._mesh = around
            case "cf.stack_create":
                self.create(op, env)
            case "cf.stack_take":
                self.take(op, env, self.left[op.attributes["name"].value])
            case "cf.tuple_push":
                stack, *values = op.operands_source()
                env[stack].pushed[:] = [renewed(env[v]) for v in values]
                self.push(op, env, env[stack].pushed)
            case "cf.tuple_pop":
                self.pop(op, env, env[op.operand_source(0)].pushed)
            case "cf.has_elements":
                self.count(op, env)
            case _:
                raise NotImplementedError(user_error(op, "expected control flow that can be distributed (pd_op.if, "
                                                     "pd_op.while); run this program on one rank, or write it without"))

    def mesh_of(self, op: Operation, env: Env) -> ProcessMesh:
        """The mesh on which everything is that a branch or loop reads and computes.

        Raises: NotImplementedError if it is not one: ranks of other meshes do not know which way it goes.
        """
        found: dict[ProcessMesh, None] = {}
        for value in (*op.operands_source(), *captured(op)):
            if type(x := env.get(value)) is DistValue:
                found.setdefault(x.mesh)
        for inner in walk_inside(op):
            if inner.name() == "dist_op.reshard":
                found.setdefault(op_attrs(inner)["mesh"])
        if len(found) == 1:
            return next(iter(found))
        if found or self._mesh is None:
            where = " and ".join(f"{m.text()} of the ranks {m.process_ids}" for m in found) or "no mesh"
            raise NotImplementedError(user_error(op, "expected control flow whose condition and values are on one "
                                                 f"mesh, got {where}; reshard what it reads to one mesh before it, "
                                                 "and its results behind it"))
        return self._mesh

    def placed(self, x: Any, placements: Placements) -> DistValue:
        """A payload under `placements`."""
        return current().run(ROWS["reshard"], [x], {"mesh": self.mesh, "placements": placements})

    def enter(self, op: Operation, env: Env) -> None:
        """Before a branch: whatever Partial a region reads is resolved."""
        for value in captured(op):
            x = env.get(value)
            if type(x) is DistValue and any(p.is_partial() for p in x.held().placements):
                self.placed(x, whole(x.placements))

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
                self.bring(region.front().back(), i, x, placements, env)
            env[result] = renewed(self.placed(pair[0], placements))
        if differ:
            warnings.warn(user_error(op, f"expected branches that place their results alike, but {'; '.join(differ)}. "
                                     "Replicated where they differ, which communicates; reshard inside one branch"),
                          stacklevel=2)

    def loop(self, op: Operation, env: Env, walk: Walk) -> None:
        """Evaluate the body until it leaves what it carries placed as it gets it."""
        body = op.regions[0].front()
        inputs = [env[v] for v in op.operands_source()]
        placements = [whole(self.placements_of(x)) for x in inputs[1:]]
        differ: dict[tuple[int, int], str] = {}
        while True:
            for arg, x, p in zip(body.args(), inputs[1:], placements, strict=True):
                env[arg] = renewed(self.placed(x, p))
            yields = walk(body)
            found = []
            for i, (before, x) in enumerate(zip(placements, yields[1:], strict=True)):
                agreed = list(map(meet, before, whole(self.placements_of(x)), self.mesh.sizes))
                for axis, both in enumerate(agreed):
                    if both is None:
                        differ[i, axis] = f"variable {i} is {env[body.args()[i]]!r} before an iteration and {x!r} after"
                found.append(tuple(p if p is not None and (i, axis) not in differ else Replicate()
                                   for axis, p in enumerate(agreed)))
            if found == placements:
                break
            placements = found
        if differ:
            warnings.warn(user_error(op, "expected a body that places what it carries as it gets it, but "
                                     f"{'; '.join(differ.values())}. Replicated where they differ, which communicates; "
                                     "reshard at the end of the body"), stacklevel=2)
        for at, payloads in ((op, inputs), (body.back(), yields)):
            for i, (x, p) in enumerate(zip(payloads, (self.replicated, *placements), strict=True)):
                self.bring(at, i, x, p, env)
        for result, x, p in zip(op.results(), inputs[1:], placements, strict=True):
            env[result] = renewed(self.placed(x, p))

    def bring(self, end: Operation | None, i: int, x: Any, placements: Placements, env: Env) -> None:
        """Write a reshard of operand `i` before an operation, unless that is placed so."""
        if placements != (x.placements if type(x) is DistValue else self.replicated):
            assert end is not None and end.parent is not None
            value, = Builder(end.parent, end).call(ROWS["reshard"], [end.operand_source(i)],
                                                   {"mesh": self.mesh, "placements": placements})
            end.operand(i).set_source(value)
            env[value] = renewed(self.placed(x, placements))

    def placements_of(self, x: Any) -> Placements:
        """A payload that is not distributed is replicated."""
        return x.held().placements if type(x) is DistValue else self.replicated

    def create(self, op: Operation, env: Env) -> None:
        """A stack has no placements."""
        stack = Stack()
        env.update((end, stack) for end in op.results())

    def take(self, op: Operation, env: Env, left: Stack) -> None:
        """What was pushed by the program that has left it."""
        env.update((end, Stack(left.pushed)) for end in op.results())

    def push(self, op: Operation, env: Env, payloads: list[Any]) -> None:
        """Nor has a push results."""

    def pop(self, op: Operation, env: Env, payloads: list[Any]) -> None:
        """What was pushed, placed as it was then."""
        env.update(zip(op.results(), map(renewed, payloads), strict=True))

    def count(self, op: Operation, env: Env) -> None:
        """Every rank pushes as often as the others."""
        env[op.result(0)] = Meta(op.result(0).shape, op.result(0).dtype)


class LocalBranches(Branches):
    """For partition: writes the branches and stacks of one rank's program, by the placements that completion found."""

    def __init__(self, mesh: ProcessMesh | None, trace: Trace, rank: int, left: dict[str, Stack] | None = None):
        super().__init__(mesh, left)
        self.trace, self.rank = trace, rank

    def elsewhere(self, op: Operation, env: Env) -> bool:
        """Whether this rank has nothing of a branch or loop; its results are on the other ranks, too."""
        if self.mesh.contains(self.rank):
            return False
        for result in op.results():
            kind: Any = result.type()
            env[result] = elsewhere(result.shape, result.dtype, self.mesh, kind.placements)
        return True

    def branch(self, op: Operation, env: Env, walk: Walk) -> None:
        if self.elsewhere(op, env):
            return
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

    def loop(self, op: Operation, env: Env, walk: Walk) -> None:
        if self.elsewhere(op, env):
            return
        placements = [self.replicated, *(r.type().placements for r in op.results())]        # type: ignore[attr-defined]

        def locals_of(payloads: Iterable[Any]) -> list[Value]:
            return [self.local(self.placed(x, p)) for x, p in zip(payloads, placements, strict=True)]
        body, inputs = op.regions[0].front(), locals_of(env[v] for v in op.operands_source())
        new = self.trace.build.build("pd_op.while", inputs, dict(op.attributes), [v.type() for v in inputs[1:]], 1)
        target = new.regions[0].add_block()
        with self.trace.inside(target):
            for arg, v, p in zip(body.args(), inputs[1:], placements[1:], strict=True):
                local = target.add_arg(v.type())
                local.attributes.update(arg.attributes)
                env[arg] = DistValue(local, arg.shape, arg.dtype, self.mesh, p)
            self.trace.build.build("cf.yield", locals_of(walk(body)))
        for result, made, p in zip(op.results(), new.results(), placements[1:], strict=True):
            env[result] = DistValue(made, result.shape, result.dtype, self.mesh, p)

    def create(self, op: Operation, env: Env) -> None:
        new = self.trace.build.build("cf.stack_create", (), {}, [StackType(end) for end in StackType.ENDS])
        pushed: list[Any] = []
        env.update((end, Stack(pushed, local)) for end, local in zip(op.results(), new.results(), strict=True))

    def take(self, op: Operation, env: Env, left: Stack) -> None:
        new = self.trace.build.build("cf.stack_take", (), dict(op.attributes), [v.type() for v in op.results()])
        env.update((end, Stack(left.pushed, local)) for end, local in zip(op.results(), new.results(), strict=True))

    def push(self, op: Operation, env: Env, payloads: list[Any]) -> None:
        values = [self.local(x) for x in payloads]
        self.trace.build.build("cf.tuple_push", [env[op.operand_source(0)].local, *values])
        payloads[:] = map(renewed, payloads, values)

    def pop(self, op: Operation, env: Env, payloads: list[Any]) -> None:
        types = [(x.local if type(x) in (DistValue, Stack) else x).type() for x in payloads]
        new = self.trace.build.build("cf.tuple_pop", [env[op.operand_source(0)].local], dict(op.attributes), types)
        env.update(zip(op.results(), map(renewed, payloads, new.results()), strict=True))

    def count(self, op: Operation, env: Env) -> None:
        new = self.trace.build.build("cf.has_elements", [env[op.operand_source(0)].local], dict(op.attributes),
                                     [DenseTensorType(op.result(0).shape, op.result(0).dtype)])
        env[op.result(0)] = new.result(0)

    def local(self, x: Any) -> Value:
        """This rank's value of a payload."""
        if type(x) is Stack:
            assert x.local is not None
            return x.local
        return self.trace.value(x.held().local if type(x) is DistValue else x)


@dataclass(eq=False)
class Stack:
    """An end of a stack: what the tuples on it are like, and this rank's value of the end."""

    pushed: list[Any] = field(default_factory=list)
    local: Value | None = None


def renewed(x: Any, local: Any = None) -> Any:
    """The value as it is held now, with its own memory of what it will be resolved to (and another local payload).

    Inside and outside of a region the same value is resolved by other operations.
    """
    if type(x) is Stack:
        return x if local is None else Stack(x.pushed, local)
    if type(x) is not DistValue:
        return x if local is None else local
    x = x.held()
    return DistValue(x.local if local is None else local, x.shape, x.dtype, x.mesh, x.placements)


def meet(p: Placement, q: Placement, size: int) -> Placement | None:
    """The placement on an axis of `size` ranks that both branches can take for nothing; None if there is none."""
    if p is q or q.is_replicated() or size == 1:
        return p
    return q if p.is_replicated() else None
