"""How a gradient that is written in one region sees values of another, whose iterations and branches are over.

What it needs is pushed there and popped here (see `builtin`); values of the blocks around are simply read, constants
are written again.

The other way round go gradients of what has been popped, when gradients are differentiated again:

    F   a loop                pushes v             (iterations 1 ... n)
    G   its gradient          pops v               (n ... 1)
    G'  the gradient of G     has a gradient of v, and pushes it on a stack of its own       (1 ... n)
    F'  the gradient of F     pops that, and adds it to what it knows of v                    (n ... 1)
"""

from __future__ import annotations

from dataclasses import dataclass

from minipd.ir.block import Block
from minipd.ir.builder import Builder
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.schema import constant_of
from minipd.ir.types import StackType, Type
from minipd.ir.value import Value

__all__: list[str] = []


class Place:
    """Where gradients are written, and how values of the forward program are seen from there.

    In the global block every value is seen as it is.
    """

    def see(self, value: Value) -> Value:
        """The value as it is called here."""
        return value

    def is_free(self, value: Value) -> bool:
        """Whether seeing it costs nothing."""
        return True


class Carried(Place):
    """The region of a branch's gradient.  What it needs of its forward region is pushed there and popped here, once.

    `outside` is the place around it: it knows what the blocks around the forward region define.
    """

    def __init__(self, program: Program, forward: Block, target: Block, outside: Place):
        self.program, self.forward, self.target, self.outside = program, forward, target, outside
        self.seen: dict[Value, Value] = {}
        self.pushed: list[Value] = []
        self.pop: Operation | None = None

    def see(self, value: Value) -> Value:
        if value.parent_block() is not self.forward:
            return self.outside.see(value)
        if value not in self.seen:
            if constant_of(value) is not None:
                copy = value.get_defining_op().clone()          # type: ignore[union-attr]
                self.target.insert_before(self.target.front(), copy)
                self.seen[value] = copy.result(0)
            else:
                self.seen[value] = self._popped(value)
        return self.seen[value]

    def is_free(self, value: Value) -> bool:
        return value.parent_block() is not self.forward and self.outside.is_free(value)

    def _popped(self, value: Value) -> Value:
        if self.pop is None:
            top = self.program.global_block()
            _, self.inlet, outlet = create_stack(Builder(top, top.front()))
            self.pop = Builder(self.target, self.target.front()).build("cf.tuple_pop", [outlet])
        self.pushed.append(value)
        result = self.pop.add_result(value.type())
        result.stop_gradient = value.stop_gradient
        return result

    def push(self) -> None:
        """Push, at the end of the forward region, what was asked for."""
        if self.pushed:
            Builder(self.forward, self.forward.back()).build("cf.tuple_push", [self.inlet, *self.pushed])


class CarriedEach(Carried):
    """The region of a loop's gradient, which runs as often as the body has run and pushed, and then the stack is empty.

    A loop that stands in another runs anew in each of its iterations, so it has a stack in each: one made right before
    it.  If that is in a region itself, the gradient there gets the stack as it gets any value of the region.
    """

    def __init__(self, loop: Operation, outside: Place):
        self.forward, self.outside = loop.regions[0].front(), outside
        self.seen, self.pushed = {}, []
        assert loop.parent is not None
        stack, self.inlet, outlet = create_stack(Builder(loop.parent, loop))
        self.stack, self.outlet = outside.see(stack), outside.see(outlet)

    def enter(self, target: Block) -> None:
        """From here on, gradients are written into `target`, which is empty."""
        self.target = target
        self.pop = Builder(target).build("cf.tuple_pop", [self.outlet])

    def push(self) -> None:
        """Push, at the end of the body, what was asked for; be it nothing, it counts the iterations."""
        Builder(self.forward, self.forward.back()).build("cf.tuple_push", [self.inlet, *self.pushed])


@dataclass(eq=False)
class Returned:
    """A stack on which the gradients of `items` stand, one tuple per run of their region, for whoever goes through that
    region backwards.  An item is a value, or what has come back from a region inside of that one."""

    items: list[Value | Returned]
    outlet: Value

    def anchor(self) -> Value:
        """A value in the region."""
        first = self.items[0]
        return first.anchor() if isinstance(first, Returned) else first

    def types(self) -> list[Type]:
        """The types of what is pushed."""
        return [StackType("outlet") if isinstance(x, Returned) else x.type() for x in self.items]


def create_stack(build: Builder) -> list[Value]:
    """A new stack, and its two ends."""
    return list(build.build("cf.stack_create", (), {}, [StackType(end) for end in StackType.ENDS]).results())
