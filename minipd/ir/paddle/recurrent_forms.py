"""Recurrent layers.  Paddle has one operator for all steps, layers and directions; ours is a program of steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minipd.framework.dim import is_symbolic
from minipd.framework.row import ROWS
from minipd.framework.tensor import Tensor
from minipd.ir.operation import Operation
from minipd.ir.paddle.form import loads
from minipd.ir.paddle.functions import function
from minipd.ir.paddle.load import Loader
from minipd.ops.attributes import shape
from minipd.ops.cast import cast
from minipd.ops.creation import arange, full
from minipd.ops.gather import gather
from minipd.ops.joining import concat, split
from minipd.ops.math import where

__all__: list[str] = []

#: how many blocks the gates have
GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


@loads("rnn")
def load_rnn(at: Loader, op: Operation) -> Any:
    """Every step written out, or a loop where their number is not known."""
    a, (x, states, weights, lengths, _) = at.attrs(op), at.inputs(op)
    drops = a["dropout_prob"] > 0 and not a["is_test"] and a["num_layers"] > 1
    if a["mode"] not in GATES or x.shape[0] == 0 or drops:
        raise at.refuse()
    states, weights = (v if isinstance(v, list) else [v] for v in (states, weights))
    directions = 2 if a["is_bidirec"] else 1
    out, last = at.call(recurrence, x, list(states), list(weights), lengths, a["mode"], a["num_layers"], directions)
    state = op.result(2)
    at.vectors[state] = list(last)
    at.values.update((v, v) for v in last)
    return [out, None, None, None]


def recurrence(x: Tensor, states: Sequence[Tensor], weights: Sequence[Tensor], lengths: Tensor | None, mode: str,
               layers: int, directions: int) -> tuple[Tensor, list[Tensor]]:
    """(outputs [T, B, D H], the states after the last step, each [L D, B, H]).

    x: [T, B, I].  states: [L D, B, H] each, two for an LSTM.  weights: (input, hidden) for each layer and direction,
    then their biases in the same order.  lengths: int [B]: behind the end of a sequence states stay, and outputs are 0.
    """
    cells = layers * directions
    steps = x.shape[0]
    alive = None
    if lengths is not None:
        alive = (arange(steps, dtype="int64").unsqueeze(-1) < cast(lengths, "int64").reshape([1, -1])).unsqueeze(-1)
    one_way = looped if is_symbolic(x.payload.shape[0]) else written_out
    before = [split(s, cells, 0) for s in states]
    after: list[list[Tensor]] = [[] for _ in states]
    for layer in range(layers):
        outs = []
        for k in range(layer * directions, (layer + 1) * directions):
            out, last = one_way(mode, x, [s[k] for s in before], weights[2 * k:2 * k + 2],
                                weights[2 * (cells + k):2 * (cells + k) + 2], alive, k % directions == 1)
            outs.append(out)
            for kept, state in zip(after, last, strict=True):
                kept.append(state)
        x = concat(outs, -1) if len(outs) > 1 else outs[0]
        if alive is not None:
            x = where(alive, x, x * 0)
    return x, [concat(kept, 0) for kept in after]


def products(mode: str, x: Tensor, weight: Tensor, biases: Sequence[Tensor]) -> Tensor:
    """What the inputs give to the gates, at all steps at once.  A GRU's new state has a gate between two products, so
    that the bias of the second is added to the second."""
    return x.matmul(weight, transpose_y=True) + (biases[0] if mode == "GRU" else biases[0] + biases[1])


def step(mode: str, part: Tensor, states: Sequence[Tensor], weight: Tensor, bias: Tensor) -> list[Tensor]:
    """The states after one step.  part: what its input gives to the gates."""
    product = states[0].matmul(weight, transpose_y=True)
    if mode == "LSTM":
        return list(ROWS["lstm_unit"](part + product, states[1])[:2])
    if mode == "GRU":
        return [ROWS["gru_unit"](part, product + bias, states[0])[0]]
    return [ROWS["tanh" if mode == "RNN_TANH" else "relu"](part + product)]


def written_out(mode: str, x: Tensor, states: list[Tensor], weights: Sequence[Tensor], biases: Sequence[Tensor],
                alive: Tensor | None, reverse: bool) -> tuple[Tensor, list[Tensor]]:
    """One layer in one direction: (outputs [T, B, H], last states [1, B, H] each)."""
    parts = split(products(mode, x, weights[0], biases), x.shape[0], 0)
    masks = None if alive is None else split(alive, len(parts), 0)
    outs: list[Any] = [None] * len(parts)
    for t in reversed(range(len(parts))) if reverse else range(len(parts)):
        new = step(mode, parts[t], states, weights[1], biases[1])
        outs[t] = new[0]
        states = new if masks is None else [where(masks[t], a, b) for a, b in zip(new, states, strict=True)]
    return concat(outs, 0), states


def looped(mode: str, x: Tensor, states: list[Tensor], weights: Sequence[Tensor], biases: Sequence[Tensor],
           alive: Tensor | None, reverse: bool) -> tuple[Tensor, list[Tensor]]:
    """The same as a loop of the program, which writes one step of the outputs after another."""
    parts = products(mode, x, weights[0], biases)
    steps = shape(parts)[0]
    # as many zeros as there are steps, whatever the inputs are
    zeros = full([x.payload.shape[0], *states[0].payload.shape[1:]], 0.0, x.dtype)

    def body(i: Tensor, outs: Tensor, *before: Tensor) -> list[Tensor]:
        t = (steps - 1 - i if reverse else i).reshape([1])
        new = step(mode, gather(parts, t, 0), before, weights[1], biases[1])
        outs = ROWS["index_put"](outs, t.reshape([1, 1]), new[0])
        if alive is not None:
            mask = gather(alive, t, 0)
            new = [where(mask, a, b) for a, b in zip(new, before, strict=True)]
        return [i + 1, outs, *new]
    first = [full([], 0, "int64"), zeros, *states]
    _, outs, *last = function("static.nn.while_loop")(lambda i, *_: i < steps, body, first)
    return outs, last
