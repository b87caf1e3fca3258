"""Paddle's static API: programs that are written first and run later.

    program        static mode: the default programs, program_guard
    for_test       copies of programs, and their form for evaluation
    declarations   what is declared in it: data, create_parameter, create_global_var
    places         where programs run, and settings that Paddle takes
    executor       Executor: run a program with a feed, fetch values
    scope          where program state is between runs
    storage        save and load that state
    inference_model save and load what a program computes, in Paddle 3's files
    saved_model    these files: a program and its parameters
    gradients      gradients, append_backward
    input          InputSpec, the declaration of an input
    control_flow   cond; loops: while_loop; choices: case, switch_case; effects: Print, Assert
    metric         accuracy, auc
    averages       ExponentialMovingAverage
    weight_norm    WeightNormParamAttr
    older_paths    names of these under `paddle.base` and `paddle.framework`
    nn             the names of `paddle.static.nn`
"""

from minipd.static import nn
from minipd.static import older_paths as _older_paths  # noqa: F401  (puts names into paddle.base and paddle.framework)
from minipd.static.averages import ExponentialMovingAverage
from minipd.static.declarations import create_global_var, create_parameter, data
from minipd.static.effects import Print
from minipd.static.executor import Executor
from minipd.static.gradients import append_backward, gradients
from minipd.static.inference_model import (
    deserialize_persistables,
    deserialize_program,
    load_from_file,
    load_inference_model,
    normalize_program,
    save_inference_model,
    save_to_file,
    serialize_persistables,
    serialize_program,
)
from minipd.static.input import InputSpec
from minipd.static.metric import accuracy, auc
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
from minipd.static.storage import load, load_program_state, save, set_program_state
from minipd.static.weight_norm import WeightNormParamAttr

__all__ = ["BuildStrategy", "CompiledProgram", "Executor", "ExponentialMovingAverage", "InputSpec", "Print",
           "Program", "Scope", "WeightNormParamAttr", "accuracy", "append_backward", "auc", "cpu_places",
           "create_global_var", "create_parameter", "cuda_places", "data", "default_main_program",
           "default_startup_program", "deserialize_persistables", "deserialize_program", "device_guard",
           "global_scope", "gradients", "load", "load_from_file", "load_inference_model",
           "load_program_state", "name_scope", "nn", "normalize_program", "program_guard", "save",
           "save_inference_model", "save_to_file", "scope_guard", "serialize_persistables",
           "serialize_program", "set_program_state", "xpu_places"]
