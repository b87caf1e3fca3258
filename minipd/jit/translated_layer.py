"""TranslatedLayer: a saved model as a layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from minipd.framework.dim import DimExpr
from minipd.framework.rank import current
from minipd.framework.tensor import Parameter, Tensor
from minipd.ir.program import Program
from minipd.jit.api import StaticFunction
from minipd.jit.rerun import rerun
from minipd.nn.layer import Layer
from minipd.ops.creation import to_tensor
from minipd.static.input import InputSpec
from minipd.static.saved_model import Model, imported

__all__ = ["TranslatedLayer"]


class TranslatedLayer(Layer):
    """What `paddle.jit.load` returns: a layer whose `forward`, and other saved methods, are programs.

    It is used like any other layer: called, trained further, made part of another model, given to `to_static`, saved
    again.  Its parameters are called `param_0`, `param_1`, ... in the order of the names that they were saved under.
    A saved program is that of evaluation: `train()` does not bring back the dropout that it was saved without.  Of
    a size that was fixed when it was saved, it runs for others as far as its operators allow, as in Paddle.

    >>> from tempfile import TemporaryDirectory
    >>> from minipd.jit.save_load import load, save
    >>> from minipd.nn import Linear
    >>> layer = Linear(3, 2)
    >>> with TemporaryDirectory() as folder:
    ...     save(layer, f"{folder}/net", [InputSpec([None, 3])])
    ...     again = load(f"{folder}/net")
    >>> again(np.ones((4, 3), "float32")).shape, list(again.state_dict())
    (paddle.Size([4, 2]), ['param_0', 'param_1'])
    """

    def __init__(self, models: Mapping[str, Model], files: Mapping[str, str]):
        super().__init__()
        self.training = False
        self._names: dict[str, str] = {}            # saved name -> attribute
        names = sorted({n for model in models.values() for n in model.values})
        for i, name in enumerate(names):
            model = next(m for m in models.values() if name in m.values)
            self._names[name] = f"param_{i}"
            value = model.saved.program.get_parameter_value_by_name(name)
            self.add_parameter(f"param_{i}", _parameter(name, model.values[name], value.stop_gradient))
        self._methods = {name: _Method(self, name, model, files[name]) for name, model in models.items()}
        for name, method in self._methods.items():
            if name != "forward":
                object.__setattr__(self, name, method)

    def forward(self, *inputs: Any) -> Any:
        """What the saved layer computes: one tensor, or a list of them."""
        if "forward" not in self._methods:
            raise RuntimeError(f"TranslatedLayer: expected a model saved with its forward, got one with only "
                               f"{', '.join(self._methods)}; call these")
        return self._methods["forward"](*inputs)

    def program(self, method_name: str = "forward") -> Program:
        """The program of a method, in Paddle's form as it is in the file.

        Raises: ValueError if there is no method of that name.
        """
        if method_name not in self._methods:
            raise ValueError(f"TranslatedLayer.program: expected the name of a saved method, "
                             f"{', '.join(self._methods)}, got {method_name!r}")
        return self._methods[method_name].original

    def _input_spec(self, method_name: str = "forward") -> list[InputSpec]:
        """What each input looks like."""
        return self._methods[method_name].specs

    def saved_state(self) -> dict[str, Tensor]:
        """The parameters by the names that they were saved under."""
        return {name: getattr(self, attribute) for name, attribute in self._names.items()}


class _Method:
    """One saved program, as a function of tensors: compiled once for all sizes that it was saved for."""

    def __init__(self, layer: TranslatedLayer, name: str, model: Model, file: str):
        self.__name__ = self.__qualname__ = name
        self.original = model.saved.program
        self.program = imported(self.original, file)
        self.layer = layer
        inputs = [op for op in self.program.global_block() if op.name() == "pd_op.data"]
        self.inputs = [op.attributes["name"].value for op in inputs]
        self.outputs = sum(op.name() == "builtin.shadow_output" for op in self.program.global_block())
        self.specs = [InputSpec([str(d) if isinstance(d, DimExpr) and d.is_symbol else d for d in op.result(0).shape],
                                op.result(0).dtype, name, op.result(0).stop_gradient)
                      for op, name in zip(inputs, self.inputs, strict=True)]
        self.missing = sorted(name for name, value in self.program.parameters().items() if name not in model.values
                              and any(op.info.registered for op in value.all_used_ops()))
        self.file = file
        self.compiled, self.resized = StaticFunction(self.run, self.specs), StaticFunction(self.run)

    def __call__(self, *inputs: Any) -> Any:
        if len(inputs) != len(self.inputs):
            raise TypeError(f"{self.__name__}: expected {len(self.inputs)} inputs ({', '.join(self.inputs)}), got "
                            f"{len(inputs)}")
        for name, x in zip(self.inputs, inputs, strict=True):
            if not isinstance(x, (Tensor, np.ndarray)):
                raise TypeError(f"{self.__name__}: expected a Tensor or an array for input {name}, got "
                                f"{type(x).__name__}")
        if self.missing:
            raise ValueError(f"{self.__name__}: expected values for all parameters that {self.file} reads, got none "
                             f"for {', '.join(self.missing)}, which Paddle does not save: make them persistable")
        tensors = [to_tensor(x) if isinstance(x, np.ndarray) else x for x in inputs]
        as_saved = all(d == n for spec, x in zip(self.specs, tensors, strict=True) if len(spec.shape) == len(x.shape)
                       for d, n in zip(spec.shape, x.shape, strict=True) if isinstance(d, int))
        return (self.compiled if as_saved else self.resized)(*tensors)

    def run(self, *inputs: Tensor) -> Any:
        found = rerun(self.program, dict(zip(self.inputs, inputs, strict=True)), self.layer.saved_state())
        outs = [found[f"output_{i}"] for i in range(self.outputs)]
        return outs[0] if len(outs) == 1 else outs


def _parameter(name: str, array: np.ndarray, frozen: bool) -> Parameter:
    """A parameter with these values; its name is new, so that a model may be loaded twice."""
    p = Parameter(array)
    p.name = current().unique_name(name)
    p.stop_gradient = frozen
    p.persistable = True
    return p
