"""Mixed precision for a Model: what `prepare(amp_configs=...)` asks for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from minipd.amp import GradScaler, auto_cast, decorate
from minipd.nn.layer import Layer

__all__: list[str] = []

LEVELS = ("O0", "O1", "O2")
CASTING = ("custom_white_list", "custom_black_list", "dtype")
SCALING = ("init_loss_scaling", "incr_ratio", "decr_ratio", "incr_every_n_steps", "decr_every_n_nan_or_inf",
           "use_dynamic_loss_scaling")


def mixed_precision(configs: Any, network: Layer,
                    optimizer: Any) -> tuple[Callable[[], AbstractContextManager], GradScaler | None]:
    """What to compute in, a function that makes a context, and what scales the loss, None for nothing.

    configs: a level, or a dict of a level, options of `amp.auto_cast` and options of `amp.GradScaler`.  O2 converts the
    network's parameters.
    Raises: ValueError for another level, or an option that is none.
    """
    given: dict[str, Any] = {"level": configs} if isinstance(configs, str) else dict(configs or {"level": "O0"})
    level = given.pop("level", "O1")
    unknown = sorted(given.keys() - {*CASTING, *SCALING})
    if level not in LEVELS or unknown:
        raise ValueError(f"Model.prepare: expected amp_configs with a level of {', '.join(LEVELS)} and options of "
                         f"{', '.join((*CASTING, *SCALING))}, got level {level!r}"
                         + (f" and {', '.join(unknown)}" if unknown else ""))
    if level == "O0":
        return nullcontext, None
    casting = {key: given[key] for key in CASTING if key in given}
    scaler = GradScaler(**{key: given[key] for key in SCALING if key in given})
    if level == "O2" and optimizer is not None:
        decorate(network, optimizer, level="O2", dtype=casting.get("dtype", "float16"))
    return lambda: auto_cast(level=level, **casting), scaler
