"""PatternRewriter: the builder that patterns change programs with, and who is told of what it changes.

Every change goes through the rewriter, and it tells its listeners: the driver, which looks at what has changed again;
whoever counts, logs or draws.

    class Log(Listener):
        def inserted(self, op):
            print("+", op.name())
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from minipd.framework.row import Row
from minipd.ir.attributes import ArrayAttribute
from minipd.ir.builder import Builder
from minipd.ir.operation import Operation, walk_inside
from minipd.ir.program import Program
from minipd.ir.schema import is_pure
from minipd.ir.value import OpOperand, Value

__all__ = ["Listener", "PatternRewriter"]


class Listener:
    """Is told of the changes of a program.  Here it does nothing; a listener says what of it is of interest to it."""

    def inserted(self, op: Operation) -> None:
        """`op` has been put into a block."""

    def replaced(self, old: Value, new: Value) -> None:
        """Those who use `old` are about to use `new`: all of them, or some."""

    def modified(self, op: Operation) -> None:
        """Operands, attributes or the place of `op` have changed."""

    def erased(self, op: Operation) -> None:
        """`op` is about to go, with what is inside of it; its operands can still be seen."""

    def applied(self, rule: str, at: str) -> None:
        """All these changes were one rewrite: by this rule, at the operation that `at` names."""


class PatternRewriter(Builder):
    """The builder that patterns change programs with.

    It inserts before the operation that is rewritten, unless it is told another place (`set_insertion_point`,
    `set_insertion_point_after`, `insertion_guard`, ...: see Builder).

    changes: how many there were since `start`.  erased: all operations that are gone.

    >>> from minipd.framework.row import ROWS
    >>> program = Program()
    >>> rewriter = PatternRewriter(program)
    >>> x = rewriter.data("x", (2,), "float32")
    >>> y, = rewriter.call(ROWS["exp"], (x,), {})
    >>> out = rewriter.output("y", y)
    >>> rewriter.start(y.get_defining_op())
    >>> rewriter.replace_op_with(y.get_defining_op(), ROWS["tanh"], (x,))
    (result 0 of pd_op.tanh: tensor<2xf32>,)
    >>> [op.name() for op in program.global_block()], rewriter.changes
    (['pd_op.data', 'pd_op.tanh', 'builtin.shadow_output'], 3)
    """

    def __init__(self, program: Program, listeners: Iterable[Listener] = ()):
        super().__init__(program.global_block())
        self.program, self.listeners = program, list(listeners)
        self.changes = 0
        self.erased: set[Operation] = set()
        self.op: Operation | None = None                # the one that is rewritten
        self.sweep = 0                                  # how often the driver has begun to go through the program
        self.shared: dict[Any, Any] = {}                # what patterns keep about the program, by whom it is made

    def start(self, op: Operation) -> None:
        """A pattern is asked about `op`."""
        self.changes, self.op = 0, op
        self.set_insertion_point(op)

    @property
    def at(self) -> str:
        """The operation that is rewritten, as errors name it (it may be gone by then, and with it its operands)."""
        op = self.op
        assert op is not None
        line = op.attributes.get("op_callstack")
        where = f" (from {line.value[0]})" if isinstance(line, ArrayAttribute) and line.items else ""
        return f"{op.name()} -> {', '.join(str(r.type()) for r in op.results())}{where}"

    # ------------------------------------------------------------------------------------------------ operations
    def insert(self, op: Operation) -> Operation:
        super().insert(op)
        self.changes += 1
        for each in self.listeners:
            each.inserted(op)
        return op

    def replace_op(self, op: Operation, values: Sequence[Value]) -> None:
        """Result `i` becomes `values[i]` everywhere, and `op` is gone."""
        for old, new in zip(op.results(), values, strict=True):
            self.replace_all_uses(old, new)
        self.erase_op(op)

    def replace_op_with(self, op: Operation, row: Row, operands: Sequence[Value], attrs: dict[str, Any] | None = None,
                        ) -> Sequence[Value]:
        """Put a call of `row` in the place of `op`; returns its results, which take over from those of `op`.

        The new operation has the facts of the old one: its line in the user's source, its role."""
        with self.insertion_guard():
            self.set_insertion_point(op)
            values = self.call(row, operands, attrs or {}, inherited(op))
            for old, new in zip(op.results(), values, strict=True):
                new.stop_gradient = old.stop_gradient
        self.replace_op(op, values)
        return values

    def erase_op(self, op: Operation) -> None:
        """Remove an operation without users, and the constants and bundles that only it used.

        Raises: ValueError if a result is still used.
        """
        used = next((r for r in op.results() if not r.use_empty()), None)
        if used is not None:
            raise ValueError(f"erase_op: expected an operation that nobody uses, got {op.name()}, whose result "
                             f"{used.type()} goes into {used.all_used_ops()[0].name()}; replace_all_uses first")
        self.changes += 1
        for each in self.listeners:
            each.erased(op)
        sources = [v.get_defining_op() for o in walk_inside(op) for v in o.operands_source()]
        self.erased.update(walk_inside(op))
        if self.before is op:
            self.before = op.next
        op.erase()
        for source in dict.fromkeys(sources):
            if source is not None and source not in self.erased and _is_bundle(source) and (
                    all(r.use_empty() for r in source.results())):
                self.erase_op(source)

    def move_op_before(self, op: Operation, place: Operation) -> None:
        """Move an operation to another place of its block, or into another block."""
        op.move_before(place)
        self.modified(op)

    # ---------------------------------------------------------------------------------------------------- uses
    def replace_all_uses(self, old: Value, new: Value) -> None:
        """Whoever used `old` uses `new`."""
        self._replacing(old, new)
        old.replace_all_uses_with(new)

    def replace_uses_if(self, old: Value, new: Value, condition: Callable[[OpOperand], bool]) -> int:
        """Those uses of `old` of which `condition` is true become uses of `new`; returns how many that were."""
        chosen = [use for use in old.uses if condition(use)]
        if chosen:
            self._replacing(old, new)
        for use in chosen:
            use.set_source(new)
        return len(chosen)

    def _replacing(self, old: Value, new: Value) -> None:
        self.changes += 1
        for each in self.listeners:
            each.replaced(old, new)

    # ------------------------------------------------------------------------------------------ other changes
    def modified(self, op: Operation) -> None:
        """To be told of a change that is made directly: an operand set, an attribute."""
        self.changes += 1
        for each in self.listeners:
            each.modified(op)


#: facts about an operation that are as true of what takes its place
INHERITED = ("chunk_id", "op_callstack", "op_role", "struct_name")


def inherited(op: Operation) -> dict[str, Any]:
    """The attributes of `op` that are as true of what takes its place."""
    return {name: op.attributes[name] for name in INHERITED if name in op.attributes}


def _is_bundle(op: Operation) -> bool:
    return op.num_operands() == 0 and op.row is not None and is_pure(op) or op.name() == "builtin.combine"
