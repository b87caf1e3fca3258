"""The trace that binds outside tensors by their handle.

A tensor that a traced function finds around itself (a parameter of a layer that it closes over, a table made earlier)
becomes an input of the program.  The plain trace binds such an input to the array; here it is bound to the *tensor*, so
that every call reads what the tensor holds then, after an optimizer's step too, and gradients flow to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minipd.framework.row import Row
from minipd.framework.tensor import Tensor
from minipd.ir.program import Program
from minipd.ir.trace import Trace
from minipd.ir.traced import HANDLE
from minipd.ir.value import Value
from minipd.jit.spread import place_of

__all__: list[str] = []


class CapturingTrace(Trace):
    """handles: the names of inputs -> the tensors that they are bound to.  tape_wanted: the tape writes the gradient.
    spread: whether a distributed tensor is among them.

    While tracing, a captured tensor holds its value in the program, as the program's state does; `release` puts back
    what it held.
    """

    tells = False

    def __init__(self) -> None:
        super().__init__(Program())
        self.handles: dict[str, Tensor] = {}
        self.tape_wanted, self.spread = False, False
        self._held: list[tuple[Tensor, dict[str, Any], Value]] = []

    def around(self, handler: Callable) -> Callable:
        traced = super().around(handler)

        def capturing(row: Row, inputs: Any, attrs: dict) -> Any:
            for i, x in enumerate(inputs):
                if isinstance(x, Tensor) and i not in row.shape_only and (
                        isinstance(x.payload, np.ndarray) or place_of(x.payload) is not None):
                    self._bind(x)
            return traced(row, inputs, attrs)
        return capturing

    def by_tape(self) -> bool:
        super().by_tape()
        self.tape_wanted = True
        return True

    def gradients(self) -> list[tuple[Tensor, Any]]:
        """The captured tensors, each with the `.grad` that it had."""
        return [(x, fields.get("grad")) for x, fields, _ in self._held]

    def _bind(self, x: Tensor) -> None:
        name = self._new_name("captured")
        value = self.input(name, x.payload)
        self.spread = self.spread or place_of(x.payload) is not None
        self.handles[name] = x
        self._held.append((x, {k: v for k, v in vars(x).items() if k in HANDLE}, value))
        x.payload, x.node, x.index = value, None, 0
        x.storage, x.view_of, x.views = None, None, None

    def release(self) -> list[Tensor]:
        """Put back what captured tensors held; returns those that the function has written in place."""
        written = [x for x, _, value in self._held if x.payload is not value]
        for x, fields, _ in reversed(self._held):
            for name in HANDLE:
                if name in fields:
                    setattr(x, name, fields[name])
                else:
                    x.__dict__.pop(name, None)          # back to the default of the class
        return written
