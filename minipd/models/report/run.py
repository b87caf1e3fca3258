"""What a run folder holds, read for the report.  What is not there is None or empty; what is broken is an error."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Partial, Placement, Replicate, Shard, check_placements
from minipd.framework.dtype import to_np
from minipd.framework.errors import InputError
from minipd.framework.files import reason
from minipd.models.config import RunConfig, load, resolve, validate
from minipd.models.run_folder import CONFIG, METRICS, read_metrics

__all__ = ["Parameter", "Run", "broken", "read_run"]

TIMELINE, MEMORY, SHARDING, ENTROPY, SAMPLE = (
    "timeline.json", "memory.json", "sharding.json", "entropy.json", "sample.txt")


@dataclass(frozen=True)
class Parameter:
    """A parameter, and where it lay."""

    name: str
    shape: tuple[int, ...]
    dtype: Any
    mesh: ProcessMesh
    placements: tuple[Placement, ...]


@dataclass(frozen=True)
class Run:
    """A run, as its folder tells of it.

    metrics: a mapping per step.  timeline: records of the last step's jobs.  memory: rank -> peak bytes.  entropy: of
    the held-out text, by the name of the model that counts.  programs: file name -> text of the programs that ran.
    """

    name: str
    config: RunConfig
    toml: str
    metrics: list[dict[str, Any]]
    parameters: list[Parameter]
    timeline: list[dict[str, Any]]
    memory: dict[int, int]
    entropy: dict[str, float]
    programs: dict[str, str]
    sample: str


def read_run(path: Path) -> Run:
    """Read a run folder.

    Raises: InputError if it is none (it has no config.toml), or a file in it is not what it should be.
    """
    if not (path / CONFIG).is_file():
        raise InputError(f"a run folder, with its {CONFIG}", str(path), "name the folder of a run, such as runs/0001")
    config = _config(path)
    sharding = [_parameter(path, entry) for entry in _json(path / SHARDING, list)]
    memory, entropy = _json(path / MEMORY, dict), _json(path / ENTROPY, dict)
    try:
        held = {int(rank): int(peak) for rank, peak in memory.items() if peak is not None}
        known = {str(name): _finite(value) for name, value in entropy.items()}
    except (TypeError, ValueError, OverflowError) as error:
        raise broken(f"numbers in {MEMORY} and {ENTROPY}", f"{path} ({error})") from None
    programs = {file.name: _text(file) for file in sorted(path.glob("step.*.pir"))}
    metrics = read_metrics(path) if (path / METRICS).is_file() else []
    for row in metrics:
        _check_row(row, path)
    return Run(path.resolve().name, config, _text(path / CONFIG), metrics, sharding, _json(path / TIMELINE, list),
               dict(sorted(held.items())), known, programs, _text(path / SAMPLE))


def _config(path: Path) -> RunConfig:
    """The configuration, its values checked one against the other as when the run began."""
    config = load(path / CONFIG)
    try:
        config = resolve(config)
        validate(config)
    except ValueError as error:             # an InputError, or a mesh that is none
        raise broken(f"the configuration of a run in {path / CONFIG}", str(error)) from None
    return config


def _check_row(row: dict[str, Any], path: Path) -> None:
    """A line of the metrics has numbers.  A loss need not be finite: training may diverge."""
    for key in ("step", "loss", "seconds", "tokens", *(["val_loss"] if "val_loss" in row else [])):
        value = row.get(key)
        if not isinstance(value, int | float) or not (key.endswith("loss") or math.isfinite(value)):
            raise broken(f"a number for {key} in each line of {METRICS}", f"{json.dumps(row)[:80]} in {path}")


def _finite(value: Any) -> float:
    if not math.isfinite(float(value)):
        raise ValueError(f"{value} is not finite")
    return float(value)


def broken(expected: str, got: str) -> InputError:
    """The error for a file that is not what a run writes."""
    return InputError(expected, got, "mend the file, or remove it: the report then leaves it out")


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8") if file.is_file() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise broken("a text file", f"{file} ({reason(error)})") from None


def _json(file: Path, kind: type) -> Any:
    text = _text(file)
    try:
        found = json.loads(text) if text else kind()
    except ValueError as error:
        raise broken("a JSON file", f"{file} ({error})") from None
    if not isinstance(found, kind):
        raise broken(f"a JSON {'list' if kind is list else 'object'}", f"{file}, a {type(found).__name__}")
    return found


def _parameter(path: Path, entry: dict[str, Any]) -> Parameter:
    try:
        name, shape = entry["name"], tuple(map(int, entry["shape"]))
        if not isinstance(name, str):
            raise TypeError(f"expected a name that is a text, got {name!r}")
        mesh = ProcessMesh(entry["ranks"], list(entry["mesh"]))
        placements = tuple(map(placement, entry["placements"]))
        return Parameter(name, shape, to_np(entry["dtype"]), mesh,
                         check_placements(placements, mesh, len(shape), name))
    except (KeyError, TypeError, ValueError) as error:
        said = f"{type(error).__name__}: {error}"
        raise broken("entries with name, shape, dtype, mesh, ranks and placements",
                     f"{json.dumps(entry)[:80]} in {path / SHARDING} ({said})") from None


def placement(text: str) -> Placement:
    """What `R`, `S(0)`, `P` or `P(max)` names.

    >>> placement("S(1)"), placement("P"), placement("P(max)"), placement("R")
    (Shard(dim=1), Partial(reduce_type=SUM), Partial(reduce_type=MAX), Replicate())
    """
    match = re.fullmatch(r"(R)|S\((\d+)\)|P(?:\((\w+)\))?", text)
    if match is None:
        raise ValueError(f"expected a placement R, S(0), P or P(max), got {text!r}")
    if match[1]:
        return Replicate()
    return Shard(int(match[2])) if match[2] else Partial(match[3] or "sum")
