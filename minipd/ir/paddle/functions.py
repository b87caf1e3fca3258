"""Operators of Paddle's that are functions of several rows: the public function of each, by name.

They are named, not imported: the floor of layers stands beside this one, and whoever reads a program that has such an
operator has it loaded.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

from minipd.ir.operation import Operation
from minipd.ir.paddle.form import LOADS
from minipd.ir.paddle.load import Loader

__all__ = ["FUNCTIONS", "function"]


def function(name: str) -> Callable:
    """The public function `minipd.<name>`."""
    module, _, short = name.rpartition(".")
    return getattr(importlib.import_module(f"minipd.{module}" if module else "minipd"), short)


#: Paddle's operator -> (public function, our names of its attributes where they differ); tensors go first, in order
FUNCTIONS: dict[str, tuple[str, dict[str, str]]] = {
    **{name: (f"nn.functional.{name}", {}) for name in (
        "celu", "elu", "hardshrink", "hardsigmoid", "hardswish", "leaky_relu", "maxout", "mish", "prelu", "relu6",
        "selu", "softplus", "softshrink", "softsign", "swish", "thresholded_relu", "temporal_shift", "pixel_shuffle",
        "pixel_unshuffle", "channel_shuffle", "grid_sample", "bilinear", "log_loss", "label_smooth")},
    "hardtanh": ("nn.functional.hardtanh", {"t_min": "min", "t_max": "max"}),
    "tanh_shrink": ("nn.functional.tanhshrink", {}),
    "kldiv_loss": ("nn.functional.kl_div", {}),
    **{name: (name, {}) for name in (
        "addmm", "allclose", "baddbmm", "bmm", "cholesky_solve", "cross", "diag", "diag_embed", "dist", "dot",
        "equal_all", "fill_diagonal", "heaviside", "index_sample", "is_empty", "isclose", "kron", "lerp", "logit",
        "lu_solve", "masked_fill", "matrix_power", "mv", "nansum", "put_along_axis", "scatter", "stanh", "trace",
        "increment", "bincount", "shard_index", "crop")},
    "zeros": ("zeros", {}), "ones": ("ones", {}), "zeros_like": ("zeros_like", {}), "ones_like": ("ones_like", {}),
    "increment_": ("increment", {}),
    "svdvals": ("linalg.svdvals", {}), "gammaln": ("gammaln", {}), "eigvals": ("linalg.eigvals", {}),
    "tril_indices": ("tril_indices", {"rows": "row", "cols": "col"}), "triu_indices": ("triu_indices", {}),
}


#: attributes of Paddle's that say what the shapes of the tensors say too, or where a kernel may stop reckoning
IMPLIED = frozenset({"lambda", "mode"})


def _load(at: Loader, op: Operation) -> Any:
    """Tensors by position, attributes by name."""
    name = op.name().partition(".")[2]
    public, names = FUNCTIONS[name]
    attrs = {names.get(k, k): list(v) if isinstance(v, tuple) else v for k, v in at.attrs(op).items() if k != "place"}
    takes = inspect.signature(function(public)).parameters
    # what follows from the tensors (the mode of a prelu) ours are not told
    given = {k: v for k, v in attrs.items() if k in takes or k not in IMPLIED}
    return at.call(function(public), *at.inputs(op), **given)


LOADS.update({name: _load for name in FUNCTIONS if name not in LOADS})
