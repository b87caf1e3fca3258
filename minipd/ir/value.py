"""Values, and who uses them.

The invariant of the use-def chain: operand `i` of an operation holds value `v` if and only if that `OpOperand` is in
`v`'s use list.  Only `OpOperand.set_source` writes either side, so the two cannot drift apart.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from minipd.framework.constraints import user_line
from minipd.framework.rank import current
from minipd.framework.row import ROWS
from minipd.framework.tensor import Tensor
from minipd.ir.attributes import ArrayAttribute, Attribute, BoolAttribute
from minipd.ir.text import quoted, who_asks
from minipd.ir.types import DenseTensorType, TensorType, Type, VectorType

if TYPE_CHECKING:
    from minipd.ir.block import Block
    from minipd.ir.operation import Operation

__all__ = ["BlockArgument", "OpOperand", "OpResult", "Value"]

#: how Paddle writes an optional operand that is left out
NULL_VALUE = "<<NULL VALUE>>"
#: questions that a tensor of sizes can answer while tracing -> whether symbolic sizes are an answer
OF_SIZES = {"item()": True, "tolist()": True, "int()": False, "index()": False}


class Value:
    """One value of a program: the result of an operation, or an argument of a block.

    It has a shape and a dtype, so it serves as its own meta, and as the payload of a Tensor while tracing.
    """

    __slots__ = ("_type", "_uses")
    traced = True                       # as the payload of a Tensor: a write rebinds the handle

    def __init__(self, type: Type):
        self._type = type
        self._uses: dict[OpOperand, None] = {}      # a set that keeps the order in which uses were made

    # ---------------------------------------------------------------------------------------------------- type
    def type(self) -> Type:
        return self._type

    def set_type(self, type: Type) -> None:
        self._type = type

    @property
    def shape(self) -> tuple:
        return self._tensor_type("shape").shape

    @property
    def dtype(self) -> np.dtype:
        return self._tensor_type("dtype").dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def mesh(self) -> Any:
        """Of a distributed value; AttributeError of another."""
        return self._type.mesh                  # type: ignore[attr-defined]

    @property
    def placements(self) -> Any:
        """Of a distributed value; AttributeError of another."""
        return self._type.placements            # type: ignore[attr-defined]

    def meta(self) -> Value:
        """The same without data: a value has none."""
        return self

    def _tensor_type(self, asked: str) -> TensorType:
        if not isinstance(self._type, TensorType):
            raise TypeError(f"{asked} of {describe(self)}: expected a tensor, got a value of type {self._type}")
        return self._type

    # ---------------------------------------------------------------------------------------------------- uses
    @property
    def uses(self) -> tuple[OpOperand, ...]:
        """The operands that hold this value, in the order in which they took it."""
        return tuple(self._uses)

    def first_use(self) -> OpOperand | None:
        return next(iter(self._uses), None)

    def all_used_ops(self) -> list[Operation]:
        """The operations that use this value, each once."""
        return list(dict.fromkeys(use.owner() for use in self._uses))

    def use_empty(self) -> bool:
        return not self._uses

    def use_count(self) -> int:
        """How many operands hold this value."""
        return len(self._uses)

    def has_one_use(self) -> bool:
        return len(self._uses) == 1

    def replace_all_uses_with(self, other: Value) -> None:
        """Every operand that holds this value takes `other` instead."""
        for use in self.uses:
            use.set_source(other)

    # ------------------------------------------------------------------------------------------------- origin
    def get_defining_op(self) -> Operation | None:
        """The operation whose result this is; None for a block argument."""
        return None

    def parent_block(self) -> Block | None:
        """The block in which this value comes into being."""
        raise NotImplementedError

    def is_same(self, other: Value) -> bool:
        return self is other

    def initialized(self) -> bool:
        """False only for what `pir.fake_value` makes, which stands for no value."""
        return True

    def all_used_ops_in_same_block(self) -> list[Operation]:
        """The operations of this value's own block that use it, or in whose regions it is used; each once."""
        block = self.parent_block()
        found: dict[Operation, None] = {}
        for op in self.all_used_ops():
            user: Operation | None = op
            while user is not None and user.parent is not block:
                user = user.get_parent_op()
            if user is not None:
                found[user] = None
        return list(found)

    def is_combine(self) -> bool:
        """Whether it is several values as one."""
        return isinstance(self._type, VectorType)

    def is_dense_tensor_type(self) -> bool:
        return isinstance(self._type, DenseTensorType)

    @property
    def name(self) -> str:
        """The name of an input or of program state.

        Raises: ValueError for other values, which have none.
        """
        op = self.get_defining_op()
        for attribute in ("parameter_name", "name"):
            if op is not None and op.name() in ("builtin.parameter", "pd_op.data") and attribute in op.attributes:
                return op.attributes[attribute].value
        raise ValueError(f"name of {describe(self)}: expected an input or program state, only these have names")

    # --------------------------------------------------------------------------------------------- attributes
    def attribute(self, name: str) -> Attribute | None:
        """An attribute of this value, such as `stop_gradient`."""
        raise NotImplementedError

    def set_attribute(self, name: str, attribute: Attribute) -> None:
        raise NotImplementedError

    @property
    def stop_gradient(self) -> bool:
        """True if no gradient flows into this value; Paddle's default where nothing is said."""
        found = self.attribute("stop_gradient")
        return True if found is None else found.value

    @stop_gradient.setter
    def stop_gradient(self, on: bool) -> None:
        self.set_attribute("stop_gradient", BoolAttribute(on))

    @property
    def persistable(self) -> bool:
        """True for values that are program state (parameters, moments)."""
        found = self.attribute("persistable")
        return False if found is None else found.value

    @persistable.setter
    def persistable(self, on: bool) -> None:
        self.set_attribute("persistable", BoolAttribute(on))

    # ----------------------------------------------------------------------------------------- as a payload
    def materialize(self, asked: str) -> np.ndarray:
        """A traced tensor was asked for its values: it has none yet, unless they are sizes (see `shape_data`).

        Raises: TypeError for all others.
        """
        if asked in OF_SIZES:
            from minipd.ir.shape_data import elements
            known = elements(self)
            if known is not None and (OF_SIZES[asked] or all(isinstance(d, int) for d in known.flat)):
                return known
        raise TypeError(f"{asked}: expected a tensor with values, got {describe(self)}, which is being traced: its "
                        f"values exist only when the program runs (asked for at {quoted(user_line())}). Branch on it "
                        "with paddle.static.nn.cond, select with paddle.where, compute this outside of the traced "
                        "function, or compile it in segments, to_static(full_graph=False)")

    def index(self) -> int:
        """Which result of its operation, or argument of its block, it is."""
        raise NotImplementedError

    def as_handle(self, stop_gradient: bool) -> str:
        """What a tensor that holds this value prints: the words in which Paddle prints a value.

        Raises: TypeError where the user's code asks, in a function of which nothing but the program remains.
        """
        if not getattr(current().ground, "tells", True) and (where := who_asks(sys._getframe(1))) is not None:
            raise TypeError(
                f"the text of a tensor: expected a tensor with values, got {describe(self)}, which is being traced: "
                f"its values exist only when the program runs (asked for at {quoted(where)}). print(\"words\", x) "
                "works, for the program prints then, and so do the messages of assert and raise; for other text "
                "return the tensor and write it outside, or compile in segments, to_static(full_graph=False)")
        at = (f"define_op_name={op.name()}, index={self.index()}" if (op := self.get_defining_op()) is not None else
              f"position block_arg, index = {self.index()}")
        return f"Value({at}, dtype={self._type.text(False)}, stop_gradient={stop_gradient})"

    def detached(self, handle: Tensor) -> Tensor:
        """`handle.detach()` for a handle on this value: a view of it through which no gradient flows."""
        return ROWS["share_data_"](handle)

    def __repr__(self) -> str:
        return describe(self)


class OpResult(Value):
    """Result `index` of an operation."""

    __slots__ = ("_index", "_op")

    def __init__(self, type: Type, op: Operation, index: int):
        super().__init__(type)
        self._op, self._index = op, index

    def get_defining_op(self) -> Operation:
        return self._op

    def index(self) -> int:
        return self._index

    def parent_block(self) -> Block | None:
        return self._op.parent

    def attribute(self, name: str) -> Attribute | None:
        """Attributes of results are stored on the operation, as an array with one entry per result."""
        found = self._op.attributes.get(name)
        return found.items[self._index] if isinstance(found, ArrayAttribute) else None

    def set_attribute(self, name: str, attribute: Attribute) -> None:
        found = self._op.attributes.get(name)
        default = BoolAttribute(name == "stop_gradient")
        items: list[Attribute] = [default] * self._op.num_results()
        if isinstance(found, ArrayAttribute):
            items = list(found.items)
        items[self._index] = attribute
        self._op.attributes[name] = ArrayAttribute(tuple(items))


class BlockArgument(Value):
    """Argument `index` of a block."""

    __slots__ = ("_block", "_index", "attributes")

    def __init__(self, type: Type, block: Block, index: int):
        super().__init__(type)
        self._block, self._index = block, index
        self.attributes: dict[str, Attribute] = {}

    def index(self) -> int:
        return self._index

    def parent_block(self) -> Block:
        return self._block

    def attribute(self, name: str) -> Attribute | None:
        return self.attributes.get(name)

    def set_attribute(self, name: str, attribute: Attribute) -> None:
        self.attributes[name] = attribute


class OpOperand:
    """Operand `index` of the operation `owner`: one link of the use-def chain."""

    __slots__ = ("_index", "_owner", "_source")

    def __init__(self, owner: Operation, index: int, source: Value | None):
        self._owner, self._index = owner, index
        self._source: Value | None = None
        self.set_source(source)

    def owner(self) -> Operation:
        return self._owner

    def index(self) -> int:
        return self._index

    def source(self) -> Value:
        """The value held.  (None where an optional operand is left out, in Paddle's form only: the programs of our rows
        have no such operands, so the annotation leaves it out.)"""
        return self._source  # type: ignore[return-value]

    def set_source(self, value: Value | None) -> None:
        """Hold `value` from now on; None lets go, when the operation is erased.

        The use lists follow: this operand is in the list of the value that it holds, and in no other.
        """
        if self._source is not None:
            self._source._uses.pop(self, None)
        self._source = value
        if value is not None:
            value._uses[self] = None

    def __repr__(self) -> str:
        return f"operand {self._index} of {self._owner.name()}"


def describe(value: Any) -> str:
    """A value as errors name it: `result 0 of pd_op.add: tensor<2x3xf32>`."""
    if isinstance(value, OpResult):
        return f"result {value.index()} of {value.get_defining_op().name()}: {value.type()}"
    if isinstance(value, BlockArgument):
        return f"block argument {value.index()}: {value.type()}"
    return NULL_VALUE if value is None else repr(value)
