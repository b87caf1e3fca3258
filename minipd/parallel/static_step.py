"""One optimizer step, static: the training step as one global program, run as this rank's part of it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement
from minipd.dist.static.rank_program import RankProgram
from minipd.dist.value import DistValue
from minipd.parallel.program import LEARNING_RATE, loss_program, train_program
from minipd.parallel.step import Step

__all__ = ["StaticStep"]


class StaticStep(Step):
    """Runs steps as programs.

    fuse: with operators of their own for what the model composes (`fuse_forward`).  cinn: compiled into kernels.
    """

    def __init__(self, model: Any, optimizer: Any, mesh: ProcessMesh, placements: Sequence[Placement],
                 batch_shape: tuple[int, int], n_micro: int = 1, fuse: bool = True, cinn: bool = False):
        super().__init__(model, optimizer, mesh, placements, n_micro)
        self.batch_shape, self.fuse, self.cinn = batch_shape, fuse, cinn
        self.split = {"ids": placements, "labels": placements}
        program, trace = train_program(model, optimizer, self.state(), batch_shape, n_micro, fuse)
        self.train = RankProgram(program, trace, mesh, self.state(), self.split, n_micro, cinn)

    @functools.cached_property
    def loss(self) -> RankProgram:
        """The program of `evaluate`, made when it is first asked for: who only trains does not wait for it."""
        program, trace = loss_program(self.model, self.batch_shape, self.fuse)
        return RankProgram(program, trace, self.mesh, dict(self.model.named_parameters()), self.split, cinn=self.cinn)

    def __call__(self, ids: np.ndarray, labels: np.ndarray) -> DistValue:
        """Train on one global batch, int [batch, seq], which every rank passes.  Returns the loss, in parts."""
        self.enter()
        feed = {"n_tokens": self.count(labels), LEARNING_RATE: self.optimizer.scalars()[0].payload}
        for m, (i, y) in enumerate(self.parts(ids, labels)):
            feed[f"ids_{m}"], feed[f"labels_{m}"] = i, y
        return self.train(feed)["loss"]

    def evaluate(self, ids: np.ndarray, labels: np.ndarray) -> DistValue:
        """The loss of one global batch, in parts."""
        return self.loss({"ids": ids, "labels": labels, "n_tokens": self.count(labels)})["loss"]

    def programs(self) -> dict[str, str]:
        """File name -> text: the completed global program, this rank's, and what it was compiled into."""
        whole = self.train.whole.to_string("exact")
        return {"step.global.pir": whole, **self.train.texts(f"step.rank{self.train.rank}")}
