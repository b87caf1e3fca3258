"""`paddle.tensor`: the functions of tensors by their older path; called, it makes a tensor (`as_tensor`).

>>> import minipd
>>> minipd.tensor([1.0]).tolist(), minipd.tensor.add(minipd.ones([1]), 1.0).tolist()
([1.0], [2.0])
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.tensor import Tensor
from minipd.ops import FAMILIES
from minipd.ops.conversion import as_tensor

__all__ = ["create_tensor"]


def create_tensor(dtype: Any, name: str | None = None, persistable: bool = False) -> Tensor:
    """A tensor without elements, to be the output of a function that has one."""
    made = Tensor(np.empty(0, dtypes.to_np(dtype)))
    made.persistable = persistable
    if name is not None:
        made.name = name
    return made


class _Callable(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        return as_tensor(*args, **kwargs)


for _family in FAMILIES:
    _module = importlib.import_module(f"minipd.ops.{_family}")
    globals().update({_name: getattr(_module, _name) for _name in _module.__all__})
    __all__ += _module.__all__
sys.modules[__name__].__class__ = _Callable

#: Paddle's files of such functions: all of them are here.
attribute = creation = linalg = logic = manipulation = math = random = search = stat = sys.modules[__name__]
