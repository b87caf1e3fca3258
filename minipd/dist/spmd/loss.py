"""Rules of softmax and cross entropy.

Over a split class dimension they decompose: the maximum and the sum of exponentials become one all-reduce each, of a
size without the classes, and the logits are never gathered.  (Of no classes there is no maximum; nothing is gathered
then.)
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
    return Notation((word,), (word,), **_over_classes(word[axis], x.shape[axis]))


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


def _over_classes(letter: str, size: Any) -> dict[str, Any]:
    return {"whole" if same(size, 0) else "decompose": letter}


def _class_words(logits: Any, axis: int) -> tuple[str, str]:
    word = letters(len(logits.shape))
    return replace(word, axis, "v"), replace(word, axis, "1")
