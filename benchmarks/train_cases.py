"""One training step of a Llama, in minipd or another framework (`train_peers.py`): what `train.py` measures.

MODELS are settings of minipd's run configuration; the others' models take the same ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from train_peers import PEERS

#: minipd's own default, and models A and B of 7 and 30 million parameters, whose step others have been measured with
MODELS: dict[str, dict[str, Any]] = {
    "default": {},
    "A": {"model.dim": 288, "model.layers": 6, "model.heads": 6, "model.ffn_dim": 768, "model.vocab_size": 4096,
          "train.batch": 8, "data.seq_len": 256},
    "B": {"model.dim": 512, "model.layers": 8, "model.heads": 8, "model.ffn_dim": 1376, "model.vocab_size": 8192,
          "train.batch": 4, "data.seq_len": 512}}
#: how minipd runs a step
WAYS: dict[str, dict[str, Any]] = {
    "eager": {"dist.eager": True}, "static": {"dist.cinn": False}, "compiled": {}}


def config_of(model: str, mesh: str = "dp=1,tp=1", way: str = "compiled") -> Any:
    """The run configuration of a model, on a mesh, run in one of `WAYS`."""
    from minipd.models.config import RunConfig, resolve, with_values
    return resolve(with_values(RunConfig(), {"dist.mesh": mesh, **MODELS[model], **WAYS[way]}, "the benchmark"))


def batch_of(config: Any) -> tuple[np.ndarray, np.ndarray]:
    """Token numbers and labels for a step."""
    r, shape = np.random.default_rng(0), (config.train.batch, config.data.seq_len)
    ids, labels = (r.integers(0, config.model.vocab_size, shape) for _ in range(2))
    return ids, labels


def minipd_step(model: str, way: str) -> Callable[[], object]:
    from minipd.framework.context import RankContext
    from minipd.framework.rank import enter
    from minipd.models.build import build
    enter(RankContext())
    config = config_of(model, way=way)
    step, batch = build(config).step, batch_of(config)
    return lambda: step(*batch)


def cases(argument: str) -> dict[str, Callable[[], object]]:
    """argument: "MODEL WAY", where WAY may also be one of `train_peers.PEERS`."""
    model, way = argument.split()
    if way in WAYS:
        return {"step": minipd_step(model, way)}
    return {"step": PEERS[way](MODELS[model])}
