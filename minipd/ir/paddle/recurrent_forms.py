"""Recurrent layers.  Paddle has one operator for all steps, layers and directions; ours is a program of steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minipd.framework.dim import is_symbolic
from minipd.framework.row import ROWS
from minipd.framework.tensor import Tensor
from minipd.ir.operation import Operation
from minipd.ir.paddle.form import loads
from minipd.ir.paddle.load import Loader
from minipd.ops.cast import cast
from minipd.ops.creation import arange
from minipd.ops.joining import concat, split
from minipd.ops.math import where

__all__: list[str] = []

#: how many blocks the gates have
GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


@loads("rnn")
def load_rnn(at: Loader, op: Operation) -> Any:
    """A sequence of a known number of steps; one of an unknown number stays an operation of Paddle's."""
    a, (x, states, weights, lengths, _) = at.attrs(op), at.inputs(op)
    drops = a["dropout_prob"] > 0 and not a["is_test"] and a["num_layers"] > 1
    if a["mode"] not in GATES or is_symbolic(x.shape[0]) or x.shape[0] == 0 or drops:
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
    masks = None
    if lengths is not None:
        alive = (arange(steps, dtype="int64").unsqueeze(-1) < cast(lengths, "int64").reshape([1, -1])).unsqueeze(-1)
        masks = split(alive, steps, 0)
    before = [split(s, cells, 0) for s in states]
    after: list[list[Tensor]] = [[] for _ in states]
    for layer in range(layers):
        outs = []
        for k in range(layer * directions, (layer + 1) * directions):
            out, last = one_way(mode, x, [s[k] for s in before], weights[2 * k:2 * k + 2],
                                weights[2 * (cells + k):2 * (cells + k) + 2], masks, k % directions == 1)
            outs.append(out)
            for kept, state in zip(after, last, strict=True):
                kept.append(state)
        x = concat(outs, -1) if len(outs) > 1 else outs[0]
        if masks is not None:
            x = where(alive, x, x * 0)
    return x, [concat(kept, 0) for kept in after]


def one_way(mode: str, x: Tensor, states: list[Tensor], weights: Sequence[Tensor], biases: Sequence[Tensor],
            masks: Sequence[Tensor] | None, reverse: bool) -> tuple[Tensor, list[Tensor]]:
    """One layer in one direction: (outputs [T, B, H], last states [1, B, H] each)."""
    of_input, of_hidden = weights
    separate = mode == "GRU"            # its new state has a gate between the two products
    inputs = x.matmul(of_input, transpose_y=True) + (biases[0] if separate else biases[0] + biases[1])
    parts = split(inputs, x.shape[0], 0)
    outs: list[Any] = [None] * len(parts)
    for t in reversed(range(len(parts))) if reverse else range(len(parts)):
        product = states[0].matmul(of_hidden, transpose_y=True)
        if mode == "LSTM":
            new = list(ROWS["lstm_unit"](parts[t] + product, states[1])[:2])
        elif separate:
            new = [ROWS["gru_unit"](parts[t], product + biases[1], states[0])[0]]
        else:
            new = [ROWS["tanh" if mode == "RNN_TANH" else "relu"](parts[t] + product)]
        outs[t] = new[0]
        states = new if masks is None else [where(masks[t], a, b) for a, b in zip(new, states, strict=True)]
    return concat(outs, 0), states
