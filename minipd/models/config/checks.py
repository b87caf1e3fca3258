"""Whether the values of a run fit together: everything that can be known before anything is loaded or written."""

import math
from dataclasses import dataclass

from minipd.framework.errors import InputError
from minipd.models.config.values import KEYS, RunConfig, get
from minipd.parallel.pipeline.schedule import SCHEDULES


@dataclass(frozen=True)
class Range:
    """From `least` (or above it, where `open_below`) to below `limit`."""

    least: float
    open_below: bool = False
    limit: float = math.inf

    def allows(self, value: float) -> bool:
        """Whether the value is within; a NaN or an infinity never is."""
        return (self.least < value if self.open_below else self.least <= value) and value < self.limit

    def __str__(self) -> str:
        below = "" if self.limit == math.inf else f" and below {self.limit:g}"
        return f"{'above' if self.open_below else 'at least'} {self.least:g}{below}"


COUNT, NOT_NEGATIVE, POSITIVE, DECAY = Range(1), Range(0), Range(0, open_below=True), Range(0, limit=1)

RANGES = {
    "seed": Range(0, limit=2**63),
    "data.seq_len": COUNT,          # before model.max_seq, which takes its value from here unless it is set
    "model.vocab_size": Range(256),
    **{f"model.{name}": COUNT for name in ("dim", "layers", "heads", "kv_heads", "ffn_dim", "max_seq")},
    "model.rope_base": Range(1, open_below=True),
    "model.norm_eps": POSITIVE,
    **{f"train.{name}": COUNT for name in ("steps", "batch", "micro_batches", "eval_every", "eval_batches")},
    **{f"train.{name}": NOT_NEGATIVE for name in ("min_lr", "weight_decay", "clip_norm", "checkpoint_every")},
    **{f"train.{name}": POSITIVE for name in ("lr", "epsilon")},
    **{f"train.{name}": DECAY for name in ("warmup", "beta1", "beta2")},
    "sample.tokens": NOT_NEGATIVE,
    "sample.temperature": NOT_NEGATIVE,
}

CHOICES = {"train.dtype": ("float32", "float64"), "dist.comm": ("mpi", "sim"), "dist.schedule": tuple(SCHEDULES)}

MESH_AXES = ("dp", "tp", "pp")  # what the placements of the model know


def validate(config: RunConfig, world_size: int | None = None) -> None:
    """Check a resolved configuration.

    A vocabulary or a feed-forward width that tp does not divide is allowed: shards may be uneven. Heads may not: a head
    is computed in one place.

    Args:
        world_size: the number of ranks that were started, once it is known.

    Raises:
        InputError: a value is out of its range, or two values do not fit together.

    >>> from minipd.models.config.values import resolve, with_values
    >>> validate(resolve(RunConfig()), world_size=4)
    >>> validate(resolve(with_values(RunConfig(), {"dist.mesh": "dp=1,tp=3"}, "an example")))
    Traceback (most recent call last):
    ...
    minipd.framework.errors.InputError: expected model.heads that tp = 3 divides, got 4: change model.heads or \
dist.mesh
    """
    for key, allowed in RANGES.items():
        value = get(config, key)
        if not allowed.allows(value):
            raise InputError(f"{key} to be {allowed}", str(value), f"change it ({KEYS[key].about})")
    for key, choices in CHOICES.items():
        if get(config, key) not in choices:
            raise InputError(f"{key} to be {' or '.join(choices)}", repr(get(config, key)), "choose one of them")

    axes = config.dist.axes
    for axis in axes:
        if axis not in MESH_AXES:
            raise InputError(
                f"mesh axes from {', '.join(MESH_AXES)}", f"{axis!r} in {config.dist.mesh}", "change dist.mesh"
            )
    if world_size is not None and world_size != config.dist.ranks:
        raise InputError(
            f"a mesh of {world_size} rank{'s' * (world_size > 1)}, as many as were started",
            f"{config.dist.mesh}, which is {config.dist.ranks}",
            f"start {config.dist.ranks}, or change dist.mesh",
        )
    dp, tp, pp = (axes.get(axis, 1) for axis in MESH_AXES)

    model, train = config.model, config.train
    _divides("model.heads", model.heads, "model.dim", model.dim, change="model.dim or model.heads")
    if model.dim // model.heads % 2:
        raise InputError(
            "an even head width model.dim / model.heads, as rotary embedding turns pairs",
            f"{model.dim} / {model.heads} = {model.dim // model.heads}",
            "change model.dim or model.heads",
        )
    _divides("model.kv_heads", model.kv_heads, "model.heads", model.heads, change="model.heads or model.kv_heads")
    _divides("tp", tp, "model.heads", model.heads, change="model.heads or dist.mesh")
    _divides("tp", tp, "model.kv_heads", model.kv_heads, change="model.kv_heads or dist.mesh")
    check_stages(model.layers, pp)
    parts = dp * train.micro_batches
    change = "train.batch, train.micro_batches or dist.mesh"
    _divides("dp times train.micro_batches", parts, "train.batch", train.batch, change)
    if config.data.seq_len > model.max_seq:
        raise InputError(
            f"data.seq_len of at most model.max_seq = {model.max_seq}",
            str(config.data.seq_len),
            "raise model.max_seq (0: as long as data.seq_len) or shorten the sequences",
        )
    if train.min_lr > train.lr:
        raise InputError(f"train.min_lr of at most train.lr = {train.lr}", str(train.min_lr), "lower train.min_lr")
    if config.sample.tokens and not config.sample.prompt:
        raise InputError(
            "a sample.prompt to go on from", "an empty one", "give one, or write no sample with sample.tokens = 0"
        )


def check_stages(layers: int, stages: int) -> None:
    """Raise InputError if there are more pipeline stages than layers."""
    if layers < stages:
        raise InputError(
            f"at least one layer on each of pp = {stages} stages",
            f"model.layers = {layers}",
            "raise model.layers or lower pp in dist.mesh",
        )


def _divides(by: str, divisor: int, name: str, value: int, change: str) -> None:
    if value % divisor:
        raise InputError(f"{name} that {by} = {divisor} divides", str(value), f"change {change}")
