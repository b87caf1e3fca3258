"""Dropout and the residual after it become one operator.

    >>> from minipd.nn.functional import dropout
    >>> from minipd.passes.show import before_after, show
    >>> show(before_after("fused_dropout_add_pass", lambda x, y: dropout(x, 0.1) + y, (2, 3), (2, 3)))
    before
      a = dropout(x, key_0, p=0.1)
      b = add(a, y)
      return b
    after
      a = fused_dropout_add(x, y, key_0, p=0.1)
      return a

The mask is the same: it is a function of the key.
"""

from __future__ import annotations

from minipd.passes.drr import drr
from minipd.passes.formula import ops

__all__: list[str] = []


@drr("fused_dropout_add_pass")
class DropoutAdd:
    """dropout(x) + y."""

    def source(x, y, key, *, p, mode):
        return ops.dropout(x, key, p=p, mode=mode) + y

    def constraint(x, y):
        return x.shape == y.shape and x.dtype == y.dtype

    def result(x, y, key, p, mode):
        return ops.fused_dropout_add(x, y, key, p=p, mode=mode)
