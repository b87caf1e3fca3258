"""parallelize: plans for the layers of a model, found by their names."""

from __future__ import annotations

import re
import warnings
from typing import Any

from minipd.dist.api.context import get_mesh, set_mesh
from minipd.dist.api.layers import replicate_rest
from minipd.dist.api.optimizer import shard_optimizer
from minipd.dist.api.plans import PlanBase, mp_axis
from minipd.dist.api.tensors import check_mesh
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Replicate
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor

__all__ = ["parallelize", "parallelize_model", "parallelize_optimizer"]

CONFIGS = ("mp_config", "dp_config", "pp_config", "cp_config")


def parallelize(model: Any, optimizer: Any = None, mesh: ProcessMesh | None = None, config: dict | None = None) -> Any:
    """Distribute a model's parameters, and let activations be split between its layers, as the configuration says.

    Args:
        model: a layer whose parameters are not distributed yet.
        optimizer: its optimizer, whose state is to be where the parameters are; None for none.
        mesh: of the axes `dp` and `mp`; the mesh that `set_mesh` was given unless given, else it is set.
        config: a dict with some of these:
            mp_config: {"parallelize_plan": {name: plan, or a list of plans}}.  A name is that of a sublayer
                (`llama.layers.0.mlp.up_proj`), or of a parameter in it, and may be a regular expression
                (`llama.layers.*.mlp.up_proj`) that fits all of a layer's name.  The plans are those of `plans`.
            dp_config: {"sharding_level": 0}: batches are split over `dp`, parameters are not.

    What no plan places is replicated.  A parameter that two layers share is placed by the first plan that meets it.
    Returns: (model, optimizer): the model itself, and what `shard_optimizer` makes of the optimizer; both as they were
    without a configuration.
    Raises: ValueError for a mesh without the axes, TypeError for what are no plans; NotImplementedError, by name, for
    sharding levels above 0, pipelines and context parallelism.

    >>> from minipd.dist.api.plans import ColWiseParallel, RowWiseParallel
    >>> from minipd.dist.mesh import parse_mesh
    >>> from minipd.nn import Linear, Sequential
    >>> plan = {"0": ColWiseParallel(), "1": RowWiseParallel()}
    >>> model, _ = parallelize(Sequential(Linear(4, 8), Linear(8, 4)), mesh=parse_mesh("mp=1"),
    ...                        config={"mp_config": {"parallelize_plan": plan}})
    >>> {name: p.placements for name, p in model.named_parameters()}
    {'0.weight': [Shard(dim=1)], '0.bias': [Shard(dim=0)], '1.weight': [Shard(dim=0)], '1.bias': [Replicate()]}
    >>> current().mesh = None
    """
    if config is None:
        warnings.warn("parallelize: got no config, so model and optimizer stay as they are", stacklevel=2)
        return model, optimizer
    mesh, plans = _checked(config, mesh, "parallelize")
    if mesh is None:
        return model, optimizer
    _apply(model, mesh, plans)
    return model, None if optimizer is None else shard_optimizer(optimizer)


def parallelize_model(model: Any, mesh: ProcessMesh | None = None, config: dict | None = None) -> Any:
    """`parallelize` of a model alone; its optimizer, made afterwards, is given to `parallelize_optimizer`."""
    return parallelize(model, None, mesh, config)[0]


def parallelize_optimizer(optimizer: Any, mesh: ProcessMesh | None = None, config: dict | None = None) -> Any:
    """What `parallelize` makes of an optimizer, for one that was made with the parameters of a parallelized model.

    Raises: ValueError if a parameter is not distributed.
    """
    if config is None:
        warnings.warn("parallelize_optimizer: got no config, so the optimizer stays as it is", stacklevel=2)
        return optimizer
    _checked(config, mesh, "parallelize_optimizer")
    for p in optimizer._parameter_list:
        if not p.is_dist():
            raise ValueError(f"parallelize_optimizer: expected an optimizer of the parameters of a parallelized model, "
                             f"got {p.name}, which is not distributed; call parallelize_model first")
    return shard_optimizer(optimizer)


def _checked(config: dict, mesh: ProcessMesh | None, what: str) -> tuple[ProcessMesh | None, dict[str, list]]:
    """The mesh, None if there is nothing to do, and the plans by name."""
    if not isinstance(config, dict):
        raise TypeError(f"{what}: expected config to be a dict with some of {', '.join(CONFIGS)}, got {config!r}")
    unknown = [key for key in config if key not in CONFIGS]
    if unknown:
        raise ValueError(f"{what}: expected a config with some of {', '.join(CONFIGS)}, got "
                         f"{', '.join(map(str, unknown))}")
    given = {key: value for key, value in config.items() if value is not None}
    _refuse(given, what)
    if mesh is not None:
        if current().mesh is not None and current().mesh != check_mesh(mesh, what):
            warnings.warn(f"{what}: the mesh {mesh.text()} takes the place of the one that was set, "
                          f"{current().mesh.text()}", stacklevel=3)
        set_mesh(mesh)
    if not given:
        return None, {}
    mesh = get_mesh()
    if mesh is None:
        raise ValueError(f"{what}: expected a mesh, got none; pass mesh, or call set_mesh first")
    if "pp" in mesh.names and mesh.get_dim_size("pp") > 1:
        raise NotImplementedError(f"{what}: expected a mesh of dp and mp, got {mesh.text()}; pipelines (an axis pp) "
                                  "are not part of this version")
    if "dp_config" in given and "dp" not in mesh.names:
        raise ValueError(f"{what}: expected a mesh with an axis 'dp' for dp_config, got {mesh.text()}")
    plans = (given.get("mp_config") or {}).get("parallelize_plan")
    if "mp_config" in given:
        mp_axis(mesh, f"{what} with mp_config")
        if plans is None:
            warnings.warn(f"{what}: got an mp_config without parallelize_plan, which splits nothing", stacklevel=3)
    return mesh, _plans(plans or {}, what)


def _refuse(given: dict, what: str) -> None:
    for key, value in given.items():
        if not isinstance(value, dict):
            raise TypeError(f"{what}: expected {key} to be a dict, got {value!r}")
    level = given.get("dp_config", {}).get("sharding_level", 0)
    if str(level) not in ("0", "None"):
        if str(level) not in ("1", "2", "3"):
            raise ValueError(f"{what}: expected sharding_level 0 to 3, got {level!r}")
        raise NotImplementedError(f"{what}: expected sharding_level 0, got {level!r}; sharding stages are not part of "
                                  "this version")
    if "pp_config" in given:
        raise NotImplementedError(f"{what}: expected mp_config and dp_config, got pp_config={given['pp_config']!r}; "
                                  "pipelines are not part of this version of parallelize: cut the model with reshard")
    if "cp_config" in given:
        raise NotImplementedError(f"{what}: expected mp_config and dp_config, got cp_config; context parallelism is "
                                  "not part of this version")


def _plans(given: Any, what: str) -> dict[str, list]:
    if not isinstance(given, dict):
        raise TypeError(f"{what}: expected parallelize_plan to be a dict of names and plans, got {given!r}")
    found = {name: list(plan) if isinstance(plan, (list, tuple)) else [plan] for name, plan in given.items()}
    for name, plans in found.items():
        for plan in plans:
            if not isinstance(name, str) or not isinstance(plan, PlanBase):
                raise TypeError(f"{what}: expected names of layers with plans such as ColWiseParallel(), got "
                                f"{name!r}: {plan!r}")
    return found


def _apply(model: Any, mesh: ProcessMesh, plans: dict[str, list]) -> None:
    met = set()
    for name, layer in model.named_sublayers():
        for key, found in plans.items():
            pattern, parameters = key, []
            layers, _, last = key.rpartition(".")
            if layers and isinstance(getattr(layer, last, None), Tensor):       # a name that ends in a parameter's
                pattern, parameters = layers, [last]
            if pattern == name or _fits(pattern, name):
                met.add(key)
                for plan in found:
                    plan.apply(layer, mesh, parameters)
    for key in plans.keys() - met:
        warnings.warn(f"parallelize: no layer of the model is called {key!r}, so its plan does nothing", stacklevel=3)
    for layer in model.sublayers(include_self=True):
        replicate_rest(layer, mesh, [Replicate()] * mesh.ndim)


def _fits(pattern: str, name: str) -> bool:
    """Whether a pattern, read as a regular expression, fits all of a name."""
    try:
        found = re.match(pattern, name)
    except re.error as e:
        raise ValueError(f"parallelize: expected the name of a layer, or a regular expression, got {pattern!r} "
                         f"({e})") from None
    return found is not None and found.end() == len(name)
