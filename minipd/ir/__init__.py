"""PIR: programs as data.

    context                what all programs share: one object for equal types and attributes; the dialects
    types, attribute, attributes   what values and properties of operations can be
    value, operation, block, region, program     the graph
    dialect, builtin, effects    which operations there are, and how to declare more
    control_view           control flow in its own words
    traits, interfaces     what may be assumed of an operation, and what it can do
    schema                 how a call of a row is laid out as an operation
    sizes                  how large values are
    verify, signature, equality  is it well formed, by itself and where it stands; do two say the same
    printer, parser        the two print styles, and reading the exact one back
    builder, trace, traced programs from code: by hand, the trace interpreter, `trace(fn, *specs)`
    structure              nested results, as a flat list and back
    mapping                copies
    shape_data             what is known of tensors of sizes; the dialect shape
    backward, dce          gradients of programs, through the rows' own rules; removing what is dead
    reach, carried, loop_gradient       parts of backward: how far gradients flow; stacks; loops
    interpret              what a program means: numpy, one operation at a time, everything checked
    evaluate               giving a program another meaning, operation by operation
    passes                 what a pass is
    paddle/                Paddle's form of a program: its operators, its text; `whole`: functions that are one of them
    serialize/             Paddle's files
"""

from minipd.framework.row import Trait
from minipd.ir import builtin as _dialects  # registers builtin, cf and pd_op
from minipd.ir import effects as _rows  # registers print, assert and draw_key
from minipd.ir import shape_data as _shape  # registers shape
from minipd.ir.attributes import Attribute, attribute
from minipd.ir.block import Block
from minipd.ir.builder import Builder
from minipd.ir.dialect import Dialect, register_dialect
from minipd.ir.mapping import IrMapping
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.region import Region
from minipd.ir.traits import IrTrait
from minipd.ir.types import DenseTensorType, TensorType, Type, VectorType
from minipd.ir.value import BlockArgument, OpOperand, OpResult, Value

__all__ = ["Attribute", "Block", "BlockArgument", "Builder", "DenseTensorType", "Dialect", "IrMapping", "IrTrait",
           "OpOperand", "OpResult", "Operation", "Program", "Region", "TensorType", "Trait", "Type", "Value",
           "VectorType", "attribute", "register_dialect"]

del _dialects, _rows, _shape
