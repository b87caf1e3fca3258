"""Model: a network that trains, evaluates and predicts itself (Paddle's `paddle.Model`)."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from minipd.framework.tensor import Tensor
from minipd.hapi.batches import Batches, as_list, check_prepared, number_of_inputs
from minipd.hapi.callbacks import EarlyStopping, LRScheduler, ModelCheckpoint, ProgBarLogger
from minipd.hapi.callbacks.base import Callbacks, checked
from minipd.hapi.precision import mixed_precision
from minipd.hapi.summary import summary
from minipd.io import DataLoader, Dataset, IterableDataset
from minipd.io.serialization import load, save
from minipd.nn.layer import Layer
from minipd.nn.state import load_state

__all__ = ["Model"]


class Model(Batches):
    """A network with what trains it.

    Args:
        network: the layer that computes.
        inputs, labels: an InputSpec, or a list of them, that describe a batch's fields.  Without inputs, the network's
            `forward` says by its parameters how many fields of a batch are inputs; the others are labels.

    >>> import numpy as np
    >>> from minipd.io import TensorDataset
    >>> from minipd.nn import Linear, MSELoss
    >>> from minipd.ops.creation import arange
    >>> from minipd.optimizer import SGD
    >>> x = arange(8.0).reshape([8, 1]) / 8
    >>> model = Model(Linear(1, 1))
    >>> model.prepare(SGD(0.5, model.parameters()), MSELoss())
    >>> model.fit(TensorDataset([x, x * 2 + 1]), epochs=50, batch_size=8, verbose=0)
    >>> bool(model.evaluate(TensorDataset([x, x * 2 + 1]), batch_size=8, verbose=0)["loss"][0] < 0.01)
    True
    """

    def __init__(self, network: Layer, inputs: Any = None, labels: Any = None):
        if not isinstance(network, Layer):
            raise TypeError(f"Model: expected a Layer as network, got {type(network).__name__}")
        self.network, self._inputs, self._labels = network, as_list(inputs), as_list(labels)
        self._metrics = []
        self.stop_training = False

    def prepare(self, optimizer: Any = None, loss: Any = None, metrics: Any = None, amp_configs: Any = None) -> None:
        """What to train with.

        loss: called with the outputs and the labels, gives a tensor, or a list of them, which are added.
        metrics: one from `paddle.metric`, or a list.
        amp_configs: "O1" or "O2", for mixed precision, or a dict of a "level", options of `amp.auto_cast`
            (custom_white_list, custom_black_list, dtype) and of `amp.GradScaler` (init_loss_scaling, ...).
        Raises: TypeError for a loss that cannot be called or a metric that is none; ValueError for other amp_configs.
        """
        check_prepared(loss, as_list(metrics))
        self._casting, self._scaler = mixed_precision(amp_configs, self.network, optimizer)
        self._optimizer, self._loss, self._metrics = optimizer, loss, as_list(metrics)

    def parameters(self, *args: Any, **kwargs: Any) -> list[Tensor]:
        """The network's parameters."""
        return self.network.parameters(*args, **kwargs)

    def summary(self, input_size: Any = None, dtype: Any = None) -> dict:
        """`paddle.summary` of the network, for the inputs that the model was made with, unless given."""
        if input_size is None and not self._inputs:
            raise ValueError("Model.summary: expected an input_size, or a model that was made with inputs")
        return summary(self.network, self._inputs if input_size is None else input_size, dtype)

    # ------------------------------------------------------------------------------------------------ saving
    def save(self, path: str, training: bool = True) -> None:
        """Write the parameters to `path.pdparams`, and what the optimizer keeps to `path.pdopt`.

        Raises: ValueError for training=False, which in Paddle writes a program for inference.
        """
        if not training:
            raise ValueError("Model.save: expected training=True, got False: programs for inference cannot be saved")
        save(self.network.state_dict(), f"{path}.pdparams")
        if self._optimizer is not None:
            save(self._optimizer.state_dict(), f"{path}.pdopt")

    def load(self, path: str, skip_mismatch: bool = False, reset_optimizer: bool = False) -> None:
        """Read what `save` wrote.

        skip_mismatch: leave parameters alone, with a warning, that the file lacks or has in another shape or dtype.
        reset_optimizer: let the optimizer begin anew.
        Raises: InputError if there is no file; ValueError for parameters that do not fit, before any is changed.
        """
        own, given = self.network.state_dict(), load(f"{path}.pdparams")
        if skip_mismatch:
            fit = {k: v for k, v in given.items() if k in own and own[k].shape == v.shape and own[k].dtype == v.dtype}
            for name in sorted(own.keys() - fit.keys()):
                why = "of another shape or dtype" if name in given else "missing"
                warnings.warn(f"Model.load: skipped {name}, {why} in {path}.pdparams", stacklevel=2)
            load_state(type(self.network).__name__, own, fit, strict=False)
        else:
            load_state(type(self.network).__name__, own, given, hint="; skip_mismatch=True leaves them as they are")
        if self._optimizer is not None and not reset_optimizer and os.path.exists(f"{path}.pdopt"):
            self._optimizer.set_state_dict(load(f"{path}.pdopt"))

    # ---------------------------------------------------------------------------------------------- whole data
    def fit(self, train_data: Any = None, eval_data: Any = None, batch_size: int | list[int] = 1, epochs: int = 1,
            eval_freq: int = 1, log_freq: int = 10, save_dir: str | None = None, save_freq: int = 1, verbose: int = 2,
            drop_last: bool = False, shuffle: bool = True, num_workers: int = 0, callbacks: Any = None,
            accumulate_grad_batches: int = 1, num_iters: int | None = None) -> None:
        """Train on data, and evaluate in between.

        Args:
            train_data, eval_data: a Dataset, or an iterable of batches such as a DataLoader.
            batch_size, drop_last, shuffle, num_workers: how a Dataset is loaded; of a list of two sizes, the second is
                for evaluation.
            eval_freq, save_freq: after how many epochs to evaluate, and to save to `save_dir`.
            log_freq: after how many steps to print.  verbose: 0 nothing, 1 a bar, 2 a line each time.
            callbacks: Callbacks; one that prints, one that saves, and one that steps the learning rate's schedule are
                added, unless there is one of that kind.
            accumulate_grad_batches: how many batches make one step of the optimizer; their gradients add up.
            num_iters: stop after so many batches.

        Raises: RuntimeError before `prepare`.
        """
        if train_data is None:
            raise ValueError("Model.fit: expected train_data, a Dataset or a DataLoader, got None")
        train_size, eval_size = batch_size if isinstance(batch_size, (list, tuple)) else (batch_size, batch_size)
        batches = _loader(train_data, train_size, shuffle, drop_last, num_workers)
        held_out = None if eval_data is None else _loader(eval_data, eval_size, False, False, num_workers)
        steps = _length(batches)
        if num_iters is not None and steps is not None:
            epochs, steps = (num_iters - 1) // steps + 1, min(num_iters, steps)
        tell = self._callbacks(callbacks, log_freq, verbose, save_freq, save_dir, epochs=epochs, steps=steps,
                               batch_size=train_size)
        self.stop_training, logs, left = False, {}, num_iters
        tell("train_begin", None)
        for epoch in range(epochs):
            if self.stop_training:
                break
            tell("epoch_begin", epoch, None)
            logs = self._epoch(batches, tell, "train", left, accumulate_grad_batches)
            tell("epoch_end", epoch, logs)
            if left is not None:
                left -= logs["step"] + 1
            if held_out is not None and epoch % eval_freq == 0:
                self._evaluate(held_out, tell)
        tell("train_end", logs)

    def evaluate(self, eval_data: Any, batch_size: int = 1, log_freq: int = 10, verbose: int = 2, num_workers: int = 0,
                 callbacks: Any = None, num_iters: int | None = None) -> dict[str, Any]:
        """Losses (of the last batch, as in Paddle) and metrics (of all) on data; see `fit` for the arguments.

        Returns: "loss" -> a list, the names of the metrics -> numbers.
        """
        batches = _loader(eval_data, batch_size, False, False, num_workers)
        tell = self._callbacks(callbacks, log_freq, verbose, batch_size=batch_size, steps=_length(batches))
        logs = self._evaluate(batches, tell, num_iters)
        return {name: logs[name] for name in self._names() if name in logs}

    def predict(self, test_data: Any, batch_size: int = 1, num_workers: int = 0, stack_outputs: bool = False,
                verbose: int = 1, callbacks: Any = None) -> list:
        """What the network makes of data: for each output a tuple of arrays, one for each batch.

        stack_outputs: for each output one array instead, the batches one below the other.
        """
        batches = _loader(test_data, batch_size, False, False, num_workers)
        tell = self._callbacks(callbacks, 1, verbose, batch_size=batch_size, steps=_length(batches))
        tell("predict_begin", {"steps": _length(batches)})
        made: list = []
        logs: dict[str, Any] = {}
        for step, inputs, _, size in self._fields(batches):
            tell("predict_batch_begin", step, logs)
            made.append(self.predict_batch(inputs))
            logs = {"step": step, "batch_size": size}
            tell("predict_batch_end", step, logs)
        outputs = list(zip(*made, strict=True))
        tell("predict_end", logs)
        return [np.concatenate(parts) for parts in outputs] if stack_outputs else outputs

    def _evaluate(self, batches: Any, tell: Callbacks, num_iters: int | None = None) -> dict[str, Any]:
        steps = _length(batches)
        if num_iters is not None:
            steps = num_iters if steps is None else min(steps, num_iters)
        tell("eval_begin", {"steps": steps, "metrics": self._names()})
        logs = self._epoch(batches, tell, "eval", num_iters)
        tell("eval_end", logs)
        return logs

    def _epoch(self, batches: Any, tell: Callbacks, mode: str, limit: int | None, together: int = 1) -> dict[str, Any]:
        """All batches once, or `limit` of them.  Returns the logs after the last one."""
        for metric in self._metrics:
            metric.reset()
        steps = _length(batches)
        logs: dict[str, Any] = {}
        for step, inputs, labels, size in self._fields(batches):
            if step == limit:
                break
            tell(f"{mode}_batch_begin", step, logs)
            if mode == "train":
                last = step + 1 in (steps, limit)
                got = self.train_batch(inputs, labels, update=last or (step + 1) % together == 0)
            else:
                got = self.eval_batch(inputs, labels)
            losses = [] if self._loss is None else got[0] if self._metrics else got
            logs = {"loss": [float(loss) for loss in losses]} if losses else {}
            for metric in self._metrics:
                logs |= zip(as_list(metric.name()), as_list(metric.accumulate()), strict=False)
            logs |= {"step": step, "batch_size": size}
            tell(f"{mode}_batch_end", step, logs)
        return logs

    def _fields(self, batches: Any) -> Iterator[tuple[int, list, list, int]]:
        """(step, inputs, labels, number of samples) of each batch."""
        n = number_of_inputs(self.network, self._inputs)
        for step, batch in enumerate(batches):
            fields = as_list(batch)
            first = next(iter(fields[0].values())) if isinstance(fields[0], dict) else fields[0]
            yield step, fields[:n], fields[n:], len(first)

    def _names(self) -> list[str]:
        """What an evaluation says, in order."""
        return ["loss"] * (self._loss is not None) + [name for m in self._metrics for name in as_list(m.name())]

    def _callbacks(self, given: Any, log_freq: int, verbose: int, save_freq: int = 1, save_dir: str | None = None,
                   **params: Any) -> Callbacks:
        all_ = checked(given)
        for kind, made in ((ProgBarLogger, ProgBarLogger(log_freq, verbose)),
                           (ModelCheckpoint, ModelCheckpoint(save_freq, save_dir)), (LRScheduler, LRScheduler())):
            if not any(isinstance(callback, kind) for callback in all_):
                all_ = [made, *all_] if kind is ProgBarLogger else [*all_, made]
        for callback in all_:
            if isinstance(callback, EarlyStopping):
                callback.save_dir = save_dir
        return Callbacks(all_, self, {"verbose": verbose, "metrics": self._names(), **params})


def _loader(data: Any, batch_size: int, shuffle: bool, drop_last: bool, num_workers: int) -> Any:
    """Batches of a Dataset; any other iterable is batches already."""
    if isinstance(data, (Dataset, IterableDataset)):
        shuffle = shuffle and not isinstance(data, IterableDataset)     # which has an order of its own
        return DataLoader(data, batch_size=batch_size, shuffle=shuffle, drop_last=drop_last, num_workers=num_workers)
    return data


def _length(batches: Any) -> int | None:
    """How many batches there are, None if they do not say."""
    try:
        return len(batches)
    except TypeError:
        return None
