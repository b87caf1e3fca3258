"""Compiled functions: Paddle's `paddle.jit`.

    api            to_static and its like
    function       what to_static returns: which program a call uses
    dy2static      functions rewritten, so that tensors may decide branches and loops
    signature      under which key a program is kept
    guards, reads  what a trace has read around the function, and whether it still is as it was
    objects        attributes of plain objects, noted as they are read
    open_sizes     programs for open dimensions: which calls one serves
    effects        what a function does to Python's state, done again by every call
    capture        the trace that binds outside tensors by their handle
    compiled       one signature: bindings, calls
    segments       full_graph=False: what is noted, and when it is computed
    pending, paths, segment_program         what stands for a value until then; segments by their content; compiled
    explain        what has been compiled, and why
    runnable       a program and its gradient, compiled, as one node on the tape
    replay         such a node as nodes of single operators
    save_load, translated_layer, rerun      models as files, and as layers again
    joint, saving  a program and its gradient, cut into two; what the second takes over
    stages         the table of compile stages that floors register into
"""

from minipd.jit.api import StaticFunction, enable_to_static, not_to_static, to_static
from minipd.jit.dy2static import ignore_module, set_code_level, set_verbosity
from minipd.jit.explain import explain
from minipd.jit.save_load import load, save
from minipd.jit.stages import register_stage
from minipd.jit.translated_layer import TranslatedLayer

__all__ = ["StaticFunction", "TranslatedLayer", "enable_to_static", "explain", "ignore_module", "load",
           "not_to_static", "register_stage", "save", "set_code_level", "set_verbosity", "to_static"]
