"""Where programs run, and how: places, and the settings that Paddle takes for a program."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from minipd.framework.place import CPUPlace, CUDAPlace, XPUPlace
from minipd.static.program import Program

__all__ = ["BuildStrategy", "CompiledProgram", "cpu_places", "cuda_places", "device_guard", "name_scope", "xpu_places"]


def cpu_places(device_count: int | None = None) -> list[CPUPlace]:
    """As many CPU places as are asked for; None: as the environment variable CPU_NUM says, else one.

    >>> cpu_places(2)
    [Place(cpu), Place(cpu)]
    """
    count = int(os.environ.get("CPU_NUM", 1)) if device_count is None else device_count
    return [CPUPlace() for _ in range(count)]


def cuda_places(device_ids: Sequence[int] | None = None) -> list[CUDAPlace]:
    """Raises: RuntimeError: programs run on the CPU."""
    return [CUDAPlace(i) for i in ([0] if device_ids is None else device_ids)]


def xpu_places(device_ids: Sequence[int] | None = None) -> list[XPUPlace]:
    """Raises: RuntimeError: programs run on the CPU."""
    return [XPUPlace(i) for i in ([0] if device_ids is None else device_ids)]


@contextmanager
def device_guard(device: str | None = None) -> Iterator[None]:
    """Where operators of a program run.  Here they run on the CPU, as they do in Paddle where there is no such device.

    Raises: ValueError for what is no device.
    """
    if device is not None and not re.fullmatch(r"(cpu|gpu|xpu|dcu|npu)(:(\d+|all))?|", device):
        raise ValueError(f"device_guard: expected 'cpu', 'gpu', 'xpu' or 'dcu', with a number if it has one ('gpu:0'), "
                         f"'' or None, got {device!r}")
    yield


@contextmanager
def name_scope(prefix: str | None = None) -> Iterator[None]:
    """A part of a program, by name: accepted as in Paddle, whose programs do not print it either.

    Raises: ValueError for a prefix with a slash, or an empty one.
    """
    if prefix is not None and (not prefix or "/" in prefix):
        raise ValueError(f"name_scope: expected a name without a slash, got {prefix!r}")
    yield


class BuildStrategy:
    """Paddle's `BuildStrategy`: which rewritings Paddle does to a program before it runs.

    Its attributes can be set and read; here a program that is run is always lowered in one way, and `minipd.passes` are
    asked for by name.

    >>> strategy = BuildStrategy()
    >>> strategy.fuse_bn_act_ops = True
    >>> strategy.fuse_everything = True
    Traceback (most recent call last):
    ...
    AttributeError: BuildStrategy has no attribute 'fuse_everything'
    """

    class ReduceStrategy:
        """How gradients are brought together in data parallelism of old."""

        AllReduce, Reduce, _NoReduce = range(3)

    _FIRST: dict[str, Any] = {
        "allow_cuda_graph_capture": False, "async_mode": False, "bkcl_comm_num": 1, "build_cinn_pass": False,
        "cache_runtime_context": False, "debug_graphviz_path": "", "enable_addto": False, "enable_auto_fusion": False,
        "enable_backward_optimizer_op_deps": True, "enable_inplace": False, "fuse_adamw": False,
        "fuse_all_optimizer_ops": False, "fuse_all_reduce_ops": None, "fuse_bn_act_ops": False,
        "fuse_bn_add_act_ops": True, "fuse_broadcast_ops": None, "fuse_dot_product_attention": False,
        "fuse_elewise_add_act_ops": False, "fuse_gemm_epilogue": False, "fuse_relu_depthwise_conv": False,
        "fuse_resunit": False, "fused_attention": False, "fused_feedforward": False,
        "hierarchical_allreduce_inter_nranks": 0,
        "is_distribution": False, "memory_optimize": None, "mkldnn_enabled_op_types": set(), "nccl_comm_num": 1,
        "num_trainers": 1, "reduce_strategy": ReduceStrategy.AllReduce, "remove_unnecessary_lock": True,
        "sequential_run": False, "sync_batch_norm": False, "trainer_id": 0, "trainers_endpoints": [],
        "use_hierarchical_allreduce": False,
    }

    def __init__(self) -> None:
        vars(self).update({name: type(x)(x) if isinstance(x, (list, set)) else x for name, x in self._FIRST.items()})

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._FIRST:
            raise AttributeError(f"BuildStrategy has no attribute {name!r}")
        vars(self)[name] = value


class CompiledProgram:
    """Paddle's `CompiledProgram`: a program and how it is to be built.  An Executor runs it like the program.

    Raises: TypeError for what is no program, or no BuildStrategy.
    """

    def __init__(self, program_or_graph: Program, build_strategy: BuildStrategy | None = None):
        if not isinstance(program_or_graph, Program):
            raise TypeError(f"CompiledProgram: expected a static.Program, got {type(program_or_graph).__name__}")
        if not isinstance(build_strategy, BuildStrategy) and build_strategy is not None:
            raise TypeError(f"CompiledProgram: expected a BuildStrategy, got {type(build_strategy).__name__}")
        self.program, self.build_strategy = program_or_graph, build_strategy
