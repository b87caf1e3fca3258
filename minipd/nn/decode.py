"""Decoding step by step: `dynamic_decode` runs a Decoder until it has finished; BeamSearchDecoder is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from minipd.framework.tensor import Tensor
from minipd.nn.functional.activation import log_softmax
from minipd.nn.functional.encoding import gather_tree
from minipd.nn.rnn.cell import map_states
from minipd.ops.cast import cast
from minipd.ops.creation import arange, full, to_tensor, zeros
from minipd.ops.division import floor_divide, mod
from minipd.ops.joining import stack
from minipd.ops.logic import logical_not, logical_or
from minipd.ops.math import where
from minipd.ops.sorting import topk

__all__ = ["BeamSearchDecoder", "dynamic_decode"]

NEVER = -1e9            # the log-probability of what must not be chosen


class Decoder:
    """What `dynamic_decode` runs."""

    def initialize(self, inits: Any) -> tuple[Any, Any, Tensor]:
        """(inputs, states, finished) for the first step; finished is a bool tensor."""
        raise NotImplementedError(f"{type(self).__name__} defines no initialize(inits)")

    def step(self, time: Tensor, inputs: Any, states: Any, **kwargs: Any) -> tuple[Any, Any, Any, Tensor]:
        """(outputs, states, inputs of the next step, finished) of step `time`, an int64 tensor of one element."""
        raise NotImplementedError(f"{type(self).__name__} defines no step(time, inputs, states)")

    def finalize(self, outputs: Any, final_states: Any, sequence_lengths: Tensor) -> tuple[Any, Any]:
        """What to make of all outputs, [steps, ...], and of the last states."""
        raise NotImplementedError(f"{type(self).__name__} defines no finalize(outputs, final_states, lengths)")

    @property
    def tracks_own_finished(self) -> bool:
        """Whether `finished` of a step may be False again where it was True before."""
        return False


def dynamic_decode(decoder: Any, inits: Any = None, max_step_num: int | None = None, output_time_major: bool = False,
                   impute_finished: bool = False, is_test: bool = False, return_length: bool = False,
                   **kwargs: Any) -> tuple:
    """Step after step of the decoder until everything has finished, or step `max_step_num` (counted from 0) is done.

    Args:
        decoder: a Decoder.
        inits: what its `initialize` gets.
        output_time_major: outputs [steps, batch, ...] instead of [batch, steps, ...].
        impute_finished: keep the states of what has finished as they are.
        is_test: without effect.
        kwargs: for the decoder's `step`.

    Returns: (outputs, final states), with return_length also the lengths, int64 like the decoder's `finished`: the
    states' own `lengths` if they have such, else how many steps there were before the one that finished.
    """
    inputs, states, finished = decoder.initialize(inits)
    lengths = zeros(finished.shape, "int64")
    steps: list = []
    while not finished.all().item() and (max_step_num is None or len(steps) <= max_step_num):
        outputs, new_states, inputs, now = decoder.step(to_tensor([len(steps)], "int64"), inputs, states, **kwargs)
        if not decoder.tracks_own_finished:
            now = logical_or(now, finished)
            lengths = lengths + cast(logical_not(now), "int64")
        if impute_finished:
            new_states = map_states(lambda new, old, f=finished: where(_like(f, new), old, new), new_states, states)
        states, finished = new_states, now
        lengths = getattr(states, "lengths", lengths)
        steps.append(outputs)
    if not steps:
        raise ValueError("dynamic_decode: expected something to decode, everything had finished before the first step")
    outputs, states = decoder.finalize(map_states(lambda *parts: stack(parts), *steps), states, lengths)
    if not output_time_major:
        outputs = map_states(lambda x: x.transpose([1, 0, *range(2, x.ndim)]), outputs)
    return (outputs, states, lengths) if return_length else (outputs, states)


def _like(flags: Tensor, x: Tensor) -> Tensor:
    """The flags with as many dimensions as x."""
    return flags.reshape([*flags.shape, *([1] * (x.ndim - flags.ndim))])


class Outputs(NamedTuple):
    """What one step of a beam search chose: float [B, beams], int64, int64."""

    scores: Tensor
    predicted_ids: Tensor
    parent_ids: Tensor


class States(NamedTuple):
    """A beam search between steps: the cell's [B, beams, ...]; float [B, beams], bool, int64."""

    cell_states: Any
    log_probs: Tensor
    finished: Tensor
    lengths: Tensor


class BeamSearchDecoder(Decoder):
    """The `beam_size` most probable sequences so far are kept; each step continues all of them.

    Args:
        cell: (inputs [B * beams, ...], states) -> (outputs, states).
        start_token, end_token: the numbers that begin and end a sequence.
        embedding_fn: numbers [B, beams] -> inputs [B, beams, ...]; the numbers themselves unless given.
        output_fn: the cell's outputs -> scores [B * beams, V] of what comes next; the outputs unless given.

    `dynamic_decode` of it gives the numbers, int64 [B, steps, beams], best beam first, and the last states.  Tensors
    that `step` gets as keyword arguments for the cell must be tiled: `tile_beam_merge_with_batch`.

    >>> from minipd.nn.common import Embedding, Linear
    >>> from minipd.nn.rnn import GRUCell
    >>> cell = GRUCell(8, 16)
    >>> search = BeamSearchDecoder(cell, 0, 1, beam_size=4, embedding_fn=Embedding(9, 8), output_fn=Linear(16, 9))
    >>> from minipd.ops.creation import ones
    >>> ids, states = dynamic_decode(search, cell.get_initial_states(ones([2, 3])), max_step_num=5)
    >>> ids.shape[0], ids.shape[2], states.lengths.shape
    (2, 4, paddle.Size([2, 4]))
    """

    OutputWrapper, StateWrapper = Outputs, States

    def __init__(self, cell: Any, start_token: int, end_token: int, beam_size: int,
                 embedding_fn: Callable | None = None, output_fn: Callable | None = None):
        self.cell, self.embedding_fn, self.output_fn = cell, embedding_fn, output_fn
        self.start_token, self.end_token, self.beam_size = int(start_token), int(end_token), beam_size

    @staticmethod
    def tile_beam_merge_with_batch(x: Tensor, beam_size: int) -> Tensor:
        """Every entry `beam_size` times.   [B, ...] -> [B * beam_size, ...]"""
        return _merge(_beams(x, beam_size))

    def initialize(self, initial_cell_states: Any) -> tuple[Any, States, Tensor]:
        """The first step's; only the first beam counts, for all begin alike."""
        cell_states = map_states(lambda s: _beams(s, self.beam_size), initial_cell_states)
        first: Any = cell_states
        while not isinstance(first, Tensor):
            first = next(iter(first.values())) if isinstance(first, dict) else first[0]
        shape = [first.shape[0], self.beam_size]
        log_probs = to_tensor([0.0, *([NEVER] * (self.beam_size - 1))], first.dtype).expand(shape)
        states = States(cell_states, log_probs, full(shape, False, "bool"), zeros(shape, "int64"))
        return self._embedded(full(shape, self.start_token, "int64")), states, states.finished

    def step(self, time: Tensor, inputs: Any, states: States, **kwargs: Any) -> tuple[Outputs, States, Any, Tensor]:
        """One step of all beams, and the choice among what they propose."""
        merged = map_states(_merge, states.cell_states)
        cell_outputs, merged = self.cell(map_states(_merge, inputs), merged, **kwargs)
        scores = cell_outputs if self.output_fn is None else self.output_fn(cell_outputs)
        outputs, states = self._choose(scores, map_states(self._split, merged), states)
        return outputs, states, self._embedded(outputs.predicted_ids), states.finished

    def _choose(self, scores: Tensor, cell_states: Any, before: States) -> tuple[Outputs, States]:
        """The best `beam_size` of beams x V continuations.  A beam that has finished continues with its end only."""
        n = scores.shape[-1]
        only_end = cast(arange(n) != self.end_token, scores.dtype) * NEVER
        steps = where(before.finished.unsqueeze(-1), only_end, self._split(log_softmax(scores)))
        all_scores = (steps + before.log_probs.unsqueeze(-1)).flatten(1)            # [B, beams * V]
        best, places = topk(all_scores, self.beam_size)
        parents, ids = floor_divide(places, n), mod(places, n)
        finished = _pick(before.finished, parents)
        lengths = _pick(before.lengths, parents) + cast(logical_not(finished), "int64")
        states = States(map_states(lambda s: _pick(s, parents), cell_states), best,
                        logical_or(finished, ids == self.end_token), lengths)
        return Outputs(best, ids, parents), states

    def finalize(self, outputs: Outputs, final_states: States, sequence_lengths: Tensor) -> tuple[Tensor, States]:
        """The numbers of each beam at the end, from the last step back to the first.   int64 [steps, B, beams]"""
        return gather_tree(outputs.predicted_ids, outputs.parent_ids), final_states

    @property
    def tracks_own_finished(self) -> bool:
        """True: beams change places."""
        return True

    def _embedded(self, ids: Tensor) -> Any:
        return ids if self.embedding_fn is None else self.embedding_fn(ids)

    def _split(self, x: Tensor) -> Tensor:
        """[B * beams, ...] as [B, beams, ...]."""
        return x.reshape([-1, self.beam_size, *x.shape[1:]])


def _beams(x: Tensor, n: int) -> Tensor:
    """[B, ...] n times, as [B, n, ...]."""
    return x.unsqueeze(1).expand([x.shape[0], n, *x.shape[1:]])


def _merge(x: Tensor) -> Tensor:
    """[B, beams, ...] as [B * beams, ...]."""
    return x.flatten(0, 1)


def _pick(x: Tensor, beams: Tensor) -> Tensor:
    """x [B, beams, ...] at the beams' numbers [B, beams]."""
    batch, n = beams.shape
    return _merge(x)[beams + arange(batch).unsqueeze(-1) * n]
