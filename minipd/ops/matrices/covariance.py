"""Covariances and correlations of variables."""

from __future__ import annotations

import numpy as np

from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.ops.cast import cast
from minipd.ops.elementary import sqrt
from minipd.ops.matrices.parts import adjoint, diagonal_of

__all__ = ["corrcoef", "cov"]


def cov(x: Tensor, rowvar: bool = True, ddof: bool = True, fweights: Tensor | None = None,
        aweights: Tensor | None = None, name: str | None = None) -> Tensor:
    """The covariance of n variables, from m observations of each.

    x: [n, m], or [m], one variable; rowvar=False: [m, n].  ddof: divide by m - 1 instead of m.
    fweights: int [m], how often each observation was made.  aweights: [m], how much each counts.
    -> [n, n], or 0-D for one variable
    Raises: ValueError for other shapes, or for negative weights.

    >>> from minipd.ops.creation import to_tensor
    >>> cov(to_tensor([[1.0, 3.0], [4.0, 0.0]])).tolist()
    [[2.0, -4.0], [-4.0, 8.0]]
    """
    if x.ndim not in (1, 2):
        raise ValueError(f"cov: expected a tensor of 1 or 2 dimensions, variables and observations, got {describe(x)}")
    x = x.unsqueeze(0) if x.ndim == 1 else x if rowvar else x.t()
    m = x.payload.shape[1]
    weights = None
    for what, given in (("fweights", fweights), ("aweights", aweights)):
        if given is None:
            continue
        if tuple(given.payload.shape) != (m,):
            raise ValueError(f"cov: expected {what} of shape [{m}], one for each observation, got {describe(given)}")
        if isinstance(given.payload, np.ndarray) and (given.payload < 0).any():
            raise ValueError(f"cov: expected {what} >= 0, got a negative one")
        weights = cast(given, x.dtype) if weights is None else weights * cast(given, x.dtype)
    if weights is None:
        centred = x - x.mean(1, keepdim=True)
        total = m - 1.0 if ddof else float(m)
        product = centred @ adjoint(centred)
    else:
        whole = weights.sum()
        centred = x - (x * weights).sum(1, keepdim=True) / whole
        total = whole
        if ddof:
            total = whole - (1.0 if aweights is None else (weights * cast(aweights, x.dtype)).sum() / whole)
        product = centred * weights @ adjoint(centred)
    if not isinstance(total, Tensor):
        total = max(total, 0.0)
    return (product / total).squeeze()


def corrcoef(x: Tensor, rowvar: bool = True, name: str | None = None) -> Tensor:
    """The correlation of variables: their covariance, divided by their standard deviations; from -1 to 1.

    x: [n, m], n variables and m observations, or [m]; rowvar=False: [m, n].  -> [n, n], or 0-D for one variable

    >>> from minipd.ops.creation import to_tensor
    >>> corrcoef(to_tensor([[1.0, 3.0], [4.0, 0.0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    if x.ndim not in (1, 2):
        raise ValueError(f"corrcoef: expected a tensor of 1 or 2 dimensions, variables and observations, got "
                         f"{describe(x)}")
    c = cov(x, rowvar)
    if c.ndim == 0:
        return c / c
    deviation = sqrt(diagonal_of(c))
    return c / deviation.unsqueeze(0) / deviation.unsqueeze(1)
