"""Plain generation: the model reads all tokens anew for each one it writes, without a cache of keys and values."""

from __future__ import annotations

import numpy as np

from minipd.autograd.mode import no_grad
from minipd.framework import philox
from minipd.models.llama import LlamaForCausalLM
from minipd.ops.creation import to_tensor

__all__ = ["generate"]


def generate(model: LlamaForCausalLM, prompt: np.ndarray, n: int, temperature: float, seed: int,
             known: int | None = None) -> np.ndarray:
    """Continue `prompt`, int [tokens], by n tokens.  Returns prompt and continuation, int64 [tokens + n].

    temperature: 0 takes the likeliest token each time; 1 samples from the model's distribution.  known: only ids below
    it are written (default: all of the model's); a short text gives a tokenizer with fewer ids than the model has.
    Ranks of a distributed model all call this; they draw the same numbers and so write the same text.
    """
    longest = model.config.max_seq
    tokens = [int(t) for t in prompt]
    draws = philox.uniform(philox.key_of(seed, "generate"), (n,), 0.0, 1.0, np.float64)
    with no_grad():
        for u in draws:
            ids = np.array(tokens[-longest:], np.int64)[None]
            logits = model(to_tensor(ids))[0, -1].numpy()[:known].astype(np.float64)
            tokens.append(_pick(logits, temperature, u))
    return np.array(tokens, np.int64)


def _pick(logits: np.ndarray, temperature: float, u: float) -> int:
    """The token whose interval of the cumulative distribution holds u."""
    if temperature == 0:
        return int(logits.argmax())
    p = np.exp((logits - logits.max()) / temperature)
    edges = np.cumsum(p)
    return min(int(np.searchsorted(edges, u * edges[-1], side="right")), len(edges) - 1)
