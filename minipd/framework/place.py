"""Places: where a tensor's memory is.  Here there is one, the memory of the CPU."""

from __future__ import annotations

from typing import Any

__all__ = ["CPUPlace", "CUDAPinnedPlace", "CUDAPlace", "XPUPinnedPlace", "XPUPlace", "get_device",
           "is_compiled_with_cuda", "is_compiled_with_distribute", "is_compiled_with_rocm", "is_compiled_with_xpu",
           "set_device"]


class Place:
    """Paddle's `Place`.  All places of one kind are equal.

    >>> CPUPlace(), CPUPlace() == CPUPlace(), CPUPlace().is_gpu_place()
    (Place(cpu), True, False)
    """

    kind = ""

    def __repr__(self) -> str:
        return f"Place({self.kind})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place) and self.kind == other.kind

    def __hash__(self) -> int:
        return hash(self.kind)

    def is_cpu_place(self) -> bool:
        return self.kind == "cpu"

    def is_gpu_place(self) -> bool:
        return self.kind == "gpu"

    def is_cuda_pinned_place(self) -> bool:
        return self.kind == "gpu_pinned"

    def is_xpu_place(self) -> bool:
        return self.kind == "xpu"


class CPUPlace(Place):
    """The memory of the CPU."""

    kind = "cpu"


class _Elsewhere(Place):
    def __init__(self, *_: Any):
        raise RuntimeError(f"{type(self).__name__}: expected CPUPlace(); tensors of minipd are in the CPU's memory")


class CUDAPlace(_Elsewhere):
    """The memory of a GPU, which minipd does not use: making one raises RuntimeError."""

    kind = "gpu"


class CUDAPinnedPlace(_Elsewhere):
    """Host memory pinned for a GPU, which minipd does not use: making one raises RuntimeError."""

    kind = "gpu_pinned"


class XPUPlace(_Elsewhere):
    """The memory of an XPU, which minipd does not use: making one raises RuntimeError."""

    kind = "xpu"


class XPUPinnedPlace(_Elsewhere):
    """Host memory pinned for an XPU, which minipd does not use: making one raises RuntimeError."""

    kind = "xpu_pinned"


class Device:
    """A device as `Tensor.device` names it.

    >>> print(Device("cpu"), Device("cpu") == "cpu")
    cpu True
    """

    def __init__(self, type: str, index: int | None = None):
        self.type, self.index = type, index

    def __repr__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return repr(self) == (other if isinstance(other, str) else repr(other))

    def __hash__(self) -> int:
        return hash(repr(self))


CPU, CPU_DEVICE = CPUPlace(), Device("cpu")


def is_device(name: object) -> bool:
    """Whether `name` names a device, of whatever kind: a place, a Device, or a string such as "cpu" or "gpu:0"."""
    kinds = ("cpu", "gpu", "cuda", "xpu", "npu", "gpu_pinned")
    return isinstance(name, (Place, Device)) or isinstance(name, str) and name.split(":")[0].lower() in kinds


def check_device(what: str, device: object) -> None:
    """Accept the CPU, in any spelling, and None.

    Raises: ValueError for every other device.
    """
    if device is None or device == CPU or str(device).split(":")[0].lower() == "cpu":
        return
    raise ValueError(f"{what}: expected the device 'cpu', the only one that minipd uses, got {device!r}")


def set_device(device: str) -> Place:
    """Paddle's `set_device`: compute on this device from now on.

    Raises: ValueError for others than "cpu".
    """
    check_device("set_device", device)
    return CPU


def get_device() -> str:
    """Where tensors are made.

    >>> get_device()
    'cpu'
    """
    return "cpu"


def is_compiled_with_cuda() -> bool:
    """Whether tensors can be on NVIDIA's GPUs: False."""
    return False


def is_compiled_with_rocm() -> bool:
    """Whether tensors can be on AMD's GPUs: False."""
    return False


def is_compiled_with_xpu() -> bool:
    """Whether tensors can be on Kunlun's XPUs: False."""
    return False


def is_compiled_with_distribute() -> bool:
    """Whether ranks can work together: True."""
    return True
