"""`paddle.pir_utils`: the switch from Paddle's older programs to PIR.  Programs of minipd are PIR's always."""

from __future__ import annotations

__all__ = ["IrGuard"]


class IrGuard:
    """`with IrGuard():` programs are PIR's inside, as they are outside."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass
