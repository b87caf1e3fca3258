"""How many labels of the whole batch count."""

import numpy as np

from minipd.dist.simulate import simulate
from minipd.framework.context import RankContext
from minipd.framework.rank import enter, leave
from minipd.framework.tensor import Tensor
from minipd.models.placements import batch_placements
from minipd.nn import functional as F
from minipd.ops.creation import to_tensor
from minipd.parallel.step import EagerStep, Step
from tools.course.checking import check


def count(labels):
    return float(object.__new__(Step).count(np.array(labels)))


def test_all_of_them():
    check(6.0, lambda: count([[1, 2, 3], [4, 5, 6]]), "labels [[1, 2, 3], [4, 5, 6]]")


def test_ignored_labels_do_not_count():
    check(4.0, lambda: count([[1, -100, 3], [-100, 5, 6]]), "labels [[1, -100, 3], [-100, 5, 6]]")


def test_token_0_is_a_token():
    check(3.0, lambda: count([[0, 0, -100], [0, -100, -100]]), "labels [[0, 0, -100], [0, -100, -100]]")


def test_uneven_sequences():
    check(4.0, lambda: count([[7, -100, -100], [1, 2, 3]]), "labels [[7, -100, -100], [1, 2, 3]]")


def test_none_at_all():
    """0 / 0 would be NaN, and a NaN in one batch ends the run."""
    check(1.0, lambda: count([[-100, -100]]), "labels [[-100, -100]]: the loss is 0 then, whatever it is divided by")


def test_an_array_of_no_dimensions_in_the_default_dtype():
    for dtype in ("float32", "float64"):
        context = RankContext()
        context.default_dtype = np.dtype(dtype)
        token = enter(context)
        try:
            n = object.__new__(Step).count(np.array([[1, 2]]))
        finally:
            leave(token)
        check(((), dtype), (np.shape(n), str(getattr(n, "dtype", type(n).__name__))),
              f"labels [[1, 2]] where the default dtype is {dtype}: shape and dtype of the count")


class TokenLosses:
    """Stands for a model: the loss of a token is the number in `ids`."""

    def loss(self, ids, labels, n_tokens):
        return (ids.astype("float64") * (labels != -100).astype("float64")).sum() / n_tokens


class NoOptimizer:
    def prepare(self):
        pass


def test_the_mean_over_tokens_and_not_the_mean_of_means():
    """Sums 4 (one token) and 6 (three tokens): 10 / 4.  The mean of the two means is 3."""
    ids, labels = np.array([[4, 4, 4], [2, 2, 2]]), np.array([[1, -100, -100], [1, 1, 1]])

    def run(mesh):
        step = EagerStep(TokenLosses(), NoOptimizer(), mesh, batch_placements(mesh))
        return Tensor(step.evaluate(ids, labels)).item()
    for mesh in ("dp=1", "dp=2"):
        check([2.5] * int(mesh[-1]), lambda mesh=mesh: simulate(mesh, run, np.dtype("float64")),
              f"two sequences with losses 4 (1 token) and 2, 2, 2 (3 tokens) on {mesh}: the loss on each rank")


def test_with_the_real_loss():
    """Micro-batches of one sequence each: their losses, each divided by the count of the whole, add up to the mean."""
    random = np.random.default_rng(6)
    logits, labels = random.normal(size=(2, 3, 5)), np.array([[1, -100, -100], [4, 0, 2]])
    n = count(labels)
    parts = [F.cross_entropy(to_tensor(z), to_tensor(y), reduction="sum").item() / n
             for z, y in zip(logits, labels, strict=True)]
    check(F.cross_entropy(to_tensor(logits), to_tensor(labels)).item(), sum(parts),
          "cross entropy of two sequences with 1 and 3 labels: the sum of the parts against the mean over tokens",
          rtol=1e-6)
