"""Losses over classes by the thousands: trees, clusters, margins on the sphere, and samples of the classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.nn.functional.activation import log_softmax
from minipd.nn.functional.common import linear
from minipd.nn.functional.loss.reduction import check_reduction, reduced
from minipd.ops import reduce
from minipd.ops.activation import log_sigmoid
from minipd.ops.creation import arange
from minipd.ops.elementary import acos, cos
from minipd.ops.embedding import embedding, take_along_axis
from minipd.ops.gather import gather
from minipd.ops.joining import concat
from minipd.ops.logic import logical_and
from minipd.ops.loss import cross_entropy_with_softmax
from minipd.ops.math import where
from minipd.ops.random import randperm
from minipd.ops.search import nonzero
from minipd.ops.sorting import argsort

__all__ = ["adaptive_log_softmax_with_loss", "class_center_sample", "hsigmoid_loss", "margin_cross_entropy"]


# ---------------------------------------------------------------------------------------------------------- a tree
def hsigmoid_loss(input: Tensor, label: Tensor, num_classes: int, weight: Tensor, bias: Tensor | None = None,
                  path_table: Tensor | None = None, path_code: Tensor | None = None, is_sparse: bool = False,
                  name: str | None = None) -> Tensor:
    """Classification down a binary tree: a logistic question at each node from the root to the class.

    Args:
        input: [N, D]; label: int [N] or [N, 1].
        weight, bias: of the inner nodes, [num_classes - 1, D] and [num_classes - 1, 1] for the default tree, in which
            the classes are the leaves of a complete tree.
        path_table, path_code: int [N, L], of another tree: the nodes on the way to each label, and the answers, 0 or 1;
            a shorter way is filled up with negative numbers.
        is_sparse: without effect, gradients are dense.

    Returns: [N, 1].  As in Paddle, a way that is shorter than the longest counts log 2 for each question that it lacks,
    which changes no gradient.   (Morin, Bengio, Hierarchical Probabilistic Neural Network Language Model, 2005)
    Raises: ValueError for a label that is no class.
    """
    if path_table is None or path_code is None:
        flat = label.reshape([-1])
        path_table, path_code = (embedding(flat, table) for table in _complete_tree(num_classes))
    on_path = path_table >= 0
    nodes = where(on_path, path_table, 0)
    score = reduce.sum(embedding(nodes, weight) * input.unsqueeze(1), -1)                       # [N, L]
    if bias is not None:
        score = score + embedding(nodes, bias.reshape([-1, 1])).squeeze(-1)
    score = where(on_path, score, 0.0)
    answered = where(path_code > 0, score, -score)
    return -reduce.sum(log_sigmoid(answered), 1, keepdim=True)


def _complete_tree(classes: int) -> tuple[Tensor, Tensor]:
    """(nodes, answers) on the way to each class, int [classes, L], -1 where the way has ended.

    The nodes are numbered from the root, 1, and node n has the children 2 n and 2 n + 1; class c is node c + classes.
    So the way to it is read off its bits: node `code >> (j + 1)` asks for bit j.
    """
    if classes < 2:
        raise ValueError(f"hsigmoid_loss: expected at least 2 classes, got {classes}")
    bits = np.arange((classes - 1).bit_length())
    code = (np.arange(classes) + classes)[:, None]
    parent = code >> (bits + 1)
    return Tensor(parent - 1), Tensor(np.where(parent > 0, (code >> bits) & 1, -1))


# -------------------------------------------------------------------------------------------------------- clusters
def adaptive_log_softmax_with_loss(input: Tensor, label: Tensor, head_weight: Tensor,
                                   tail_weights: Sequence[Sequence[Tensor]], cutoffs: Sequence[int | Tensor],
                                   head_bias: Tensor | None = None, name: str | None = None) -> tuple[Tensor, Tensor]:
    """(log-probability of each label [N], the loss: minus their mean).   (Grave et al., Efficient softmax, 2016)

    The frequent classes, below cutoffs[0], are in the head, which also has one class for each cluster; the classes from
    cutoffs[i] to cutoffs[i + 1] are cluster i.  Only the rows whose label is in a cluster go through its weights, so
    labels need values: this runs eagerly.

    input [N, D], label int [N]; head_weight [D, cutoffs[0] + clusters]; tail_weights: for each cluster [D, H] and
    [H, size].
    Raises: ValueError for a label outside 0 .. cutoffs[-1] - 1.
    """
    bounds = [0, *(int(c) for c in cutoffs)]
    if input.ndim != 2 or label.ndim != 1 or label.payload.dtype not in dtypes.INTS:
        raise ValueError("adaptive_log_softmax_with_loss: expected input [N, D] and int label [N], got "
                         f"{describe(input.payload)} and {describe(label.payload)}")
    values = label.values("adaptive_log_softmax_with_loss")
    outside = (values < 0) | (values >= bounds[-1])
    if outside.any():
        raise ValueError(f"adaptive_log_softmax_with_loss: expected labels in 0 .. {bounds[-1] - 1}, got "
                         f"{values[outside][0]}")
    head = log_softmax(linear(input, head_weight, head_bias), 1)
    rows, found = [], []
    for i, (low, high) in enumerate(zip(bounds, bounds[1:], strict=False)):
        inside = nonzero(logical_and(label >= low, label < high)).reshape([-1])
        place, of_head = (gather(t, inside, 0) for t in (label, head))
        if i == 0:
            score = _picked(of_head, place)
        else:
            project, out = tail_weights[i - 1]
            tail = log_softmax(linear(linear(gather(input, inside, 0), project), out), 1)
            score = of_head[:, bounds[1] + i - 1] + _picked(tail, place - low)
        rows.append(inside)
        found.append(score)
    output = gather(concat(found, 0), argsort(concat(rows, 0)), 0)
    return output, -reduce.mean(output)


def _picked(log_probs: Tensor, label: Tensor) -> Tensor:
    return take_along_axis(log_probs, label.unsqueeze(-1), 1).squeeze(-1)


# --------------------------------------------------------------------------------------------- margins on the sphere
def margin_cross_entropy(logits: Tensor, label: Tensor, margin1: float = 1.0, margin2: float = 0.5,
                         margin3: float = 0.0, scale: float = 64.0, group: Any = None, return_softmax: bool = False,
                         reduction: str | None = "mean") -> Any:
    """Cross entropy of cosines, the label's made smaller: scale (cos(margin1 t + margin2) - margin3), t its angle.

    logits: [N, C], cosines; other classes' are multiplied by scale.  label: int [N] or [N, 1].  group: accepted; logits
    that are sharded over their classes stay so.  (Deng et al., ArcFace, 2018: margin2; CosFace: margin3.)

    Returns: the loss, [N, 1] for reduction "none" or None; with return_softmax, (loss, softmax [N, C]).
    """
    reduction = reduction or "none"
    check_reduction("margin_cross_entropy", reduction)
    label = label.reshape([-1, 1])
    own = take_along_axis(logits, label, 1)
    moved = own
    if (margin1, margin2) != (1.0, 0.0):
        moved = cos(acos(own) * margin1 + margin2)
    hit = arange(logits.shape[1]) == label
    softmax, loss = cross_entropy_with_softmax(where(hit, moved - margin3, logits) * scale, label, axis=1)
    loss = reduced(loss, reduction)
    return (loss, softmax) if return_softmax else loss


# -------------------------------------------------------------------------------------------- a sample of the classes
def class_center_sample(label: Tensor, num_classes: int, num_samples: int, group: Any = None) -> tuple[Tensor, Tensor]:
    """(labels among the sample [N], the classes sampled, ascending): all that occur, and others up to num_samples.

    The others are drawn without replacement.  Labels need values: this runs eagerly.   (An et al., Partial FC, 2020)
    Raises: ValueError for a label that is no class, or more samples than classes.
    """
    values = label.values("class_center_sample")
    if label.ndim != 1 or label.payload.dtype not in dtypes.INTS:
        raise ValueError(f"class_center_sample: expected int labels [N], got {describe(label.payload)}")
    if not 0 < num_samples <= num_classes:
        raise ValueError(f"class_center_sample: expected num_samples in 1 .. {num_classes}, the number of classes, got "
                         f"{num_samples}")
    if values.size and not (values.min() >= 0 and values.max() < num_classes):
        raise ValueError(f"class_center_sample: expected labels in 0 .. {num_classes - 1}, got {values.min()} .. "
                         f"{values.max()}")
    occur = np.unique(values)
    others = np.setdiff1d(np.arange(num_classes), occur, assume_unique=True)
    order = randperm(len(others)).values("class_center_sample")
    sample = np.sort(np.concatenate([occur, others[order[:max(num_samples - len(occur), 0)]]])).astype(values.dtype)
    return Tensor(np.searchsorted(sample, values).astype(values.dtype)), Tensor(sample)
