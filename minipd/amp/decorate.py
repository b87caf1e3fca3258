"""`decorate`: a model, and its optimizers, made ready for level O2."""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.context import using
from minipd.nn.batch_norm import BatchNorm, BatchNorm1D, BatchNorm2D, BatchNorm3D, SyncBatchNorm
from minipd.nn.conversion import change_dtype
from minipd.nn.layer import Layer
from minipd.ops.cast import cast
from minipd.optimizer import Optimizer

__all__ = ["amp_decorate", "decorate"]

#: layers that keep float32, for what they keep are statistics
STATISTICS = (BatchNorm, BatchNorm1D, BatchNorm2D, BatchNorm3D, SyncBatchNorm)


def decorate(models: Any, optimizers: Any = None, level: str = "O1", dtype: str = "float16",
             master_weight: bool | None = None, save_dtype: str | None = None, master_grad: bool = False,
             excluded_layers: Any = None) -> Any:
    """In level O2, cast the float32 parameters of models to low precision; in O1, leave all as it is.

    Args:
        models, optimizers: one or a list each.
        master_weight: let the optimizers keep float32 copies of the parameters; they do unless it is False.
        save_dtype: the dtype in which `state_dict` gives floating values.
        master_grad: accepted, without effect: gradients are cast to float32 before the optimizer sees them.
        excluded_layers: layers, or classes of layers, that keep float32, as layers with running statistics do.

    Returns: the models, changed in place, and the optimizers, if there are any.
    Raises: ValueError for an unknown level or dtype, or an optimizer that has begun; TypeError for what are no models.
    """
    low = dtypes.to_np(dtype)
    if level not in ("O0", "OD", "O1", "O2") or low not in dtypes.LOW_PRECISION:
        raise ValueError(f"decorate: expected level O1 or O2 and dtype float16 or bfloat16, got {level!r} and "
                         f"{dtype!r}")
    for model in _listed(models):
        if not isinstance(model, Layer):
            raise TypeError(f"decorate: expected models to be one Layer or a list of them, got {models!r}")
    for optimizer in _listed(optimizers):
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"decorate: expected optimizers to be one Optimizer or a list of them, got {optimizers!r}")
    if level == "O2":
        for optimizer in _listed(optimizers):
            if optimizer._state:
                raise ValueError("decorate: expected an optimizer that has made no step yet, got one with state for "
                                 f"{len(optimizer._state)} parameters; decorate it before")
            optimizer.multi_precision = master_weight is not False
        for model in _listed(models):
            _lower(model, low, _listed(excluded_layers))
    if save_dtype is not None:
        for model in _listed(models):
            _save_as(model, dtypes.to_np(save_dtype))
    return models if optimizers is None else (models, optimizers)


amp_decorate = decorate


def _listed(given: Any) -> list:
    return list(given) if isinstance(given, (list, tuple)) else [] if given is None else [given]


def _lower(model: Layer, low: Any, excluded: list) -> None:
    """Cast what belongs to the layers of a model, but not what belongs to those that are left out."""
    classes = (*STATISTICS, *(e for e in excluded if isinstance(e, type)))
    spared = {id(inner) for layer in model.sublayers(include_self=True)
              if isinstance(layer, classes) or any(layer is e for e in excluded)
              for inner in layer.sublayers(include_self=True)}
    with using(grad=False, amp=None):
        for layer in model.sublayers(include_self=True):
            if id(layer) not in spared:
                for x in (*layer._parameters.values(), *layer._buffers.values()):
                    if x is not None and x.payload.dtype == dtypes.float32.np:
                        change_dtype(x, low)


def _save_as(model: Layer, dtype: Any) -> None:
    """Let `model.state_dict()` give its floating values in another dtype."""
    state_dict = model.state_dict

    def converted(*args: Any, **kwargs: Any) -> Any:
        found = state_dict(*args, **kwargs)
        for name, x in found.items():
            if x.payload.dtype in dtypes.FLOATS:
                found[name] = cast(x.detach(), dtype)
        return found
    model.state_dict = converted        # type: ignore[method-assign]
