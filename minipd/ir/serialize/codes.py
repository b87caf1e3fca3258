"""The codes of Paddle's JSON: what stands under "#" for an operation, a type, an attribute.

A code is a dialect's number, a dot and a name: `1.matmul`, `0.t_f32`, `1.a_intarray`.  Numbers and names are those of
Paddle 3.3; `builtin.parameter` alone has a code without a number, `p`.
"""

from __future__ import annotations

from minipd.ir.attributes import DTYPE_NAMES
from minipd.ir.types import SPELLING

__all__: list[str] = []

MAGIC, VERSION = "pir", 4
#: operation `parameter` of dialect `builtin`, the most frequent one
PARAMETER, PARAMETER_NAME = "p", "builtin.parameter"

DIALECTS = ("builtin", "pd_op", "cf", "custom_op", "dist_op")
NUMBERS = {name: str(i) for i, name in enumerate(DIALECTS)}

#: numpy dtype -> the code of the element type, and back
ELEMENTS = {dtype: f"0.t_{'bool' if spelling == 'b' else 'ui8' if spelling == 'u8' else spelling}"
            for dtype, spelling in SPELLING.items()}
BY_ELEMENT = {code: dtype for dtype, code in ELEMENTS.items()}

TENSOR, VECTOR, NULL, STACK = "0.t_dtensor", "0.t_vec", "NULL", "2.t_{}"
#: what follows element type and sizes in a dense tensor type: layout, levels of detail, offset
USUAL: tuple = ("NCHW", [], 0)

#: the first two entries of a place: kind of device, number of the device
PLACES = {"undefined": 0, "cpu": 1, "gpu": 2}
BY_PLACE = {number: name for name, number in PLACES.items()}

#: attributes of results; everything else is an attribute of the operation
OF_RESULTS = frozenset({"persistable", "stop_gradient"})
#: attributes that Paddle does not write either
UNWRITTEN = frozenset({"op_callstack"})
#: of a parameter: flags of the operation, flags of its result
FLAGS, RESULT_FLAGS = ("is_distributed", "is_parameter", "need_clip"), ("persistable", "stop_gradient", "trainable")

#: numpy dtype -> its name; None is the dtype "that of the input"
DTYPES = DTYPE_NAMES | {None: "Undefined(ALL_DTYPE)"}
BY_DTYPE = {name: dtype for dtype, name in DTYPES.items()}

#: floats that JSON cannot spell
SPECIAL = {"NaN": float("nan"), "INF": float("inf"), "-INF": float("-inf")}


def op_code(name: str) -> str:
    """
    >>> op_code("pd_op.matmul"), op_code("builtin.parameter"), op_code("cinn_op.group")
    ('1.matmul', 'p', 'cinn_op.group')
    """
    if name == PARAMETER_NAME:
        return PARAMETER
    dialect, _, rest = name.partition(".")
    return f"{NUMBERS.get(dialect, dialect)}.{rest}"


def op_name(code: str) -> str | None:
    """The operation's name; None for what is no code.

    >>> op_name("1.matmul"), op_name("p"), op_name("cinn_op.group"), op_name("9.matmul"), op_name("matmul")
    ('pd_op.matmul', 'builtin.parameter', 'cinn_op.group', None, None)
    """
    if code == PARAMETER:
        return PARAMETER_NAME
    dialect, _, rest = code.partition(".")
    if dialect.isdecimal():
        dialect = DIALECTS[int(dialect)] if len(dialect) == 1 and int(dialect) < len(DIALECTS) else ""
    return f"{dialect}.{rest}" if dialect and rest else None

