"""A cell over all steps of a sequence, forwards or backwards."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from minipd.framework.dim import is_symbolic
from minipd.framework.tensor import Tensor
from minipd.nn.layer import Layer
from minipd.nn.rnn.cell import Gated, map_states
from minipd.ops.creation import arange
from minipd.ops.joining import concat, split, stack
from minipd.ops.math import where

__all__ = ["RNN", "BiRNN"]


def scan(cell: Layer, inputs: Any, states: Any, lengths: Tensor | None = None, reverse: bool = False,
         **kwargs: Any) -> tuple[Any, Any]:
    """The cell, step after step; the last step first with `reverse`.

    inputs: [T, B, ...], or a structure of such tensors.  states: before the first step, [B, ...].
    lengths: int [B]: behind the end of a sequence its states stay as they are (outputs are computed all the same).
    Returns: the outputs, [T, B, ...], in the order of the inputs, and the states after the last step.
    """
    first: Any = inputs
    while not isinstance(first, Tensor):
        if not isinstance(first, (list, tuple, dict)) or not first:
            raise TypeError(f"{type(cell).__name__}: expected tensors as inputs, several in lists or dicts, got "
                            f"{type(first).__name__} {first!r}")
        first = next(iter(first.values())) if isinstance(first, dict) else first[0]
    n = first.shape[0]
    if is_symbolic(n) or n == 0:
        raise ValueError(f"{type(cell).__name__} over time: expected a known number of steps, at least 1, got {n}")
    masks = None if lengths is None else split(alive(lengths, n), n, 0)        # n times [1, B, 1]
    if type(cell).forward is Gated.forward and not cell._pre_hooks and not cell._post_hooks and not kwargs:
        return _gated(cell, inputs, states, masks, n, reverse)
    masks = masks and [m.squeeze(0) for m in masks]
    parts = map_states(lambda x: _Parts(part.squeeze(0) for part in split(x, n, 0)), inputs)
    steps = [map_states(lambda each, t=t: each.at[t], parts) for t in range(n)]
    outputs, states = _loop(functools.partial(cell, **kwargs), steps, states, masks, reverse)
    return map_states(lambda *parts: stack(parts), *outputs), states


def _gated(cell: Any, inputs: Tensor, states: Any, masks: list[Tensor] | None, n: int,
           reverse: bool) -> tuple[Tensor, Any]:
    """A cell of ours: all inputs are projected at once, and each step keeps a time dimension, of size 1, so that there
    are no reshapes between the steps."""
    cell.check(inputs, states)
    steps = split(cell.project(inputs), n, 0)
    outputs, states = _loop(cell.step, steps, map_states(lambda s: s.unsqueeze(0), states), masks, reverse)
    return concat(outputs, 0), map_states(lambda s: s.squeeze(0), states)


def _loop(step: Callable, inputs: list, states: Any, masks: list[Tensor] | None, reverse: bool) -> tuple[list, Any]:
    """(outputs, in the order of the inputs; last states)"""
    outputs: list = [None] * len(inputs)
    for t in reversed(range(len(inputs))) if reverse else range(len(inputs)):
        outputs[t], new = step(inputs[t], states)
        states = new if masks is None else map_states(lambda a, b, m=masks[t]: where(_fit(m, a), a, b), new, states)
    return outputs, states


class _Parts:
    """A tensor taken apart: what stands for it in a structure."""

    def __init__(self, parts: Iterable[Tensor]):
        self.at = list(parts)


def alive(lengths: Tensor, n: int) -> Tensor:
    """Which sequences have not ended before each of n steps: bool [n, B, 1]."""
    return (arange(n).unsqueeze(-1) < lengths.reshape([1, -1])).unsqueeze(-1)


def _fit(mask: Tensor, state: Tensor) -> Tensor:
    """The mask with as many dimensions as the state."""
    return mask if mask.ndim >= state.ndim else mask.reshape([*mask.shape, *([1] * (state.ndim - mask.ndim))])


def time_first(x: Any, time_major: bool) -> Any:
    """[T, B, ...] of [B, T, ...], or back; with `time_major` it is so already."""
    return x if time_major else map_states(lambda t: t.transpose([1, 0, *range(2, t.ndim)]), x)


def start(cell: Layer, inputs: Any, states: Any, time_major: bool) -> Any:
    """The states that were given, or the cell's first ones."""
    return cell.get_initial_states(inputs, batch_dim_idx=int(time_major)) if states is None else states


def _check_cell(what: str, cell: Any) -> None:
    if not isinstance(cell, Layer):
        raise TypeError(f"{what}: expected a cell, a Layer like LSTMCell with forward(inputs, states), got {cell!r}")


class RNN(Layer):
    """A cell over all steps of a sequence.

    cell: has forward(inputs [B, ...], states) -> (outputs [B, ...], new states).
    is_reverse: the last step first.  time_major: inputs and outputs are [T, B, ...] instead of [B, T, ...].

    Called with (inputs, initial_states=None, sequence_length=None, **kwargs), it returns the outputs of all steps, in
    the order of the inputs, and the states after the last one.  Behind the end of a sequence, which `sequence_length`,
    int [B], gives, its states stay as they are; kwargs go to the cell.

    >>> from minipd.nn.rnn.cell import SimpleRNNCell
    >>> from minipd.ops.creation import ones
    >>> outputs, last = RNN(SimpleRNNCell(16, 32))(ones([4, 23, 16]))
    >>> outputs.shape, last.shape
    (paddle.Size([4, 23, 32]), paddle.Size([4, 32]))
    """

    def __init__(self, cell: Layer, is_reverse: bool = False, time_major: bool = False):
        super().__init__()
        _check_cell("RNN", cell)
        self.cell, self.is_reverse, self.time_major = cell, is_reverse, time_major

    def forward(self, inputs: Any, initial_states: Any = None, sequence_length: Tensor | None = None,
                **kwargs: Any) -> tuple[Any, Any]:
        states = start(self.cell, inputs, initial_states, self.time_major)
        outputs, states = scan(self.cell, time_first(inputs, self.time_major), states, sequence_length,
                               self.is_reverse, **kwargs)
        return time_first(outputs, self.time_major), states


class BiRNN(Layer):
    """One cell forwards and one backwards over a sequence; the outputs of both are concatenated in the last dimension.

    Called like an RNN, with initial states for both cells, (forward, backward); returns the states of both likewise.
    """

    def __init__(self, cell_fw: Layer, cell_bw: Layer, time_major: bool = False):
        super().__init__()
        for cell in (cell_fw, cell_bw):
            _check_cell("BiRNN", cell)
        self.cell_fw, self.cell_bw, self.time_major = cell_fw, cell_bw, time_major

    def forward(self, inputs: Any, initial_states: Any = None, sequence_length: Tensor | None = None,
                **kwargs: Any) -> tuple[Any, Any]:
        if initial_states is not None and len(initial_states) != 2:
            raise ValueError(f"BiRNN: expected initial states of both cells, (forward, backward), got "
                             f"{len(initial_states)}")
        x = time_first(inputs, self.time_major)
        outputs, finals = [], []
        for cell, states, reverse in zip((self.cell_fw, self.cell_bw), initial_states or (None, None), (False, True),
                                         strict=True):
            states = start(cell, inputs, states, self.time_major)
            out, last = scan(cell, x, states, sequence_length, reverse, **kwargs)
            outputs.append(out)
            finals.append(last)
        both = map_states(lambda *parts: concat(parts, -1), *outputs)
        return time_first(both, self.time_major), tuple(finals)
