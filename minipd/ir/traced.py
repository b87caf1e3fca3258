"""`trace(fn, *specs)`: the program of a function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.context import using
from minipd.framework.dim import DimExpr, fresh_symbols
from minipd.framework.meta import Meta, describe
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.ir.program import Program
from minipd.ir.structure import Structure, flatten
from minipd.ir.trace import Trace
from minipd.ir.value import Value

__all__ = ["TracedProgram", "trace"]

#: what a trace may change on a handle of program state, and puts back afterwards
HANDLE = ("payload", "node", "index", "stop_gradient", "storage", "seen", "view_of", "views", "grad")


@dataclass
class TracedProgram:
    """A program and how to run it.

    inputs: names of the inputs that the caller feeds, in order.  outputs: names of the results, in the order in which
    they stand in `structure`.  captures: name -> the outside payload bound to that input.  draws: name -> layer path of
    the random draws, of which every run feeds new keys.  state: name -> the tensor that holds this program state.
    """

    program: Program
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    structure: Structure = field(default_factory=lambda: Structure(None))
    captures: dict[str, Any] = field(default_factory=dict)
    draws: dict[str, str] = field(default_factory=dict)
    state: dict[str, Tensor] = field(default_factory=dict)

    @property
    def input_values(self) -> list[Value]:
        """The values of the inputs that the caller feeds."""
        found = {op.attributes["name"].value: op.result(0) for op in self.program.global_block()
                 if op.name() == "pd_op.data"}
        return [found[name] for name in self.inputs]

    @property
    def output_values(self) -> list[Value]:
        """The values that are the program's results."""
        return [self.program.get_output_value_by_name(name) for name in self.outputs]


def trace(fn: Callable, *specs: Any, state: Mapping[str, Tensor] | None = None,
          tracer: Trace | None = None, sizes: dict[str, int] | None = None) -> TracedProgram:
    """Run `fn` once on tensors without values, and return the program of what it did.

    specs: for each argument, anything with a shape and a dtype (`InputSpec`, a Tensor, a Meta).  A dimension that is
    None or -1 becomes a new symbol S0, S1, ...; a `name` and `stop_gradient`, where a spec has them, go to the input.
    state: the tensors that are program state, by name; they are read from, and written to, the state of the run, and
    hold what they held before when the trace is over.  tracer: the interpreter, on an empty program, if it is to be a
    special one.  sizes: of the symbols among the dimensions, in the call for which the trace is made: they decide what
    `fn` asks about dimensions, and the answers become assumptions of the program.

    Which branches Python takes, and everything else that is no tensor operation, is decided now, once.

    >>> from minipd.ops.creation import ones
    >>> scale = ones([3])
    >>> traced = trace(lambda x: (x * scale).sum(), Meta((None, 3), ones([1]).payload.dtype))
    >>> traced.inputs, traced.outputs, list(traced.captures)
    (('input_0',), ('output_0',), ['captured_0'])
    >>> print(traced.program)
    {
        (%0) = "pd_op.data" () {dtype:float32,name:"input_0",place:Place(undefined:0),shape:[-1,3],stop_gradient:[true]} \
: () -> tensor<-1x3xf32>
        (%1) = "pd_op.data" () {dtype:float32,name:"captured_0",place:Place(undefined:0),shape:[3],stop_gradient:[true]} \
: () -> tensor<3xf32>
        (%2) = "pd_op.multiply" (%0, %1) {stop_gradient:[true]} : (tensor<-1x3xf32>, tensor<3xf32>) -> tensor<-1x3xf32>
        (%3) = "pd_op.full_int_array" () {dtype:int64,place:Place(cpu),stop_gradient:[true],value:[]} : () -> tensor<0xi64>
        (%4) = "pd_op.sum" (%2, %3) {dtype:Undefined,keepdim:false,stop_gradient:[true]} : (tensor<-1x3xf32>, tensor<0xi64>) -> tensor<f32>
        () = "builtin.shadow_output" (%4) {output_name:"output_0"} : (tensor<f32>) -> 
    }
    <BLANKLINE>
    """  # noqa: E501, W291
    tracer = Trace(Program()) if tracer is None else tracer
    program = tracer.program
    rng = current().rng
    drawn = rng.get_state()
    held: list[tuple[Tensor, dict]] = []
    try:
        with using(ground=tracer, middle=None), program.constraints.collect(True, sizes):
            names = tuple(_name_of(spec) or f"input_{i}" for i, spec in enumerate(specs))
            fresh = fresh_symbols(spec.shape for spec in specs)
            arguments = [_argument(tracer, *pair, fresh) for pair in zip(names, specs, strict=True)]
            reads = _bind_state(tracer, state or {}, held)
            leaves, structure = flatten(fn(*arguments))
            outputs = tuple(f"output_{i}" for i in range(len(leaves)))
            for name, leaf in zip(outputs, leaves, strict=True):
                tracer.build.output(name, tracer.value(leaf.payload))
            _write_state(tracer, reads)
    finally:
        for tensor, fields in held:
            for name in HANDLE:
                if name in fields:
                    setattr(tensor, name, fields[name])
                else:
                    tensor.__dict__.pop(name, None)     # back to the default of the class
        rng.set_state(drawn)
    used = {name: tensor for name, (tensor, value) in reads.items()}
    return TracedProgram(program, names, outputs, structure, tracer.captures, tracer.draws, used)


def _name_of(spec: Any) -> str | None:
    if not hasattr(spec, "shape") or not hasattr(spec, "dtype"):
        raise TypeError(f"trace: expected something with a shape and a dtype for each argument, got {spec!r}; give an "
                        "InputSpec, or bind values that are no tensors with functools.partial")
    return None if isinstance(spec, Tensor) else getattr(spec, "name", None)


def _argument(tracer: Trace, name: str, spec: Any, fresh: Iterator[DimExpr]) -> Tensor:
    """The traced tensor that stands for an argument."""
    shape = tuple(next(fresh) if d is None or d == -1 else d for d in spec.shape)
    stop = getattr(spec, "stop_gradient", True)
    x = Tensor(tracer.input(name, Meta(shape, dtypes.to_np(spec.dtype)), stop))
    x.stop_gradient = stop
    return x


def _bind_state(tracer: Trace, state: Mapping[str, Tensor], held: list) -> dict[str, tuple[Tensor, Value]]:
    """Let every tensor of program state hold its value in the program; what they held before goes to `held`."""
    reads: dict[str, tuple[Tensor, Value]] = {}
    seen: set[int] = set()
    for name, tensor in state.items():
        if id(tensor) in seen:              # one tensor under two names (tied weights) is one state
            continue
        seen.add(id(tensor))
        held.append((tensor, {k: v for k, v in vars(tensor).items() if k in HANDLE}))
        value = tracer.parameter(name, tensor.payload, trainable=not tensor.stop_gradient)
        tensor.payload, tensor.node, tensor.index = value, None, 0
        tensor.storage, tensor.view_of, tensor.views = None, None, None
        reads[name] = tensor, value
    return reads


def _write_state(tracer: Trace, reads: dict[str, tuple[Tensor, Value]]) -> None:
    """Write back what has been rebound; forget what has not even been read."""
    for name, (tensor, value) in list(reads.items()):
        changed = tensor.payload is not value
        if changed:
            new = tracer.value(tensor.payload)
            if (new.shape, new.dtype) != (value.shape, value.dtype):
                raise ValueError(f"state {name}: expected to be written as it was read, {describe(value)}, got "
                                 f"{describe(new)}")
            tracer.build.set_parameter(name, new)
        if value.use_empty():
            op = value.get_defining_op()
            assert op is not None
            tracer.forget(op)
            if not changed:
                del reads[name]
