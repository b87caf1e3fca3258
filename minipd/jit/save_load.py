"""`paddle.jit.save` and `paddle.jit.load`: a layer, or a function, as a program with its parameters.

    net = MLP()
    paddle.jit.save(net, "model/net", [InputSpec([None, 8])])       model/net.json, model/net.pdiparams
    again = paddle.jit.load("model/net")                            a layer

The files are those of Paddle 3.  Of a layer, `forward` is saved, and every other method that is a `to_static` one,
under `net.<method>.json`.
"""

from __future__ import annotations

import inspect
import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.ir.program import Program
from minipd.ir.structure import flatten
from minipd.ir.traced import TracedProgram, trace
from minipd.jit.api import ENABLED, StaticFunction
from minipd.jit.capture import CapturingTrace
from minipd.jit.dy2static import traceable
from minipd.jit.dy2static.changes import Changes
from minipd.jit.translated_layer import TranslatedLayer
from minipd.nn.layer import Layer
from minipd.static.input import InputSpec
from minipd.static.saved_model import PARAMETERS, PROGRAM, as_parameter, exported, file_of, read_model, write_model

__all__ = ["load", "save"]

SAVE_OPTIONS = ("output_spec", "with_hook", "combine_params", "clip_extra", "skip_forward", "input_names_after_prune",
                "skip_prune_program")
LOAD_OPTIONS = ("model_filename", "params_filename")


def save(layer: Layer | Callable, path: str, input_spec: Sequence | None = None, **configs: Any) -> None:
    """Write `path.json` and `path.pdiparams`, in Paddle 3's format.

    layer: a Layer, or a function.  input_spec: an `InputSpec` (or a Tensor like it) for each tensor that it takes, and
    the values of other arguments; None for those given to `to_static`, or of its last call.  Unknown dimensions (None,
    -1) stay unknown.  Inputs are called as their specs are, or as the arguments of the function.

    The program is that of evaluation, whatever mode the layer is in: without dropout, with running statistics.  It
    holds forward only; whether gradients flow is kept, so that the model can be trained further after `load`.

    configs: output_spec, the numbers of the results to keep; with_hook, whether the layer's own hooks are part of the
    program (they are if it has some); skip_forward, to save only the other methods.  combine_params, clip_extra,
    input_names_after_prune, skip_prune_program: accepted as in Paddle, without effect.

    Raises: TypeError for what is no layer or function; ValueError without an input_spec, or for a config that there is
    not; InputError if the files cannot be written.
    """
    _check_options("jit.save", configs, SAVE_OPTIONS)
    if not current().flags.get(ENABLED, True):
        raise RuntimeError("jit.save: expected to_static to be enabled, got enable_to_static(False): a program cannot "
                           "be made; enable it again")
    if input_spec is not None and not isinstance(input_spec, (list, tuple)):
        raise TypeError(f"jit.save: expected input_spec to be a list, got {type(input_spec).__name__}")
    prefix = Path(path)
    if not prefix.name or str(path).endswith(("/", "\\")):
        raise ValueError(f"jit.save: expected a path such as folder/name, got {path!r}, which names no file")
    functions = dict(_functions(layer, configs))
    if len(functions) > 1 and input_spec is not None:
        raise ValueError("jit.save: expected no input_spec for a layer with several to_static methods "
                         f"({', '.join(functions)}): give each its own in to_static")
    for name, function in functions.items():
        found = Saving(function, input_spec, name)
        program, values = found.program(configs.get("output_spec"))
        write_model(prefix if name == "forward" else prefix.with_name(f"{prefix.name}.{name}"), program, values)


def load(path: str, **configs: Any) -> TranslatedLayer:
    """The model that `jit.save`, or `static.save_inference_model`, or Paddle 3 has written under `path`.

    configs: model_filename, params_filename: names of the files in the folder `path`.
    Raises: InputError for files that are not there, damaged, or not of one save.
    """
    _check_options("jit.load", configs, LOAD_OPTIONS)
    prefix = Path(path)
    if configs:
        program = prefix / configs.get("model_filename", "__model__.json")
        parameters = prefix / configs.get("params_filename", "__params__")
        return TranslatedLayer({"forward": read_model(prefix, program, parameters)}, {"forward": str(program)})
    files = {"forward": file_of(prefix, PROGRAM)} if file_of(prefix, PROGRAM).is_file() else {}
    start = f"{prefix.name}."
    for file in sorted(prefix.parent.glob(f"*{PROGRAM}")):
        method = file.name.removeprefix(start).removesuffix(PROGRAM)
        if file.name.startswith(start) and method.isidentifier() and file.name != prefix.name + PROGRAM:
            files[method] = file
    if not files:
        files = {"forward": file_of(prefix, PROGRAM)}           # which says that it is not there
    models = {name: read_model(prefix, file, file.with_name(file.name.removesuffix(PROGRAM) + PARAMETERS))
              for name, file in files.items()}
    return TranslatedLayer(models, {name: str(file) for name, file in files.items()})


def _check_options(what: str, given: dict[str, Any], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            raise ValueError(f"{what}: expected configs of the names {', '.join(known)}, got {name!r}")


def _functions(layer: Any, configs: dict[str, Any]) -> Iterator[tuple[str, Callable]]:
    """What is to be saved, by name: `forward` first."""
    if not isinstance(layer, Layer):
        if not callable(layer) or isinstance(layer, type):
            raise TypeError(f"jit.save: expected a Layer or a function, got {type(layer).__name__}")
        owner = getattr(layer.dygraph_function if isinstance(layer, StaticFunction) else layer, "__self__", None)
        if not isinstance(owner, Layer):
            warnings.warn("jit.save: a function is saved with the tensors that it reads from around it; load() gives "
                          "a TranslatedLayer that computes what it does", stacklevel=3)
        yield "forward", layer
        return
    if not configs.get("skip_forward"):
        hooked = configs.get("with_hook") or layer._pre_hooks or layer._post_hooks
        yield "forward", layer if hooked else layer.forward
    for name, member in inspect.getmembers(type(layer)):
        if isinstance(member, StaticFunction) and name != "forward":
            yield name, getattr(layer, name)


class Saving:
    """One function on its way into a file.

    layers: those whose mode is evaluation while it is traced.
    """

    def __init__(self, function: Any, input_spec: Sequence | None, name: str):
        self.name = name
        forward = function.forward if isinstance(function, Layer) else function
        static = forward if isinstance(forward, StaticFunction) else None
        self.plain = static.dygraph_function if static is not None else forward
        self.function = traceable(function if isinstance(function, Layer) else self.plain)
        owner = getattr(self.plain, "__self__", None)
        self.layer = owner if isinstance(owner, Layer) else None
        tree = input_spec if input_spec is not None else None if static is None else static.input_spec
        if tree is None and static is not None and static.last is not None:
            tree = _called_with(static)
        if tree is None:
            raise ValueError(f"jit.save: expected an input_spec for {getattr(self.plain, '__qualname__', name)}, which "
                             "was neither given one by to_static nor called; give one InputSpec for each tensor")
        self.tree = tuple(tree) if isinstance(tree, (list, tuple)) else (tree,)
        self.specs = list(named_specs(self.plain, self.tree))

    def program(self, output_spec: Sequence | None = None) -> tuple[Program, dict[str, np.ndarray]]:
        """The program in Paddle's form, and the values of its parameters."""
        modes = {} if self.layer is None else {x: x.training for x in self.layer.sublayers(include_self=True)}
        try:
            if self.layer is not None:
                self.layer.eval()
            traced, tensors = self.traced(output_spec)
        finally:
            for layer, mode in modes.items():
                layer.training = mode
        return exported(traced.program, traced.draws), {
            name: np.asarray(x.payload if isinstance(x, Tensor) else x) for name, x in tensors.items()}

    def traced(self, output_spec: Sequence | None) -> tuple[TracedProgram, dict[str, Any]]:
        """The program, and the tensors that are its parameters: those of the layer, and those that the function found
        around itself."""
        state: dict[str, Tensor] = {}
        if self.layer is not None:
            for _, x in (*self.layer.named_parameters(), *self.layer.named_buffers()):
                if not any(x is other for other in state.values()):
                    state[_fresh(x.name, state)] = x
        again = True
        while again:
            tracer = CapturingTrace()
            try:
                found = trace(self.on_tensors(output_spec), *self.specs, state=state, tracer=tracer)
            finally:
                written = tracer.release()
            # a tensor that the function writes is read as state, which only the trace tells: trace once more
            state |= {_fresh(x.name, state): x for x in written}
            again = bool(written)
        outside: dict[str, Any] = dict(found.captures) | tracer.handles
        tensors: dict[str, Any] = dict(found.state)
        mapping = {}
        for name, x in outside.items():
            mapping[name] = _fresh(x.name if isinstance(x, Tensor) else name, tensors)
            tensors[mapping[name]] = x
        _as_parameters(found.program, mapping)
        return found, tensors

    def on_tensors(self, output_spec: Sequence | None) -> Callable:
        """The function, of the tensors in its arguments; returns the tensors that it returns, each once."""
        _, structure = flatten(_examples(self.tree))

        def run(*tensors: Tensor) -> list[Tensor]:
            args = structure.rebuild(list(tensors))
            found: dict[Any, Tensor] = {}
            with Changes() as changes:
                for x in _tensors(self.function(*args)):
                    found.setdefault(id(x.payload), x)
            changes.take_back()                 # a file cannot do to Python's state what the function does
            outs = list(found.values())
            if not outs:
                raise ValueError(f"jit.save: expected {self.name} to return tensors, got none")
            return outs if output_spec is None else [outs[i] for i in _numbers(output_spec, len(outs))]
        return run


def _called_with(static: StaticFunction) -> tuple:
    """The arguments of the last call of a compiled function, in the order of its parameters."""
    args, kwargs = next(entry.keeps[0] for entries in static.cache.values() for entry in entries
                        if entry.compiled is static.last)
    bound = inspect.signature(static.dygraph_function).bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise ValueError(f"jit.save: expected {static.name} to have been called with positional arguments, got "
                         f"{', '.join(bound.kwargs)}; give an input_spec")
    return bound.args


def named_specs(function: Callable, tree: tuple) -> Iterator[InputSpec]:
    """The specs in the arguments, in order; one without a name is called as the argument of the function is.

    >>> list(named_specs(lambda x, pair: x, (InputSpec([None]), [InputSpec([2]), InputSpec([3], name="b")])))
    [InputSpec(shape=(-1,), dtype=paddle.float32, name=x, stop_gradient=True), \
InputSpec(shape=(2,), dtype=paddle.float32, name=pair_0, stop_gradient=True), \
InputSpec(shape=(3,), dtype=paddle.float32, name=b, stop_gradient=True)]
    """
    taken: set[str] = set()

    def walk(node: Any, name: str) -> Iterator[InputSpec]:
        if isinstance(node, (list, tuple, dict)):
            for key, inner in node.items() if isinstance(node, dict) else enumerate(node):
                yield from walk(inner, f"{name}_{key}")
        elif isinstance(node, (InputSpec, Tensor, np.ndarray)):
            given = node.name if isinstance(node, InputSpec) and node.name else name
            taken.add(found := _fresh(given, taken))
            spec = InputSpec(tuple(node.shape), node.dtype, found)
            spec.stop_gradient = getattr(node, "stop_gradient", True)
            yield spec
    for argument, name in zip(tree, _argument_names(function), strict=False):
        yield from walk(argument, name)


def _argument_names(function: Callable) -> Iterator[str]:
    """The names of the arguments of a function, without end where it takes any number."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):             # a builtin has none that Python knows
        parameters = []
    for p in parameters:
        if p.kind is p.VAR_POSITIONAL:
            yield from (f"{p.name}_{i}" for i in itertools.count())
        yield p.name
    yield from (f"input_{i}" for i in itertools.count())


def _examples(tree: Any) -> Any:
    """The arguments with a tensor for each spec."""
    if isinstance(tree, (list, tuple)):
        return type(tree)(map(_examples, tree))
    if isinstance(tree, dict):
        return {k: _examples(v) for k, v in tree.items()}
    return Tensor(np.empty(0)) if isinstance(tree, (InputSpec, np.ndarray)) else tree


def _tensors(tree: Any) -> Iterator[Tensor]:
    """The tensors in a result; dicts in the order of their keys, as Paddle has it."""
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, (list, tuple)):
        for x in tree:
            yield from _tensors(x)
    elif isinstance(tree, dict):
        for key in sorted(tree, key=str):
            yield from _tensors(tree[key])


def _numbers(spec: Sequence, count: int) -> list[int]:
    for i in spec:
        if not isinstance(i, int) or isinstance(i, bool) or not 0 <= i < count:
            raise ValueError(f"jit.save: expected output_spec to number some of the {count} results, got {i!r}")
    return list(spec)


def _fresh(name: str, taken: Any) -> str:
    """The name, or one like it that is not taken."""
    found, n = name, 0
    while found in taken:
        found, n = f"{name}_{n}", n + 1
    return found


def _as_parameters(program: Program, names: dict[str, str]) -> None:
    """Let the inputs that stand for outside tensors be parameters, under the names given."""
    for op in list(program.global_block()):
        if op.name() == "pd_op.data" and op.attributes["name"].value in names:
            as_parameter(op, names[op.attributes["name"].value])
