"""The values of a run: one dataclass per section, each value with its default and a line that explains it.

These classes are the only list of values. The TOML file, the command line and its help are derived from them. A key is
`section.name`, or `name` alone for the few values that belong to no section.
"""

import dataclasses
import difflib
import math
from collections.abc import Iterator, Mapping
from typing import Any, get_type_hints

from minipd.dist.mesh import parse_axes
from minipd.framework.errors import InputError


def _value(default: int | float | bool | str, about: str) -> Any:
    return dataclasses.field(default=default, metadata={"about": about})


@dataclasses.dataclass(frozen=True)
class ModelConfig:
    """The Llama. The defaults have 0.9 million parameters."""

    vocab_size: int = _value(1024, "ids of the tokenizer and rows of the embedding, at least 256")
    dim: int = _value(128, "width of the residual stream")
    layers: int = _value(4, "number of blocks")
    heads: int = _value(4, "query heads; each is dim / heads wide")
    kv_heads: int = _value(0, "key and value heads; 0: as many as query heads")
    ffn_dim: int = _value(344, "width inside the feed-forward part, about 8/3 of dim")
    tie_embeddings: bool = _value(True, "use the embedding as the output layer too")
    rope_base: float = _value(10000.0, "base of the wavelengths of rotary position embedding")
    norm_eps: float = _value(1e-5, "added to the mean square in RMSNorm")
    max_seq: int = _value(0, "longest sequence the model takes; 0: data.seq_len")


@dataclasses.dataclass(frozen=True)
class DataConfig:
    """The text."""

    corpus: str = _value("austen", "'austen' (comes with minipd) or the path of a UTF-8 text file")
    seq_len: int = _value(128, "tokens of a training sequence")


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """The optimization: AdamW with a linear warm-up and a cosine."""

    steps: int = _value(500, "optimizer steps")
    batch: int = _value(16, "sequences of a step, over all ranks and micro-batches")
    micro_batches: int = _value(0, "parts in which the batch is computed one after the other, to save memory and to "
                                "keep all stages of a pipeline busy; 0: 4 where pp > 1, else 1")
    lr: float = _value(3e-3, "peak learning rate")
    min_lr: float = _value(0.0, "learning rate at the end of the cosine")
    warmup: float = _value(0.1, "part of the steps in which the learning rate rises from 0")
    weight_decay: float = _value(0.1, "AdamW's decoupled weight decay")
    beta1: float = _value(0.9, "decay of AdamW's first moment")
    beta2: float = _value(0.95, "decay of AdamW's second moment")
    epsilon: float = _value(1e-8, "added to the root of AdamW's second moment")
    clip_norm: float = _value(1.0, "largest global norm of the gradient; 0: do not clip")
    eval_every: int = _value(50, "steps between validations")
    eval_batches: int = _value(8, "batches of a validation")
    checkpoint_every: int = _value(0, "steps between checkpoints; 0: only at the end")
    dtype: str = _value("float32", "dtype of parameters and activations: float32 or float64")

    @property
    def warmup_steps(self) -> int:
        """How many steps the learning rate rises.

        >>> TrainConfig(steps=50, warmup=0.1).warmup_steps
        5
        """
        return round(self.warmup * self.steps)


@dataclasses.dataclass(frozen=True)
class DistConfig:
    """The ranks."""

    mesh: str = _value("pp=2,tp=2", "axes of the mesh and their sizes: dp splits the batch, tp the matrices, pp the "
                       "layers into stages")
    schedule: str = _value("1F1B", "order of a pipeline's jobs, where pp > 1: 1F1B or FThenB")
    comm: str = _value("mpi", "how ranks talk: mpi (one process each) or sim (all in one process)")
    eager: bool = _value(False, "run operation by operation, not as one program")
    cinn: bool = _value(True, "compile the program into fused kernels; without, every operator is a library kernel")

    @property
    def axes(self) -> dict[str, int]:
        """The mesh as a mapping, in order: `parse_mesh(self.mesh)`."""
        return parse_mesh(self.mesh)

    @property
    def ranks(self) -> int:
        """How many ranks the mesh has.

        >>> DistConfig(mesh="dp=3,tp=2").ranks
        6
        """
        return math.prod(self.axes.values())


@dataclasses.dataclass(frozen=True)
class SampleConfig:
    """The text that the trained model writes at the end."""

    prompt: str = _value("It is a truth universally acknowledged, that", "what the sample goes on from")
    tokens: int = _value(200, "tokens to write; 0: none")
    temperature: float = _value(0.8, "0: always the likeliest token; 1: as often as the model says")


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """All values of a run.

    >>> RunConfig().train.lr
    0.003
    """

    out: str = _value("runs", "folder in which the run gets a folder with the next free number")
    seed: int = _value(0, "of parameters, data order and sample")
    resume: str = _value("", "run folder or checkpoint to go on from; its config.toml takes the place of the defaults")
    model: ModelConfig = dataclasses.field(default_factory=ModelConfig)
    data: DataConfig = dataclasses.field(default_factory=DataConfig)
    train: TrainConfig = dataclasses.field(default_factory=TrainConfig)
    dist: DistConfig = dataclasses.field(default_factory=DistConfig)
    sample: SampleConfig = dataclasses.field(default_factory=SampleConfig)


@dataclasses.dataclass(frozen=True)
class Key:
    """One value as the file and the command line see it."""

    section: str  # "" for the values of no section
    name: str
    kind: type  # int, float, bool or str
    about: str

    def __str__(self) -> str:
        return f"{self.section}.{self.name}" if self.section else self.name


def _keys(section: str, values: type) -> Iterator[Key]:
    kinds = get_type_hints(values)
    for field in dataclasses.fields(values):
        if "about" in field.metadata:
            yield Key(section, field.name, kinds[field.name], field.metadata["about"])
        else:
            yield from _keys(field.name, kinds[field.name])


KEYS: Mapping[str, Key] = {str(key): key for key in _keys("", RunConfig)}


def get(config: RunConfig, key: str) -> Any:
    """The value of `key`, such as "train.lr": an int, a float, a bool or a str."""
    *section, name = key.split(".")
    return getattr(getattr(config, section[0]) if section else config, name)


def with_values(config: RunConfig, values: Mapping[str, Any], source: str) -> RunConfig:
    """`config` with some values replaced.

    Args:
        values: by key, such as {"train.lr": 1e-3}; an int will do for a float.
        source: where the values come from, for errors.

    Raises:
        InputError: a key does not exist (the nearest ones are named), or a value has another type.

    >>> with_values(RunConfig(), {"train.lr": 1}, "an example").train.lr
    1.0
    >>> with_values(RunConfig(), {"train.stepz": 1}, "an example")
    Traceback (most recent call last):
    ...
    minipd.framework.errors.InputError: expected a configuration key, got train.stepz in an example: did you mean \
train.steps?
    """
    for name, value in values.items():
        if name not in KEYS:
            near = " or ".join(nearest_keys(name))
            do = f"did you mean {near}?" if near else "`minipd train --help` lists the keys"
            raise InputError("a configuration key", f"{name} in {source}", do)
        key = KEYS[name]
        change: dict[str, Any] = {key.name: _typed(key, value, source)}
        if key.section:
            change = {key.section: dataclasses.replace(getattr(config, key.section), **change)}
        config = dataclasses.replace(config, **change)
    return config


def _typed(key: Key, value: Any, source: str) -> Any:
    if key.kind is float and type(value) is int:
        return float(value)
    if type(value) is not key.kind:  # not isinstance: a bool is no int here
        raise InputError(
            f"{key} to be {a_kind(key.kind)}",
            f"{value!r} in {source}",
            f"give {a_kind(key.kind)} ({key.about})",
        )
    return value


def a_kind(kind: type) -> str:
    """The name of a type for people.

    >>> a_kind(int)
    'a whole number'
    """
    return {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}[kind]


def nearest_keys(name: str) -> list[str]:
    """At most three keys that `name` may have meant, best first: by how they are spelled, else how they are explained.

    >>> nearest_keys("train.learning_rate"), nearest_keys("optimizer.beta_1"), nearest_keys("zzz")
    (['train.lr', 'train.min_lr', 'train.warmup'], ['train.beta1', 'train.beta2'], [])
    """
    section, _, last = name.rpartition(".")  # the section may be wrong while the name is right
    spelled = {
        candidate: (difflib.SequenceMatcher(None, last, key.name).ratio(), section == key.section)
        for candidate, key in KEYS.items()
    }
    near = [candidate for candidate in KEYS if spelled[candidate][0] > 0.6]
    if near:
        return sorted(near, key=lambda candidate: spelled[candidate], reverse=True)[:3]
    words = last.replace("_", " ")
    return [candidate for candidate, key in KEYS.items() if len(words) > 3 and words in key.about][:3]


def resolve(config: RunConfig) -> RunConfig:
    """`config` with the values that stand for others filled in: model.kv_heads, model.max_seq, train.micro_batches.

    >>> config = resolve(RunConfig())
    >>> config.model.kv_heads, config.model.max_seq, config.train.micro_batches
    (4, 128, 4)
    """
    model, train = config.model, config.train
    filled = dataclasses.replace(
        model, kv_heads=model.kv_heads or model.heads, max_seq=model.max_seq or config.data.seq_len
    )
    staged = config.dist.axes.get("pp", 1) > 1
    parts = dataclasses.replace(train, micro_batches=train.micro_batches or (4 if staged else 1))
    return dataclasses.replace(config, model=filled, train=parts)


def parse_mesh(text: str) -> dict[str, int]:
    """The axes of a mesh and their sizes, outermost first.

    Raises:
        InputError: the text is not `name=size,name=size,...` with sizes of at least 1 and no name twice.

    >>> parse_mesh("dp=2,tp=4")
    {'dp': 2, 'tp': 4}
    """
    try:
        return parse_axes(text)
    except ValueError:
        raise InputError(
            "a mesh of different axes with sizes, such as pp=2,tp=2", repr(text), "give dist.mesh in that form"
        ) from None
