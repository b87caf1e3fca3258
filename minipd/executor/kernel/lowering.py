"""`pd_op_to_kernel_pass`: from operators to chosen kernels, as a program of its own.

Every row operation becomes `kernel.<name>`, with the key of the kernel that is chosen for it, and its values get a
place.  What the program itself does (state, bundles, branches, loops, outputs, compiled kernels) stays as it is, but
for the types of its values.  On another place than the CPU, what is fed and read moves there first (`memcpy_h2d`), and
what leaves the run comes back (`memcpy_d2h`).

Operations that no dialect knows stay too: such a program can be lowered and looked at; it fails when it runs.

As Paddle's `PdOpLowerToKernelPass` (paddle/fluid/pir/transforms/pd_op_to_kernel_pass.cc); what Paddle numbers
(`origin_id`) is told by `Lowered.origins` here.
"""

from __future__ import annotations

from typing import NamedTuple

from minipd.executor.kernel.dialect import TO_DEVICE, TO_HOST
from minipd.executor.kernel.key import ANY_LAYOUT, UNDEFINED, KernelKey, KernelKeyAttribute
from minipd.executor.kernel.table import select
from minipd.executor.kernel.types import AllocatedTensorType, allocated
from minipd.executor.makers import MAKERS
from minipd.framework import dtype as dtypes
from minipd.framework.place import CPU, Place
from minipd.framework.row import Row
from minipd.ir.block import Block
from minipd.ir.mapping import IrMapping, clone_operation
from minipd.ir.operation import Operation, user_error
from minipd.ir.program import Program
from minipd.ir.schema import tensor_operands
from minipd.ir.types import TensorType, VectorType
from minipd.ir.value import Value

__all__ = ["Lowered", "kernel_key", "pd_op_to_kernel_pass"]

LAYOUT = "NCHW"
#: what comes from outside of the run, and what goes there
READS, WRITES = ("builtin.parameter", "builtin.constant"), ("builtin.set_parameter", "builtin.shadow_output")


class Lowered(NamedTuple):
    """program: in dialect `kernel`.  origins: its operations -> those that they come from."""

    program: Program
    origins: dict[Operation, Operation]


def kernel_key(op: Operation, backend: str = "CPU") -> KernelKey:
    """The key of an operation's kernel: the dtype is that of the operand that the row names for it."""
    row = op.row
    operands = op.operands_source() if row is None else tensor_operands(op)
    value = operands[row.key] if row is not None and len(operands) > row.key else op.result(0)
    if not isinstance(value.type(), TensorType):
        value = op.result(0) if isinstance(op.result(0).type(), TensorType) else value
    name = dtypes.of(value.dtype).name if isinstance(value.type(), TensorType) else UNDEFINED
    return KernelKey(UNDEFINED, ANY_LAYOUT, name) if op.name() == "pd_op.data" else KernelKey(backend, LAYOUT, name)


def pd_op_to_kernel_pass(program: Program, place: Place = CPU) -> Lowered:
    """Lower a program for a place.  The program stays as it is.

    >>> from minipd.framework.meta import Meta
    >>> from minipd.ir.traced import trace
    >>> print(pd_op_to_kernel_pass(trace(lambda x: (x + x).tanh(), Meta((2, 3), dtypes.float32.np)).program).program)
    {
        (%0) = "data(phi_kernel)" () {dtype:float32,kernel_key:<backend:Undefined|layout:Undefined(AnyLayout)|\
dtype:float32>,kernel_name:"data",name:"input_0",op_name:"pd_op.data",place:Place(undefined:0),shape:[2,3],\
stop_gradient:[true]} : () -> undefined_tensor<2x3xf32>
        (%1) = "add(phi_kernel)" (%0, %0) {kernel_key:<backend:CPU|layout:NCHW|dtype:float32>,kernel_name:"add",\
op_name:"pd_op.add",stop_gradient:[true]} : (undefined_tensor<2x3xf32>, undefined_tensor<2x3xf32>) -> \
cpu_tensor<2x3xf32>
        (%2) = "tanh(phi_kernel)" (%1) {kernel_key:<backend:CPU|layout:NCHW|dtype:float32>,kernel_name:"tanh",\
op_name:"pd_op.tanh",stop_gradient:[true]} : (cpu_tensor<2x3xf32>) -> cpu_tensor<2x3xf32>
        () = "builtin.shadow_output" (%2) {output_name:"output_0"} : (cpu_tensor<2x3xf32>) -> 
    }
    <BLANKLINE>

    Raises: NotImplementedError where there is no kernel, with those that there are.
    """  # noqa: W291
    lowering = _Lowering(place)
    for c in program.constraints:
        lowering.program.constraints.add(c)
    lowering.block(program.global_block(), lowering.program.global_block())
    return Lowered(lowering.program, lowering.origins)


class _Lowering:
    def __init__(self, place: Place):
        self.program, self.values = Program(), IrMapping()
        self.origins: dict[Operation, Operation] = {}
        self.place = place.kind if place.kind in ("cpu", "gpu") else "custom"
        self.backend = place.kind.upper()

    def block(self, source: Block, target: Block) -> None:
        """Fill `target` with what `source` becomes.  Keeps its own stack, so depth of nesting costs no frames."""
        pending = [(source, target)]
        while pending:
            source, target = pending.pop()
            for arg in source.args():
                new = target.add_arg(allocated(arg.type(), self.place))
                new.attributes.update(arg.attributes)
                self.values.add(arg, new)
            for op in source:
                pending += self.operation(op, target)

    def operation(self, op: Operation, target: Block) -> list[tuple[Block, Block]]:
        """Append what `op` becomes; returns the blocks that are still to be filled, with theirs."""
        name, row, attributes = op.name(), op.row, dict(op.attributes)
        if (row is not None or name in ("pd_op.data", "pd_op.fetch")) and name not in MAKERS:
            name, attributes = self.kernel(op, row, attributes)
        elif op.regions and (name in MAKERS or not op.info.registered):     # what is inside is no kernel of ours
            new = clone_operation(op, self.values)
            for made in new.results():
                made.set_type(allocated(made.type(), self.place))
            self.add(op, new, target)
            return []
        operands = [self.values.look_up(v) for v in op.operands_source()]
        if self.place != "cpu" and op.name() in (*WRITES, "pd_op.fetch"):
            operands = [self.moved(v, TO_HOST, "cpu", op, target) for v in operands]
        place = ("undefined" if op.name() == "pd_op.data" else
                 "cpu" if op.name() in (*READS, "pd_op.fetch") else self.place)
        types = [allocated(r.type(), place) for r in op.results()]
        if name == "builtin.combine":
            types = [VectorType(v.type() for v in operands)]
        elif name == "builtin.split" and isinstance(vector := operands[0].type(), VectorType):
            types = list(vector.types)
        new = Operation(name, operands, attributes, types, op.num_regions())
        self.add(op, new, target)
        for old, made in zip(op.results(), new.results(), strict=True):
            result: Value = made
            if self.place != "cpu" and op.name() in (*READS, "pd_op.data"):
                result = self.moved(result, TO_DEVICE, self.place, op, target)
            self.values.add(old, result)
        return [(block, new_region.add_block()) for region, new_region in zip(op.regions, new.regions, strict=True)
                for block in region.blocks]

    def kernel(self, op: Operation, row: Row | None, attributes: dict) -> tuple[str, dict]:
        """The name and the attributes of the kernel operation."""
        short, key = op.name().partition(".")[2], kernel_key(op, self.backend)
        if row is not None:
            try:
                select(row, key)
            except NotImplementedError as error:
                error.add_note(user_error(op, "while its kernel was chosen"))
                raise
        return f"kernel.{short}", attributes | {"op_name": op.name(), "kernel_name": short,
                                                "kernel_key": KernelKeyAttribute(key)}

    def moved(self, value: Value, name: str, place: str, origin: Operation, target: Block) -> Value:
        """`value`, copied to another place."""
        if not isinstance(value.type(), TensorType):
            return value
        key = KernelKey(self.backend, LAYOUT, dtypes.of(value.dtype).name)
        attributes = {"op_name": f"pd_op.{name}", "kernel_name": name, "kernel_key": KernelKeyAttribute(key)}
        new = Operation(f"kernel.{name}", [value], attributes, [allocated_at(value, place)])
        self.add(origin, new, target)
        return new.result(0)

    def add(self, origin: Operation, new: Operation, target: Block) -> None:
        target.append(new)
        self.origins[new] = origin


def allocated_at(value: Value, place: str) -> TensorType:
    """The type of the value, in the memory of another place."""
    return AllocatedTensorType(place, value.shape, value.dtype)
