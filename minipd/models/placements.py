"""Where Llama's parameters live: the other half of the model, one line per kind of parameter.

Megatron's arrangement (Shoeybi et al. 2019) on a mesh with axes `dp` and `tp`.  Matrices are [in, out].

* q, k, v, gate and up are split by columns over tp: each rank computes some heads, some inner units, from the whole x.
* o and down are split by rows: each rank has a part of the sum, and one all-reduce per half block adds the parts.
* The embedding (and the output layer) is split by vocabulary: the loss is computed on shards of the logits.
* Everything else, and everything over dp, is replicated; dp splits the batch.

An axis `pp` splits no tensor: it splits the sequence of layers into stages (`stage_of`), and a parameter lives on the
ranks of its stage only.
"""

from __future__ import annotations

import re

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement, Replicate, Shard
from minipd.models.config.checks import check_stages

__all__ = ["batch_placements", "copies_on_stages", "parameter_placements", "stage_of"]

#: the end of a parameter's name -> the dimension that tp splits
TP_DIM = {
    "embed_tokens.weight": 0,
    "q_proj.weight": 1, "k_proj.weight": 1, "v_proj.weight": 1, "o_proj.weight": 0,
    "gate_proj.weight": 1, "up_proj.weight": 1, "down_proj.weight": 0,
    "lm_head.weight": 1,
}


def parameter_placements(name: str, mesh: ProcessMesh) -> list[Placement]:
    """The placements of the parameter called `name`.

    >>> from minipd.dist.mesh import parse_mesh
    >>> parameter_placements("llama.layers.0.mlp.down_proj.weight", parse_mesh("dp=2,tp=2"))
    [Replicate(), Shard(dim=0)]
    """
    dim = next((d for end, d in TP_DIM.items() if name.endswith(end)), None)
    return [Shard(dim) if axis == "tp" and dim is not None else Replicate() for axis in mesh.dim_names]


def batch_placements(mesh: ProcessMesh) -> list[Placement]:
    """The placements of ids and labels, [batch, seq]: dp splits the batch."""
    return [Shard(0) if axis == "dp" else Replicate() for axis in mesh.dim_names]


def stage_of(name: str, layers: int, stages: int) -> int:
    """The pipeline stage of a parameter, or of a piece of the model, of which `name` is the beginning.

    Stages are consecutive layers, as even as can be, the longer ones first: the last stage has the output layer and the
    loss besides, the first one only a look-up.
    Raises: InputError if there are more stages than layers.

    >>> [stage_of(f"llama.layers.{i}.mlp.up_proj.weight", layers=5, stages=2) for i in range(5)]
    [0, 0, 0, 1, 1]
    >>> stage_of("llama.embed_tokens.weight", 5, 2), stage_of("lm_head.weight", 5, 2)
    (0, 1)
    """
    check_stages(layers, stages)
    if "embed_tokens" in name:
        return 0
    layer = re.search(r"layers\.(\d+)", name)
    if layer is None:
        return stages - 1
    least, longer = divmod(layers, stages)              # the first `longer` stages have one layer more
    i = int(layer[1])
    return i // (least + 1) if i < longer * (least + 1) else (i - longer) // least


def copies_on_stages(tied: bool, stages: int) -> dict[str, int]:
    """Parameters that a second stage uses too, with that stage: tied to the embedding, which is on the first stage, the
    output layer is on the last."""
    return {"llama.embed_tokens.weight": stages - 1} if tied else {}
