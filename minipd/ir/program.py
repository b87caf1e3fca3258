"""Programs: one global block, and what was assumed about its symbolic dimensions."""

from __future__ import annotations

from collections.abc import Iterator

from minipd.framework.constraints import Constraints
from minipd.ir.block import Block
from minipd.ir.mapping import IrMapping, clone_block
from minipd.ir.operation import Operation, walk_inside
from minipd.ir.region import Region
from minipd.ir.value import OpResult, Value

__all__ = ["Program"]


class Program:
    """A PIR program.  `str(program)` is Paddle's text; `to_string("exact")` loses nothing and parses back.

    Two programs are equal (`==`) when they say the same: same operations, attributes, types and connections, whatever
    the values are called.  A program is mutable, hence not hashable.

    form: "minipd" (operators as our rows have them), or "paddle" (as Paddle's schema has them; such programs are read,
    written and drawn, not run).
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self) -> None:
        self.region = Region()
        self.region.add_block()
        self.constraints = Constraints()
        self.form = "minipd"
        #: in Paddle's form: the number of a communicator -> its ranks, which the text does not say
        self.rings: dict[int, tuple[int, ...]] = {}

    # ----------------------------------------------------------------------------------------------- contents
    def global_block(self) -> Block:
        return self.region.front()

    @property
    def blocks(self) -> list[Block]:
        return list(self.region.blocks)

    def walk(self) -> Iterator[Operation]:
        """Every operation, those in regions after the operation that owns the region."""
        for op in self.global_block():
            yield from walk_inside(op)

    def num_ops(self) -> int:
        """The number of operations, those in regions included."""
        return sum(1 for _ in self.walk())

    def parameters_num(self) -> int:
        """How many parameters the program reads."""
        return len(self.parameters())

    def list_vars(self) -> list[Value]:
        """Every value, in the order in which they come into being."""
        values: list[Value] = []
        for op in self.walk():
            values += op.results()
            for block in op.blocks():
                values += block.args()
        return values

    # ------------------------------------------------------------------------------------------ program state
    def parameters(self) -> dict[str, OpResult]:
        """The state that the program reads: parameter name -> value."""
        return {op.attributes["parameter_name"].value: op.result(0) for op in self.walk()
                if op.name() == "builtin.parameter"}

    def get_parameter_value_by_name(self, name: str) -> OpResult:
        """Raises: KeyError if the program reads no parameter of that name."""
        return self.parameters()[name]

    def get_all_parameter_values(self) -> list[OpResult]:
        return list(self.parameters().values())

    def get_output_value_by_name(self, name: str) -> Value:
        """What `builtin.shadow_output` marks as the output called `name`.

        Raises: KeyError if there is no such output.
        """
        for op in self.global_block():
            if op.name() == "builtin.shadow_output" and op.attributes["output_name"].value == name:
                return op.operand_source(0)
        raise KeyError(name)

    # -------------------------------------------------------------------------------------------- whole program
    def clone(self, mapping: IrMapping | None = None) -> Program:
        """A copy; `mapping`, if given, tells which value stands for which afterwards."""
        copy = Program()
        copy.form, copy.rings = self.form, dict(self.rings)
        for c in self.constraints:
            copy.constraints.add(c)
        clone_block(self.global_block(), copy.global_block(), IrMapping() if mapping is None else mapping)
        return copy

    def copy_to_block(self, mapping: IrMapping, block: Block) -> None:
        """Append copies of all operations to a block of another program; `mapping` learns their results."""
        clone_block(self.global_block(), block, mapping)

    def __deepcopy__(self, memo: dict) -> Program:
        return self.clone()

    def __reduce__(self) -> tuple:
        from minipd.ir.parser import parse
        return parse, (self.to_string("exact"),)        # operations are linked lists, which pickle would recurse into

    def is_equal(self, other: Program) -> bool:
        """Whether both programs say the same; see `difference` for where they do not."""
        from minipd.ir.equality import difference
        return difference(self, other) is None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Program) and self.is_equal(other)

    def to_string(self, style: str = "paddle") -> str:
        """The text, in style "paddle" or "exact"."""
        from minipd.ir.printer import print_program
        return print_program(self, style)

    def __str__(self) -> str:
        return self.to_string("paddle")

    __repr__ = __str__
