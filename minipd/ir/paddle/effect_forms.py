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


@form("p2p_send", paddle="send_v2")
class Send:
    """Paddle has no tags: what tells two streams of messages apart is their communicator, `ring_id`."""

    def save(to, call):
        return to.op("send_v2", call.tensors, {"ring_id": call.attrs["tag"], "peer": call.attrs["dst"],
                                               "use_calc_stream": True, "dynamic_shape": False}, [])

    def load(at, op):
        a = at.attrs(op)
        return at.row("p2p_send", *at.inputs(op), dst=a["peer"], tag=a["ring_id"])


@form("p2p_recv", paddle="recv_v2")
class Receive:
    """The other end."""

    def save(to, call):
        a = call.attrs
        return to.op("recv_v2", [], {"out_shape": list(a["shape"]), "dtype": a["dtype"], "peer": a["src"],
                                     "ring_id": a["tag"], "use_calc_stream": True, "dynamic_shape": False}, call.types)

    def load(at, op):
        a = at.attrs(op)
        return at.row("p2p_recv", src=a["peer"], shape=tuple(a["out_shape"]), dtype=a["dtype"], tag=a["ring_id"])
