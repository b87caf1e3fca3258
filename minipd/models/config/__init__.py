"""The configuration of a run: its values, where they come from, and whether they fit together."""

from minipd.models.config.checks import validate
from minipd.models.config.command_line import from_arguments
from minipd.models.config.toml import load, save, to_toml
from minipd.models.config.values import (
    DataConfig,
    DistConfig,
    ModelConfig,
    RunConfig,
    SampleConfig,
    TrainConfig,
    parse_mesh,
    resolve,
    with_values,
)

__all__ = [
    "DataConfig",
    "DistConfig",
    "ModelConfig",
    "RunConfig",
    "SampleConfig",
    "TrainConfig",
    "from_arguments",
    "load",
    "parse_mesh",
    "resolve",
    "save",
    "to_toml",
    "validate",
    "with_values",
]
