"""Spectral norm: a weight divided by its largest singular value, found by power iteration (Miyato et al. 2018)."""

from __future__ import annotations

from minipd.framework.context import using
from minipd.framework.tensor import Tensor
from minipd.nn.layer import Layer
from minipd.nn.power_iteration import as_matrix, improved
from minipd.nn.utils.reparametrized import Reparametrized, parameter_of
from minipd.ops.elementary import sqrt
from minipd.ops.linalg import matmul
from minipd.ops.math import maximum, square
from minipd.ops.random import randn
from minipd.ops.reduce import sum

__all__ = ["spectral_norm"]


class _SpectralNorm(Reparametrized):
    """weight / sigma with sigma = u^T M v, where M is the weight as a matrix whose rows run along `dim`."""

    def __init__(self, name: str, iterations: int, epsilon: float, dim: int):
        super().__init__(name)
        self.iterations, self.epsilon, self.dim = iterations, epsilon, dim

    def unit(self, x: Tensor) -> Tensor:
        """x in the length 1."""
        return x / maximum(sqrt(sum(square(x))), self.epsilon)

    def weight(self, layer: Layer) -> Tensor:
        w = getattr(layer, f"{self.name}_orig")
        u, v = getattr(layer, f"{self.name}_u"), getattr(layer, f"{self.name}_v")
        m = as_matrix(w, self.dim)
        if layer.training:                      # u and v count as constants: sigma's gradient is u v^T
            new_u, new_v = improved(m, u, v, self.iterations, self.unit)
            with using(grad=False):
                u.set_value(new_u)
                v.set_value(new_v)
            u, v = new_u, new_v                 # not the buffers, which the next call overwrites
        return w / sum(u * matmul(m, v))


def spectral_norm(layer: Layer, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
                  dim: int | None = None) -> Layer:
    """Let the layer compute with `name` divided by its largest singular value.  Returns the layer.

    The parameter is `<name>_orig` then; `<name>_u` and `<name>_v`, the estimates of the singular vectors, are buffers,
    which each forward in training mode improves.
    n_power_iterations: how often in one forward.  eps: the smallest length that is divided by.
    dim: the dimension of the weight that gives the matrix's rows; 1 for Linear and transposed convolutions, else 0.
    Raises: ValueError for n_power_iterations < 1, a dim that the weight lacks, or a layer without that parameter.
    """
    if n_power_iterations < 1:
        raise ValueError(f"spectral_norm: expected n_power_iterations >= 1, got {n_power_iterations}")
    w = parameter_of("spectral_norm", layer, name)
    if dim is None:
        dim = int(type(layer).__name__ in ("Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose", "Linear"))
    if not -w.ndim <= dim < w.ndim:
        raise ValueError(f"spectral_norm: expected a dim in {-w.ndim} .. {w.ndim - 1}, got {dim}")
    hook = _SpectralNorm(name, n_power_iterations, eps, dim % w.ndim)
    delattr(layer, name)
    layer.add_parameter(f"{name}_orig", w)
    with using(grad=False):
        rows, columns = as_matrix(w, hook.dim).shape
        layer.register_buffer(f"{name}_u", hook.unit(randn([rows], w.dtype)))
        layer.register_buffer(f"{name}_v", hook.unit(randn([columns], w.dtype)))
    hook.put(layer, w * 1.0)                    # until the first forward
    layer.register_forward_pre_hook(hook)
    return layer
