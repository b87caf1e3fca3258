"""`Print` and `Assert`: to look at a program while it runs, and to stop it.

Both act whenever the program comes by: in a branch if it is taken, in a loop in every iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minipd.executor import Call, register_maker
from minipd.framework.meta import describe
from minipd.framework.row import ROWS
from minipd.framework.tensor import Tensor
from minipd.ir.operation import Operation
from minipd.ir.schema import op_attrs, result_values, tensor_operands
from minipd.static.control_flow import check_condition

__all__ = ["Assert", "Print"]

PHASES = ("forward", "backward", "both")


def Print(input: Tensor, first_n: int = -1, message: str | None = None, summarize: int = 20,        # noqa: N802
          print_tensor_name: bool = True, print_tensor_type: bool = True, print_tensor_shape: bool = True,
          print_tensor_layout: bool = True, print_tensor_lod: bool = True, print_phase: str = "both") -> Tensor:
    """Paddle's `paddle.static.Print`: `input`, printed whenever it is computed, as what it is used for goes on.

    first_n: how often a prepared program prints at most (negative: always).  message: what it says besides.  summarize:
    how many elements (-1: all).  print_phase: print the value ("forward"), its gradient ("backward"), or "both".
    Returns the tensor to go on with: what nothing uses prints nevertheless, but only the result has the gradient.

    Raises: TypeError for what is no tensor, ValueError for another phase.

    >>> from minipd.ops.creation import to_tensor
    >>> y = Print(to_tensor([1.0, 2.0]), message="here", print_tensor_lod=False)
    Variable: var
      - message: here
      - place: Place(cpu)
      - shape: [2]
      - layout: NCHW
      - dtype: float32
      - data: [1.000000 2.000000]
    """
    if not isinstance(input, Tensor):
        raise TypeError(f"Print: expected a tensor, got {input!r}")
    if print_phase.lower() not in PHASES:
        raise ValueError(f"Print: expected print_phase to be one of {', '.join(PHASES)}, got {print_phase!r}")
    return ROWS["print"](
        input, first_n=first_n, message=message or "", summarize=summarize, print_tensor_name=print_tensor_name,
        print_tensor_type=print_tensor_type, print_tensor_shape=print_tensor_shape,
        print_tensor_layout=print_tensor_layout, print_tensor_lod=print_tensor_lod, print_phase=print_phase.upper())


def Assert(cond: Any, data: Sequence[Tensor] | None = None, summarize: int = 20,                    # noqa: N802
           name: str | None = None, message: str = "") -> None:
    """Paddle's `paddle.static.nn.control_flow.Assert`: stops unless `cond` is true.

    cond: a bool tensor of one element.  data: tensors to print before that, `summarize` elements of each (-1: all).
    message: what the error says besides (ours).

    Raises: an error that is a ValueError and an AssertionError when it runs and `cond` is false; TypeError for a
    condition that is none.

    >>> from minipd.ops.creation import to_tensor
    >>> Assert(to_tensor(0) < 1)
    >>> try:
    ...     Assert(to_tensor(2) < 1, message="too large")
    ... except ValueError as error:
    ...     print(error)
    Assert: expected the condition to be true, got false: too large
    """
    if not isinstance(cond, Tensor):
        raise TypeError(f"Assert: expected the condition to be a bool tensor, got {cond!r}")
    if data is not None and not isinstance(data, (list, tuple)):
        raise TypeError(f"Assert: expected data to be a list or a tuple of tensors, got "
                        f"{describe(data.payload) if isinstance(data, Tensor) else repr(data)}")
    check_condition("Assert", cond)
    ROWS["assert"](cond, *(data or ()), summarize=summarize, message=message)


def _counted(op: Operation) -> Call:
    """The call of a `pd_op.print`, which counts how often it has printed."""
    row_kernel, left = ROWS["print"].kernel, op_attrs(op)["first_n"]
    assert row_kernel is not None

    def kernel(x: Any, **attrs: Any) -> Any:
        nonlocal left
        shown, left = left != 0, max(left - 1, 0) if left >= 0 else left
        return row_kernel(x, **attrs | {"first_n": -1 if shown else 0})
    return Call(op, tensor_operands(op), result_values(op), op_attrs(op), kernel)


register_maker("pd_op.print", _counted)
