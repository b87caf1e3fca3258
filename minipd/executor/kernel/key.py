"""Which of an operator's kernels: the key by which one is chosen, as a value and as an attribute."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from minipd.framework import dtype as dtypes
from minipd.ir.attributes import Attribute, attribute_kind

__all__ = ["KernelKey", "KernelKeyAttribute"]

ANY_LAYOUT = "Undefined(AnyLayout)"
UNDEFINED = "Undefined"


class KernelKey(NamedTuple):
    """Backend, layout and dtype, spelled as Paddle spells them.

    >>> KernelKey("CPU", "NCHW", "float32")
    <backend:CPU|layout:NCHW|dtype:float32>
    """

    backend: str
    layout: str
    dtype: str

    def __repr__(self) -> str:
        return f"<backend:{self.backend}|layout:{self.layout}|dtype:{self.dtype}>"

    @property
    def np(self) -> Any:
        """The numpy dtype; None where there is none."""
        return None if self.dtype == UNDEFINED else dtypes.to_np(self.dtype)


@attribute_kind("kernel_key")
class KernelKeyAttribute(Attribute):
    """The key of the kernel that was chosen."""

    __slots__ = ()
    value: KernelKey

    def literal(self) -> str:
        return "|".join(self.value)

    def paddle(self) -> str:
        return repr(self.value)

    @classmethod
    def parse(cls, parser: Any) -> KernelKeyAttribute:
        text = ""
        while True:                             # the layout may have parentheses of its own
            text += parser.until(")")
            if text.count("(") == text.count(")"):
                break
            parser.expect(")")
            text += ")"
        parts = text.split("|")
        if len(parts) != 3 or not all(re.fullmatch(r"\w+(\(\w+\))?", part) for part in parts):
            raise ValueError(f"kernel_key: expected backend|layout|dtype, such as CPU|NCHW|float32, got {text!r}")
        return cls(KernelKey(*parts))
