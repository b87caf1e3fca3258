"""What a form is: how one of our operators is written as Paddle's, and read back.

Most need none: where names of operands and attributes agree, `same` does both directions from the signature.  The
others have a class with both directions side by side:

    @form("square_root", paddle="sqrt")
    class SquareRoot:
        def save(to, call): ...         # our operation -> operations in Paddle's form; returns the results
        def load(at, op): ...           # Paddle's operation -> a call of rows; returns the results

`save` gets a `Call` (our operation, its tensors and attributes already translated), `load` the operation as it is.  One
of Paddle's that nothing of ours is written as has a `load` alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minipd.ir.operation import Operation
    from minipd.ir.paddle.load import Loader
    from minipd.ir.paddle.save import Call, Saver, Whole

__all__ = ["LOADS", "SAVES", "WHOLES", "Apart", "form", "loads", "whole_form"]

Save = Callable[["Saver", "Call"], Any]
Load = Callable[["Loader", "Operation"], Any]

#: our operator -> how to write it
SAVES: dict[str, Save] = {}
#: Paddle's operator -> how to read it
LOADS: dict[str, Load] = {}
#: a public function that calls several of our operators -> how to write it as Paddle's function does
WHOLES: dict[str, Callable[[Saver, Whole], Any]] = {}


class Apart(Exception):
    """This call of a function is written as the operators that it called."""


def form(*ours: str, paddle: str | tuple[str, ...] | None = None) -> Callable[[type], type]:
    """Register the two directions of our operators; `paddle` names Paddle's, where they are called something else."""
    theirs = ours if paddle is None else (paddle,) if isinstance(paddle, str) else paddle

    def register(cls: type) -> type:
        if hasattr(cls, "save"):
            SAVES.update(dict.fromkeys(ours, cls.save))
        if hasattr(cls, "load"):
            for name in theirs:
                assert name not in LOADS, f"two forms of Paddle's {name}"
                LOADS[name] = cls.load
        return cls
    return register


def loads(*theirs: str) -> Callable[[Load], Load]:
    """Register how operators of Paddle's are read that nothing of ours is written as."""

    def register(function: Load) -> Load:
        for name in theirs:
            assert name not in LOADS, f"two forms of Paddle's {name}"
            LOADS[name] = function
        return function
    return register


def whole_form(*functions: str) -> Callable[[Callable[[Saver, Whole], Any]], Callable]:
    """Register how calls of public functions are written that Paddle has an operator for, and we have not.

    The function gets the call, and returns the results; it may raise `Apart`.
    """

    def register(function: Callable[[Saver, Whole], Any]) -> Callable:
        WHOLES.update(dict.fromkeys(functions, function))
        return function
    return register
