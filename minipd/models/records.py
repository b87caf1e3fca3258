"""What a run leaves for its report besides metrics: where its tensors lay, what its ranks did, what they needed.

    sharding.json   per parameter: name, shape, dtype, mesh {axis: size}, ranks (nested as the mesh), placements
    timeline.json   per job of the last step's pipeline: rank, stage, type, micro, start, end (seconds)
    memory.json     per rank: the most bytes that its process has held
    entropy.json    what models that only count reach on the held-out text: unigram, bigram (nats a token)
    step.*.pir      the programs that ran, and step.*.kernels.py what they were compiled into

All ranks call these together, and get what all of them know; rank 0 writes it.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from typing import Any

from minipd.dist.dialect import placement_text
from minipd.dist.value import DistValue
from minipd.framework import dtype as dtypes
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.models.progress import peak_memory
from minipd.parallel.pipeline.engine import Pipeline
from minipd.parallel.step import Step

__all__ = ["at_the_beginning", "at_the_end"]


def at_the_beginning(comm: Any, model: Any, step: Step, entropies: Mapping[str, float]) -> dict[str, str]:
    """File name -> text: what is known before the first step."""
    return {**programs(comm, step), "sharding.json": _json(sharding(comm, model)),
            "entropy.json": json.dumps(entropies) + "\n"}


def at_the_end(comm: Any, step: Step) -> dict[str, str]:
    """File name -> text: what is known after the last step."""
    texts, events = {"memory.json": json.dumps(memory(comm)) + "\n"}, timeline(comm, step)
    return {**texts, "timeline.json": _json(events)} if events else texts


def _json(entries: list[dict[str, Any]]) -> str:
    """A list, an entry a line."""
    return "[\n" + ",\n".join(map(json.dumps, entries)) + "\n]\n"


def _gathered(comm: Any, mine: Any) -> list[Any]:
    return [mine] if comm is None else comm.all_gather_object(mine)


def sharding(comm: Any, model: Any) -> list[dict[str, Any]]:
    """One entry per parameter, in the model's order; each rank tells of those that it holds."""
    mine = {name: _placed(name, p) for name, p in model.named_parameters() if isinstance(p.payload, DistValue)}
    known: dict[str, dict[str, Any]] = {}
    for found in _gathered(comm, mine):
        known = {**found, **known}              # one that two stages have: as the first has it
    return [known[name] for name, _ in model.named_parameters()]


def _placed(name: str, p: Tensor) -> dict[str, Any]:
    value, mesh = p.payload, p.payload.mesh
    return {"name": name, "shape": list(value.shape), "dtype": dtypes.of(value.dtype).name,
            "mesh": dict(zip(mesh.names, mesh.sizes, strict=True)), "ranks": mesh.mesh.tolist(),
            "placements": [placement_text(q) for q in value.placements]}


def timeline(comm: Any, step: Step) -> list[dict[str, Any]]:
    """What all ranks did in the last step of a pipeline, by rank; nothing where there is none.

    Ranks on one machine share its clock: their times count from when the first of them began the step.  Clocks of
    different machines cannot be compared, so there each rank's times count from when it began itself.
    """
    if not isinstance(step, Pipeline):
        return []
    known = _gathered(comm, (platform.node(), step.began, step.timeline))
    machines, first = {node for node, _, _ in known}, min(began for _, began, _ in known)
    events = []
    for _, began, jobs in known:
        late = began - first if len(machines) == 1 else 0.0
        events += [{**job, "start": round(job["start"] + late, 6), "end": round(job["end"] + late, 6)} for job in jobs]
    return events


def memory(comm: Any) -> dict[str, int]:
    """The peak of each rank's process, where the system tells; simulated ranks share one, and its peak."""
    return {str(rank): peak for rank, peak in enumerate(_gathered(comm, peak_memory())) if peak is not None}


def programs(comm: Any, step: Step) -> dict[str, str]:
    """File name -> text of the programs that run: those of rank 0, and of the first rank of every other stage."""
    speaker = step.stage.mesh.process_ids[0] if isinstance(step, Pipeline) else 0
    mine = step.programs() if current().rank == speaker else {}
    known: dict[str, str] = {}
    for found in _gathered(comm, mine):
        known = {**found, **known}
    return known
