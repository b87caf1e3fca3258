"""The forward pass of a model that lies on the stages of a pipeline: what generation needs."""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.dist.api import reshard
from minipd.dist.placements import Replicate
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.parallel.pipeline.model_slice import ModelSlice
from minipd.parallel.pipeline.stage import Boundary
from minipd.parallel.pipeline.transfer import ACTIVATION, Transfer

__all__ = ["StagedModel"]


class StagedModel:
    """The model as a function from ids to the logits of the last position, which every rank calls and every rank gets.

    Stage by stage, one batch at a time: all but one stage wait, which is what a pipeline costs where the next input
    depends on the last output.   config: the model's, with `dim`, `vocab_size` and `max_seq`.
    """

    def __init__(self, part: ModelSlice):
        self.part, self.config = part, part.model.config
        self.transfer = Transfer(part.meshes, part.index)

    def __call__(self, ids: Tensor) -> Tensor:
        """ids: int [B, S], an ordinary tensor, the same on all ranks -> logits [B, 1, V]"""
        (b, s), part, comm = ids.shape, self.part, current().comm
        dtype = current().default_dtype
        hidden = Boundary("hidden", (b, s, self.config.dim), dtype, (Replicate(),) * part.mesh.ndim)
        x = ids
        if not part.first:
            x = Tensor(*self.transfer.receive((hidden,), part.index - 1, 0, ACTIVATION))
        x = part(x, s)
        logits: Any = np.empty((b, 1, self.config.vocab_size), dtype)
        if part.last:
            logits = x[:, -1:].numpy()
        else:
            whole = reshard(x, part.mesh, hidden.placements)
            self.transfer.send((whole.payload,), (hidden,), part.index + 1, 0, ACTIVATION)
        # the other stages draw the next token from them too
        return Tensor(comm.broadcast(logits, part.meshes[-1].process_ids[0], tuple(range(comm.size))))
