"""Rules of softmax, cross entropy and the losses of sequences.

Over a split class dimension cross entropy decomposes: the maximum and the sum of exponentials become one all-reduce
each, of a size without the classes, and the logits are never gathered.  (Of no classes there is no maximum; nothing is
gathered then.)  A softmax for its own sake is whole over the classes, as in Paddle.
"""

from __future__ import annotations

from typing import Any

from minipd.dist.spmd.indexing import window_of
from minipd.dist.spmd.notation import Notation, letters, replace
from minipd.dist.spmd.table import spmd
from minipd.framework.dim import same

__all__: list[str] = []


@spmd("softmax", "log_softmax")
def softmax(x: Any, *, axis: int) -> Notation:
    word = letters(len(x.shape))
    return Notation((word,), (word,), whole=word[axis])


@spmd("cross_entropy_with_softmax")
def cross_entropy_with_softmax(logits: Any, label: Any, *, ignore_index: int = -100, axis: int) -> Notation:
    """(softmax, loss) of logits [..., V] and label [..., 1]."""
    logit_word, label_word = _class_words(logits, axis)
    return Notation((logit_word, label_word), (logit_word, label_word), **_over_classes("v", logits.shape[axis]))


@spmd("cross_entropy_with_softmax_grad")
def cross_entropy_with_softmax_grad(label: Any, softmax: Any, loss_grad: Any, *, ignore_index: int = -100,
                                    axis: int, window: Any = None) -> Notation:
    """softmax minus one-hot label: over split classes every rank has its own columns, which `window` tells it."""
    softmax_word, label_word = _class_words(softmax, axis)
    return Notation((label_word, softmax_word, label_word), (softmax_word,), local=window_of(softmax.shape, axis))


@spmd("warpctc")
def warpctc(logits: Any, label: Any, logits_length: Any, labels_length: Any, *, blank: int = 0,
            norm_by_times: bool = False) -> Notation:
    """Sequences go where they like; each is whole.  logits [t, b, c], label [b, l]."""
    return Notation(("tbc", "bl", "b", "b"), ("b",), whole="tcl")


@spmd("warpctc_grad")
def warpctc_grad(logits: Any, label: Any, logits_length: Any, labels_length: Any, loss_grad: Any, *, blank: int = 0,
                 norm_by_times: bool = False) -> Notation:
    return Notation(("tbc", "bl", "b", "b", "b"), ("tbc",), whole="tcl")


@spmd("warprnnt")
def warprnnt(input: Any, label: Any, input_lengths: Any, label_lengths: Any, *, blank: int = 0,
             fastemit_lambda: float = 0.0) -> Notation:
    """Sequences go where they like; each is whole.  input [b, t, u, c], label [b, l]."""
    return Notation(("btuc", "bl", "b", "b"), ("b",), whole="tucl")


@spmd("warprnnt_grad")
def warprnnt_grad(input: Any, label: Any, input_lengths: Any, label_lengths: Any, loss_grad: Any, *, blank: int = 0,
                  fastemit_lambda: float = 0.0) -> Notation:
    return Notation(("btuc", "bl", "b", "b", "b"), ("btuc",), whole="tucl")


def _over_classes(letter: str, size: Any) -> dict[str, Any]:
    return {"whole" if same(size, 0) else "decompose": letter}


def _class_words(logits: Any, axis: int) -> tuple[str, str]:
    word = letters(len(logits.shape))
    return replace(word, axis, "v"), replace(word, axis, "1")
