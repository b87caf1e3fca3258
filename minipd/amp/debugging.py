"""What helps to find where low precision goes wrong (Paddle's `paddle.amp.debugging`)."""

from __future__ import annotations

import contextlib
import enum
import functools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.context import using
from minipd.framework.nan_inf import check_finite
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor

__all__ = ["DebugMode", "TensorCheckerConfig", "check_layer_numerics", "check_numerics", "collect_operator_stats",
           "disable_operator_stats_collection", "disable_tensor_checker", "enable_operator_stats_collection",
           "enable_tensor_checker"]


class DebugMode(enum.Enum):
    """What to do about a tensor with NaN or infinity in it, and about others."""

    CHECK_NAN_INF_AND_ABORT = 0     # raise
    CHECK_NAN_INF = 1               # print, and go on
    CHECK_ALL_FOR_OVERFLOW = 2      # print also where float16 could not hold a value
    CHECK_ALL = 3                   # print everything


# --------------------------------------------------------------------------------------------------- one tensor
def check_numerics(tensor: Tensor, op_type: str, var_name: str,
                   debug_mode: DebugMode = DebugMode.CHECK_NAN_INF_AND_ABORT) -> tuple[Tensor, Tensor]:
    """Look at a tensor's values.

    Returns: how many are NaN, infinite, zero, int64 [3]; the largest, the smallest and the mean, float32 [3].
    Raises: FloatingPointError where some are NaN or infinite, in the mode CHECK_NAN_INF_AND_ABORT.

    >>> from minipd.ops.creation import to_tensor
    >>> stats, values = check_numerics(to_tensor([1.0, 0.0, 2.0]), "matmul", "x")
    >>> stats.tolist(), values.tolist()
    ([0, 0, 1], [2.0, 0.0, 1.0])
    """
    x = tensor.values("check_numerics").astype(np.float64)
    nans, infinities = int(np.isnan(x).sum()), int(np.isinf(x).sum())
    with np.errstate(invalid="ignore"):
        values = [x.max(), x.min(), x.mean()] if x.size else [np.nan] * 3
    text = (f"[{op_type}] {var_name}: numel={x.size}, num_nan={nans}, num_inf={infinities}, num_zero={(x == 0).sum()}, "
            f"max={values[0]:e}, min={values[1]:e}, mean={values[2]:e}")
    if (nans or infinities) and debug_mode is DebugMode.CHECK_NAN_INF_AND_ABORT:
        raise FloatingPointError(f"check_numerics: expected finite values, got {text}")
    large = debug_mode is DebugMode.CHECK_ALL_FOR_OVERFLOW and (np.abs(x) > 65504).any()
    if nans or infinities or large or debug_mode is DebugMode.CHECK_ALL:
        print(text)
    return (Tensor(np.array([nans, infinities, int((x == 0).sum())])), Tensor(np.array(values, np.float32)))


def check_layer_numerics(func: Callable) -> Callable:
    """Decorator of a layer's `forward`: its tensors, those that go in and those that come out, must be finite."""
    @functools.wraps(func)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        name = type(self).__name__
        for i, x in enumerate(args):
            _check_each(x, name, f"input {i}")
        out = func(self, *args, **kwargs)
        _check_each(out, name, "output")
        return out
    return forward


def _check_each(x: Any, layer: str, name: str) -> None:
    if isinstance(x, Tensor) and x.payload.dtype in dtypes.FLOATS:
        check_numerics(x, layer, name)
    elif isinstance(x, (list, tuple)):
        for i, part in enumerate(x):
            _check_each(part, layer, f"{name} {i}")


# ------------------------------------------------------------------------------------------------ every operator
class TensorCheckerConfig:
    """Which operators `enable_tensor_checker` looks at.

    debug_mode: CHECK_NAN_INF_AND_ABORT raises, every other mode warns.  checked_op_list, skipped_op_list: names of
    operators.  debug_step: the first step to look at, and the first one not to.  output_dir,
    stack_height_limit: accepted, without effect.
    """

    def __init__(self, enable: bool, debug_mode: DebugMode = DebugMode.CHECK_NAN_INF_AND_ABORT,
                 output_dir: str | None = None, checked_op_list: Sequence[str] | None = None,
                 skipped_op_list: Sequence[str] | None = None, debug_step: Sequence[int] | None = None,
                 stack_height_limit: int = 1):
        self.enable, self.debug_mode = enable, debug_mode
        self.checked = None if checked_op_list is None else frozenset(checked_op_list)
        self.skipped = frozenset(skipped_op_list or ())
        self.steps = range(debug_step[0], debug_step[-1]) if debug_step else None
        self.step_id = 0

    def update_and_check_step_id(self, step_id: int) -> bool:
        """Go to a step; returns whether it is one to look at."""
        self.step_id = step_id
        return self.looks()

    def looks(self) -> bool:
        """Whether to look at operators now."""
        return self.enable and (self.steps is None or self.step_id in self.steps)


class _Layer:
    """A layer of the context's events: calls `see(row, results, operands)` after each operator.  outer: another one,
    which goes on."""

    def __init__(self, outer: Any):
        self.outer = outer

    def over(self, run: Callable) -> Callable:
        run = run if self.outer is None else self.outer.over(run)

        def seen(row: Any, payloads: Any, attrs: dict) -> Any:
            out = run(row, payloads, attrs)
            self.see(row, out if row.multi else (out,), payloads)
            return out
        return seen

    def see(self, row: Any, results: Sequence[Any], operands: Sequence[Any]) -> None:
        raise NotImplementedError


class _Checker(_Layer):
    def __init__(self, outer: Any, config: TensorCheckerConfig):
        super().__init__(outer)
        self.config = config

    def see(self, row: Any, results: Sequence[Any], operands: Sequence[Any]) -> None:
        config, name = self.config, row.name
        if config.looks() and name not in config.skipped and (config.checked is None or name in config.checked):
            check_finite(name, results, operands, config.debug_mode is not DebugMode.CHECK_NAN_INF_AND_ABORT)


class _Counts(_Layer):
    """calls: (operator, column) -> how many."""

    def __init__(self, outer: Any):
        super().__init__(outer)
        self.calls: Counter[tuple[str, str]] = Counter()

    def see(self, row: Any, results: Sequence[Any], operands: Sequence[Any]) -> None:
        dtype = results[0].dtype
        column = {"float16": "FP16", "bfloat16": "BF16", "float32": "FP32"}.get(dtype.name, "Other")
        self.calls[row.name, column] += 1

    def table(self) -> str:
        """How often each operator gave a result of each dtype."""
        columns = ("FP16", "BF16", "FP32", "Other")
        names = sorted({name for name, _ in self.calls})
        lines = [f"{'<' + '-' * 18} op list of all types {'-' * 18 + '>'}",
                 f"{'Op Name':32}" + "".join(f"{c + ' Calls':>14}" for c in columns)]
        lines += [f"{name:32}" + "".join(f"{self.calls[name, c]:>14}" for c in columns) for name in names]
        return "\n".join([*lines, f"{'<' + '-' * 18} op count: {len(names)} {'-' * 18 + '>'}"])


_ON = "amp.debugging"       # among this rank's flags: kind of layer -> (the layer, the switch that put it on)


def _put_on(kind: str, layer: _Layer) -> None:
    switch = using(events=layer)
    switch.__enter__()
    current().flags.setdefault(_ON, {})[kind] = layer, switch


def _take_off(kind: str) -> Any:
    layer, switch = current().flags.get(_ON, {}).pop(kind, (None, None))
    if switch is not None:
        switch.__exit__(None, None, None)
    return layer


def enable_tensor_checker(checker_config: TensorCheckerConfig) -> None:
    """Look at the result of every operator from now on, as `checker_config` says."""
    if checker_config.enable:
        _put_on("checker", _Checker(current().events, checker_config))


def disable_tensor_checker() -> None:
    """Stop looking."""
    _take_off("checker")


def enable_operator_stats_collection() -> None:
    """Count operators by the dtype of their result from now on."""
    _put_on("stats", _Counts(current().events))


def disable_operator_stats_collection() -> None:
    """Stop counting, and print the table."""
    counts = _take_off("stats")
    if counts is not None:
        print(counts.table())


@contextlib.contextmanager
def collect_operator_stats() -> Iterator[None]:
    """Count operators by the dtype of their result inside, and print the table after it."""
    enable_operator_stats_collection()
    try:
        yield
    finally:
        disable_operator_stats_collection()
