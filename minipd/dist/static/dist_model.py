"""Paddle's `dist.to_static`: a layer, with its loss and its optimizer, as programs of many ranks.

    model = dist.to_static(layer, loader, loss, optimizer, strategy)
    for image, label in loader():
        loss = model(image, label)

Every rank traces the same global program, gives each value its mesh and placements, and keeps its own part of it (see
`passes.py`).  The state stays where it is: a step reads and writes what the layer's parameters and the optimizer hold.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from minipd.amp.auto_cast import auto_cast
from minipd.dist.api.tensors import enable, shard_tensor
from minipd.dist.static.batch import Given, inputs_and_labels, of_spec, part_of
from minipd.dist.static.rank_program import RankProgram
from minipd.dist.static.step import MODES, GlobalStep, state_of, trace_step
from minipd.dist.static.strategy import Strategy, refuse_undone
from minipd.dist.value import DistValue
from minipd.executor import Executor
from minipd.framework.context import Kernels, using
from minipd.framework.meta import describe
from minipd.framework.rank import current
from minipd.framework.tensor import Parameter, Tensor
from minipd.ir.program import Program
from minipd.ops.creation import to_tensor
from minipd.passes.manager import PassManager
from minipd.passes.pipelines import add_passes
from minipd.static.program import Program as StaticProgram

__all__ = ["DistModel", "to_static"]


class Made:
    """The programs for one mode and one signature.

    serial: the global program as it was traced.  ranked: completed, and as this rank runs it.
    """

    def __init__(self, step: GlobalStep, given: list[Given], fused: list[str]):
        self.step = step
        self.serial = step.program.clone()
        split = {g.name: g.placed for g in given if g.placed is not None}
        self.ranked = RankProgram(step.program, step.trace, only_mesh(step.state.values(), given), step.state, split)
        if fused:
            manager = PassManager()
            add_passes(manager, fused)
            manager.run(self.ranked.local)
            self.ranked.executor = Executor(self.ranked.local)


class DistModel:
    """A layer that runs as distributed programs, one for each mode.  Made by `to_static`.

    Called in the mode "train" with inputs and labels, it makes one step and returns the loss; in "eval" it returns the
    loss; in "predict" it takes the inputs alone and returns the list of what the layer returns.  Results are numpy
    arrays with the *global* values, None on ranks that are not in their mesh.

    It is in the mode "train" first, if it has a loss and an optimizer; in "eval", if it has a loss; else in "predict".

    Args: see `to_static`.
    """

    def __init__(self, layer: Any, loader: Any = None, loss: Any = None, optimizer: Any = None,
                 strategy: Strategy | None = None, metrics: Any = None, input_spec: Any = None):
        if not callable(layer):
            raise TypeError(f"to_static: expected a layer, got {layer!r}")
        if loss is not None and not callable(loss):
            raise TypeError(f"to_static: expected loss to be a layer or a function, got {loss!r}")
        if strategy is not None and not isinstance(strategy, Strategy):
            raise TypeError(f"to_static: expected a dist.Strategy, got {strategy!r}")
        if metrics:
            raise NotImplementedError("to_static: expected no metrics, for a program returns the loss alone; compute "
                                      "them of what the model predicts")
        self.strategy = Strategy() if strategy is None else strategy
        refuse_undone(self.strategy)
        self.layer, self.loader, self.loss, self.optimizer = layer, loader, loss, optimizer
        self.input_spec = input_spec
        self._made: dict[tuple, Made] = {}
        self._last: dict[str, Made] = {}
        self._mode = "predict" if loss is None else "eval" if optimizer is None else "train"
        enable()
        self._enter()

    # ------------------------------------------------------------------------------------------------------- modes
    def train(self) -> None:
        """The next calls train.

        Raises: RuntimeError without a loss or an optimizer.
        """
        if self.loss is None or self.optimizer is None:
            raise RuntimeError("DistModel.train: expected a loss and an optimizer, got "
                               f"loss={self.loss!r}, optimizer={self.optimizer!r}; give them to to_static")
        self._mode = "train"
        self._enter()

    def eval(self) -> None:
        """The next calls compute the loss, and change nothing.

        Raises: RuntimeError without a loss.
        """
        if self.loss is None:
            raise RuntimeError("DistModel.eval: expected a loss, got none; give one to to_static, or call predict()")
        self._mode = "eval"
        self._enter()

    def predict(self) -> None:
        """The next calls return what the layer returns."""
        self._mode = "predict"
        self._enter()

    def _enter(self) -> None:
        """The layers inside know of the mode, too: dropout, batch normalisation."""
        for owner in (self.layer, self.loss):
            if hasattr(owner, "train") and hasattr(owner, "eval"):
                (owner.train if self._mode == "train" else owner.eval)()

    def _checked(self, mode: str | None) -> str:
        mode = self._mode if mode is None else mode
        if mode not in MODES:
            raise ValueError(f"DistModel: expected the mode 'train', 'eval' or 'predict', got {mode!r}")
        return mode

    # ----------------------------------------------------------------------------------------------------- calling
    def __call__(self, *args: Any) -> Any:
        """One step with a batch: tensors, or lists of them, inputs first.

        A tensor that is distributed, as `shard_dataloader` gives them, goes in as it is; of another one every rank
        passes the whole.
        Raises: TypeError for what is no tensor.
        """
        made, fed = self._program(self._mode, *inputs_and_labels(args, self._mode, self.layer, self.loss))
        out = made.ranked({name: t.payload for name, t in zip(made.step.inputs, fed, strict=True)})
        found = [_seen(out.get(name)) for name in made.step.outputs]
        return found if self._mode == "predict" else found[0]

    def _program(self, mode: str, inputs: list[Tensor], labels: list[Tensor]) -> tuple[Made, list[Tensor]]:
        """The program for a batch, and what it is fed, in its order."""
        passes, mean = self._passes() if mode == "train" else (1, True)
        parts = [([part_of(t, m, passes) for t in inputs], [part_of(t, m, passes) for t in labels])
                 for m in range(passes)]
        ends = [""] if passes == 1 else [f"_{m}" for m in range(passes)]
        named = [[Given(f"{kind}{i}{end}", t) for end, part in zip(ends, parts, strict=True)
                  for i, t in enumerate(part[which])] for which, kind in enumerate(("input", "label"))]
        key = (mode, passes, mean, *(tuple(g.key for g in part) for part in named),
               tuple(_placement(t) for t in state_of(self.layer, self.loss).values()))
        if key not in self._made:
            step = trace_step(mode, self.layer, self.loss, self.optimizer, named[0], named[1], self._casting, passes,
                              mean)
            self._made[key] = Made(step, [*named[0], *named[1]], self._fusions())
        self._last[mode] = self._made[key]
        return self._made[key], [t for part in parts for group in part for t in group]

    def _passes(self) -> tuple[int, bool]:
        """In how many parts a training step computes its batch, and whether it takes the mean of their gradients."""
        merge = self.strategy.gradient_merge
        if merge.enable:
            return merge.k_steps, merge.avg
        return getattr(self.optimizer, "gradient_accumulation_steps", 1), True

    def _casting(self) -> AbstractContextManager:
        """The context of the forward computation."""
        amp = self.strategy.amp
        if not amp.enable:
            return nullcontext()
        return auto_cast(True, custom_white_list=amp.custom_white_list, custom_black_list=amp.custom_black_list,
                         level="O1", dtype=amp.dtype)

    def _fusions(self) -> list[str]:
        fused = self.strategy.fused_passes
        if not fused.enable:
            return []
        named = {"gemm_epilogue": "fused_gemm_epilogue_pass", "dropout_add": "fused_dropout_add_pass"}
        return [*fused.fused_passes_list, *(name for option, name in named.items() if getattr(fused, option))]

    # ---------------------------------------------------------------------------------------------------- programs
    def _of_mode(self, mode: str | None) -> Made:
        """The programs of a mode: those of its last call, else those that a batch of the loader needs."""
        mode = self._checked(mode)
        if mode not in self._last:
            asked, self._mode = self._mode, mode
            try:
                self._enter()
                self._program(mode, *self._example(mode))
            finally:
                self._mode = asked
                self._enter()
        return self._last[mode]

    def _example(self, mode: str) -> tuple[list[Tensor], list[Tensor]]:
        """A batch, of which only shapes and placements count."""
        if self.input_spec is not None:
            groups = [group if isinstance(group, (list, tuple)) else [group] for group in self.input_spec]
            inputs, labels = ([of_spec(s) for s in group] for group in groups)
            return inputs, [] if mode == "predict" else labels
        if self.loader is None:
            raise RuntimeError(f"DistModel: expected a loader, an input_spec or a call before the program of the mode "
                               f"{mode!r} is asked for, got none; give one to to_static")
        rng = current().rng
        before = rng.get_state()
        batch = next(iter(self.loader))
        rng.set_state(before)
        parts = list(batch.values() if isinstance(batch, dict) else batch)
        parts = parts[:-1] if mode == "predict" and len(parts) > 1 else parts
        return inputs_and_labels(parts, mode, self.layer, self.loss)

    def dist_main_program(self, mode: str | None = None) -> Program:
        """The program of this rank: local shapes, and what it sends and receives.

        mode: "train", "eval" or "predict"; None: the current one.
        """
        return self._of_mode(mode).ranked.local

    def serial_main_program(self, mode: str | None = None) -> Program:
        """The program as one rank would run it."""
        return self._of_mode(mode).serial

    def global_main_program(self, mode: str | None = None) -> Program:
        """The same with meshes and placements in its types: what all ranks' programs are made from."""
        return self._of_mode(mode).ranked.whole

    def dist_startup_program(self, mode: str | None = None) -> Program:
        """An empty program: parameters have their values already, where the layer was made."""
        self._checked(mode)
        return StaticProgram()

    serial_startup_program = dist_startup_program

    # ------------------------------------------------------------------------------------------------------- state
    def state_dict(self, mode: str = "all", split_fusion: bool = True) -> dict[str, Tensor]:
        """The state, by name: the tensors themselves.

        mode: "param": parameters and buffers, by their names in the layer; "opt": what the optimizer keeps; "all".
        split_fusion: accepted as in Paddle; nothing is fused into other tensors here.
        """
        if mode not in ("all", "param", "opt"):
            raise ValueError(f'DistModel.state_dict: expected mode "all", "param" or "opt", got {mode!r}')
        found: dict[str, Tensor] = {}
        if mode != "opt":
            for owner in (self.layer, self.loss):
                if hasattr(owner, "state_dict"):
                    found |= owner.state_dict()
        if mode != "param" and self.optimizer is not None:
            scalars = {t.name for t in self.optimizer.scalars()}
            kept = state_of(None, None, self.optimizer)
            found |= {name: t for name, t in kept.items() if not isinstance(t, Parameter) and name not in scalars}
            found["step"] = self.optimizer.scalars()[1]
        return found

    def set_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Give the state new values, by the names of `state_dict`; a distributed tensor keeps its mesh and placements.

        Raises: ValueError for a name that there is not, or a value of another shape; nothing is set then.
        """
        own = self.state_dict()
        for name, value in state_dict.items():
            if name not in own:
                raise ValueError(f"DistModel.set_state_dict: expected names of its state, {', '.join(own)}, got "
                                 f"{name!r}")
            if tuple(value.shape) != tuple(own[name].shape):
                raise ValueError(f"DistModel.set_state_dict: expected {name} as {describe(own[name].payload)}, got "
                                 f"{describe(getattr(value, 'payload', value))}")
        with using(grad=False):
            for name, value in state_dict.items():
                _set(own[name], value if isinstance(value, Tensor) else to_tensor(value))


def to_static(layer: Any, loader: Any = None, loss: Any = None, optimizer: Any = None,
              strategy: Strategy | None = None, input_spec: Any = None) -> DistModel:
    """A layer as distributed programs.

    Args:
        layer: its parameters may be distributed (`shard_tensor`, `shard_layer`), and its forward may `reshard`.
        loader: gives batches; only `dist_main_program` before the first call needs it.
        loss: a layer or function, called with what the layer returns and the labels.
        optimizer: of the layer's parameters, also from `shard_optimizer`.
        strategy: what else is to be done.
        input_spec: ([specs of inputs], [specs of labels]) instead of a loader.

    >>> from minipd.dist.api import shard_tensor
    >>> from minipd.dist.placements import Replicate, Shard
    >>> from minipd.dist.simulate import simulate
    >>> from minipd.nn import Linear, MSELoss
    >>> from minipd.optimizer import SGD
    >>> def train(mesh):
    ...     layer = Linear(2, 1)
    ...     model = to_static(layer, None, MSELoss(), SGD(0.01, parameters=layer.parameters()))
    ...     x = shard_tensor([[1.0, 2.0], [3.0, 4.0]], mesh, [Shard(0)])
    ...     y = shard_tensor([[1.0], [2.0]], mesh, [Shard(0)])
    ...     losses = [float(model(x, y)) for _ in range(3)]
    ...     names = [op.name() for op in model.dist_main_program().walk()]
    ...     return losses[0] > losses[2], names.count("pd_op.all_reduce")
    >>> simulate("dp=2", train)
    [(True, 3), (True, 3)]
    """
    return DistModel(layer, loader, loss, optimizer, strategy, input_spec=input_spec)


def _seen(value: np.ndarray | DistValue | None) -> np.ndarray | None:
    """The global value of an output; None on a rank that has no part of it."""
    return value.materialize("DistModel") if isinstance(value, DistValue) else value


def _placement(t: Tensor) -> tuple | None:
    return (t.payload.mesh, t.payload.placements) if isinstance(t.payload, DistValue) else None


def only_mesh(state: Iterable[Tensor], given: list[Given]) -> Any:
    """The one mesh of all distributed tensors of a program; None if there are several, or none."""
    found = {t.payload.mesh for t in state if isinstance(t.payload, DistValue)}
    found |= {g.placed[0] for g in given if g.placed is not None}
    return found.pop() if len(found) == 1 else None


def _set(own: Tensor, value: Tensor) -> None:
    """Give a tensor of the state new values, in its own placements."""
    p, new = own.payload, value.payload
    if not isinstance(p, DistValue):
        own.set_value(value)
        return
    rank = current().rank
    if not isinstance(new, DistValue):
        new = shard_tensor(value, p.mesh, p.placements).payload
    if p.mesh.contains(rank):
        p.local = np.array(new.moved(p.placements, Kernels().run, rank).local, p.dtype)
