"""Cases of the losses of sequences: every path is enumerated, which is the definition."""

import itertools
import math

import numpy as np

from tests.ops.case import Case, cases


def spells(path, blank):
    """What is left of a path without repeats, and then without blanks."""
    return [k for k, _ in itertools.groupby(path) if k != blank]


def ctc_of_one(logits, labels, blank):
    """(-log of the probability of all paths, its gradient): each class's probability less its share of the paths."""
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    share, total = np.zeros(p.shape), 0.0
    for path in itertools.product(range(logits.shape[1]), repeat=len(logits)):
        if spells(path, blank) == list(labels):
            weight = math.prod(p[t, k] for t, k in enumerate(path))
            total += weight
            share[range(len(path)), path] += weight
    return (-math.log(total), p - share / total) if total else (math.inf, 0 * p)


def ctc(logits, label, times, sizes, blank=0):
    return np.array([ctc_of_one(logits[:t, b], label[b, :n], blank)[0]
                     for b, (t, n) in enumerate(zip(times, sizes, strict=True))]).reshape(len(times))


def ctc_grad(logits, label, times, sizes, weights, blank=0, norm_by_times=False):
    out = np.zeros(logits.shape)
    for b, (t, n) in enumerate(zip(times, sizes, strict=True)):
        scale = weights[b] / (t if norm_by_times else 1)
        out[:t, b] = ctc_of_one(logits[:t, b], label[b, :n], blank)[1] * scale
    return out


def rnnt_of_one(x, labels, blank, emphasis=1.0):
    """(-log of the sum over all ways to mix T - 1 reads with the writes, before the last read; its gradient)."""
    n, total, share = len(labels), 0.0, np.zeros(x.shape)
    for order in set(itertools.permutations("r" * (len(x) - 1) + "w" * n)):
        t, u, steps = 0, 0, []
        for step in (*order, "r"):
            steps.append((t, u, labels[u] if step == "w" else blank))
            t, u = (t, u + 1) if step == "w" else (t + 1, u)
        weight = math.exp(math.fsum(x[at] for at in steps))
        total += weight
        for at, step in zip(steps, (*order, "r"), strict=True):
            share[at] += weight * (emphasis if step == "w" else 1.0)
    return -math.log(total), -share / total


def rnnt(x, label, times, sizes, blank=0):
    return np.array([rnnt_of_one(x[b, :t, :n + 1], label[b, :n], blank)[0]
                     for b, (t, n) in enumerate(zip(times, sizes, strict=True))]).reshape(len(times))


def rnnt_grad(x, label, times, sizes, weights, blank=0, fastemit_lambda=0.0):
    out = np.zeros(x.shape)
    for b, (t, n) in enumerate(zip(times, sizes, strict=True)):
        out[b, :t, :n + 1] = rnnt_of_one(x[b, :t, :n + 1], label[b, :n], blank, 1 + fastemit_lambda)[1] * weights[b]
    return out


CTC = [((4, 2, 3), [[1, 2], [2, 2]], [4, 4], [2, 2], 0),
       ((3, 3, 3), [[1, 0], [0, -1], [9, 9]], [3, 2, 1], [2, 1, 0], 2),
       ((0, 1, 2), [[1]], [0], [0], 0)]
RNNT = [((2, 3, 3, 3), [[1, 2], [2, 2]], [3, 2], [2, 1], 0), ((1, 2, 1, 2), [[]], [2], [0], 1)]


@cases("warpctc")
def _(d):
    for shape, label, times, sizes, blank in CTC:
        yield Case((d.floats(*shape), np.array(label), np.array(times), np.array(sizes)), ctc, {"blank": blank},
                   smooth=False)
    impossible = (d.floats(2, 1, 3), np.array([[1, 1]]), np.array([2]), np.array([2]))      # 1 1 needs a blank between
    yield Case(impossible, ctc, wrt=())
    yield Case((d.floats(2, 0, 3), np.zeros((0, 2), int), np.zeros(0, int), np.zeros(0, int)), ctc, smooth=False)


@cases("warpctc_grad")
def _(d):
    for shape, label, times, sizes, blank in CTC:
        yield Case((d.floats(*shape), np.array(label), np.array(times), np.array(sizes), d.floats(shape[1])),
                   ctc_grad, {"blank": blank, "norm_by_times": shape[1] == 2}, refused=(0,))


@cases("warprnnt")
def _(d):
    for shape, label, times, sizes, blank in RNNT:
        yield Case((d.floats(*shape), np.array(label, int), np.array(times), np.array(sizes)), rnnt, {"blank": blank},
                   smooth=False)


@cases("warprnnt_grad")
def _(d):
    for shape, label, times, sizes, blank in RNNT:
        yield Case((d.floats(*shape), np.array(label, int), np.array(times), np.array(sizes), d.floats(shape[0])),
                   rnnt_grad, {"blank": blank, "fastemit_lambda": 0.5 * blank}, refused=(0,))
