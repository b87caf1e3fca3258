"""SPMD rules of the steps of recurrent cells: all dimensions but the last, that of the gates, may be split."""

from __future__ import annotations

from typing import Any

from minipd.dist.spmd.notation import Notation, letters
from minipd.dist.spmd.table import spmd

__all__: list[str] = []


def _rule(state: Any, ins: str, outs: str) -> Notation:
    """`w` for a wide operand or result, [..., blocks * H], `s` for a state, [..., H]."""
    word = letters(len(state.shape) - 1)
    kinds = {"w": word + "k", "s": word + "m"}
    return Notation(tuple(kinds[k] for k in ins), tuple(kinds[k] for k in outs), whole="km")


@spmd("lstm_unit")
def lstm_unit(gates: Any, c: Any) -> Notation:
    return _rule(c, "ws", "ssw")


@spmd("lstm_unit_grad")
def lstm_unit_grad(g_out: Any, g_cell: Any, act: Any, c: Any, cell: Any) -> Notation:
    return _rule(c, "sswss", "ws")


@spmd("gru_unit")
def gru_unit(x: Any, u: Any, h: Any) -> Notation:
    return _rule(h, "wws", "sw")


@spmd("gru_unit_grad")
def gru_unit_grad(g: Any, u: Any, h: Any, act: Any) -> Notation:
    return _rule(h, "swsw", "wws")
