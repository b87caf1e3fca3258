"""Forms of operators that do more than compute results."""

from __future__ import annotations

from minipd.ir.paddle.form import form

__all__: list[str] = []


@form("assert")
class Assert:
    """What an error says besides is ours, and is not written."""

    def save(to, call):
        return to.op("assert", call.tensors, {"summarize": call.attrs["summarize"]}, [])

    def load(at, op):
        condition, data = op.operands_source()
        return at.row("assert", at.value(condition), *at.tensors(data), summarize=at.attrs(op)["summarize"])
