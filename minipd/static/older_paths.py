"""Names of static mode under Paddle's older paths: `paddle.base.program_guard`, `paddle.framework.in_pir_mode`."""

from __future__ import annotations

from typing import Any

from minipd import base, framework
from minipd.framework.mode import in_dynamic_mode
from minipd.nn.param_attr import ParamAttr
from minipd.static.executor import Executor
from minipd.static.gradients import append_backward, gradients
from minipd.static.places import (
    BuildStrategy,
    CompiledProgram,
    cpu_places,
    cuda_places,
    device_guard,
    name_scope,
    xpu_places,
)
from minipd.static.program import Program, default_main_program, default_startup_program, program_guard
from minipd.static.scope import Scope, global_scope, scope_guard
from minipd.static.weight_norm import WeightNormParamAttr

__all__ = ["in_dynamic_or_pir_mode", "in_pir_mode", "use_pir_api"]


def in_pir_mode() -> bool:
    """Whether what is called is written into a program."""
    return not in_dynamic_mode()


def in_dynamic_or_pir_mode() -> bool:
    """True: all programs are PIR's."""
    return True


def use_pir_api() -> bool:
    """True: all programs are PIR's."""
    return True


def _put(module: Any, *things: Any) -> None:
    for thing in things:
        setattr(module, thing.__name__, thing)


_put(base, BuildStrategy, CompiledProgram, Executor, ParamAttr, Program, Scope, WeightNormParamAttr, append_backward,
     cpu_places, cuda_places, default_main_program, default_startup_program, device_guard, global_scope, gradients,
     in_dynamic_or_pir_mode, in_pir_mode, name_scope, program_guard, scope_guard, xpu_places)
_put(base.core, Scope)
_put(framework, Program, in_dynamic_or_pir_mode, in_pir_mode, use_pir_api)
vars(base.core)["_Scope"] = Scope                           # as Paddle calls it there
