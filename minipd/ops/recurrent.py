"""One step of a recurrent cell behind its matrix products: what is done element by element, as one operator.

A step of an LSTM is a dozen small operators, a GRU's too, and a sequence has many steps; so these are rows, and so are
their gradients.  `act` is what comes out of the gates' activations, block beside block, kept for the gradient.
"""

from __future__ import annotations

from typing import Any

from minipd.framework.dim import same
from minipd.framework.meta import Meta, describe
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops.creation import zeros_like
from minipd.ops.elementary import tanh
from minipd.ops.joining import concat, split
from minipd.ops.shapes import require_floating, shapes_agree

__all__: list[str] = []


def _blocks(x: Any, n: int) -> list:
    """The last dimension of an array in n equal parts: views."""
    size = x.shape[-1] // n
    return [x[..., i * size:(i + 1) * size] for i in range(n)]


def _check(what: str, state: Any, n: int, **wide: Any) -> None:
    """ValueError unless the wide operands are [..., n * H] for a state [..., H]."""
    require_floating(what, state)
    for name, x in wide.items():
        if not x.shape or not same(x.shape[-1], n * state.shape[-1]) or not shapes_agree(
                tuple(x.shape[:-1]), tuple(state.shape[:-1]), what):
            raise ValueError(f"{what}: expected {name} of {n} times the state's width, {describe(state)}, got "
                             f"{describe(x)}")


def _or_zeros(g: Tensor | None, like: Tensor) -> Tensor:
    return zeros_like(like) if g is None else g


@op("lstm_unit", Trait.MULTI, Trait.ALLOCATES)
class LstmUnit:
    """i, f, o = sigmoid, g = tanh of the blocks i, f, g, o of `gates`;  cell = f c + i g;  out = o tanh(cell).

    gates [..., 4 H], c [..., H] -> out [..., H], cell [..., H], act [..., 4 H]
    """

    outputs = ("out", "cell", "act")

    def infer_meta(gates, c):
        _check("lstm_unit", c, 4, gates=gates)
        return Meta(c.shape, c.dtype), Meta(c.shape, c.dtype), Meta(gates.shape, c.dtype)

    def kernel(xp, gates, c):
        act = xp.multiply(gates, gates.dtype.type(0.5))             # sigmoid x = (1 + tanh(x / 2)) / 2
        i, f, g, o = _blocks(act, 4)
        g[...] = _blocks(gates, 4)[2]
        xp.tanh(act, out=act)
        for block in (act[..., :2 * c.shape[-1]], o):
            block += 1
            block *= act.dtype.type(0.5)
        cell = f * c
        cell += i * g
        return o * xp.tanh(cell), cell, act

    def vjp(gs, c, cell, act):
        g_out, g_cell, g_act = gs
        g_gates, g_c = LstmUnitGrad(_or_zeros(g_out, cell), _or_zeros(g_cell, cell), act, c, cell)
        if g_act is not None:
            i, f, g, o = split(act, 4, -1)
            slopes = concat([i * (1 - i), f * (1 - f), 1 - g * g, o * (1 - o)], -1)
            g_gates = g_gates + g_act * slopes
        return [g_gates, g_c]


@op("lstm_unit_grad", Trait.MULTI, Trait.ALLOCATES)
class LstmUnitGrad:
    """The gradients of lstm_unit's operands, from those of out and cell."""

    outputs = ("g_gates", "g_c")

    def infer_meta(g_out, g_cell, act, c, cell):
        _check("lstm_unit_grad", c, 4, act=act)
        return Meta(act.shape, c.dtype), Meta(c.shape, c.dtype)

    def kernel(xp, g_out, g_cell, act, c, cell):
        i, f, g, o = _blocks(act, 4)
        t = xp.tanh(cell)
        d = g_cell + g_out * o * (1 - t * t)                        # what reaches the new cell
        out = act * (1 - act)
        gi, gf, gg, go = _blocks(out, 4)
        gi *= d * g
        gf *= d * c
        gg[...] = d * i * (1 - g * g)
        go *= g_out * t
        return out, d * f

    def vjp(gs, g_out, g_cell, act, c, cell):
        i, f, g, o = split(act, 4, -1)
        wi, wf, wg, wo = split(_or_zeros(gs[0], act), 4, -1)
        w = _or_zeros(gs[1], c)
        t = tanh(cell)
        slope = 1 - t * t
        d = g_cell + g_out * o * slope
        wd = wi * g * i * (1 - i) + wf * c * f * (1 - f) + wg * i * (1 - g * g) + w * f         # the gradient of d
        wt = wo * g_out * o * (1 - o) - 2 * wd * g_out * o * t                                  # and of t
        to_act = concat([wi * d * g * (1 - 2 * i) + wg * d * (1 - g * g), wf * d * c * (1 - 2 * f) + w * d,
                         wi * d * i * (1 - i) - 2 * wg * d * i * g,
                         wd * g_out * slope + wo * g_out * t * (1 - 2 * o)], -1)
        return [wd * o * slope + wo * t * o * (1 - o), wd, to_act, wf * d * f * (1 - f), wt * slope]


@op("gru_unit", Trait.MULTI, Trait.ALLOCATES)
class GruUnit:
    """r, z = sigmoid(x + u) and n = tanh(x + r u) of the blocks r, z, n of x and u;  out = n + z (h - n).

    x, u [..., 3 H], h [..., H] -> out [..., H], act [..., 3 H]
    """

    outputs = ("out", "act")

    def infer_meta(x, u, h):
        _check("gru_unit", h, 3, x=x, u=u)
        return Meta(h.shape, h.dtype), Meta(x.shape, h.dtype)

    def kernel(xp, x, u, h):
        act, half = xp.empty_like(x), x.dtype.type(0.5)
        r, z, n = _blocks(act, 3)
        gates = act[..., :2 * h.shape[-1]]
        xp.add(x[..., :gates.shape[-1]], u[..., :gates.shape[-1]], out=gates)
        gates *= half                                               # sigmoid x = (1 + tanh(x / 2)) / 2
        xp.tanh(gates, out=gates)
        gates += 1
        gates *= half
        xp.multiply(r, _blocks(u, 3)[2], out=n)
        n += _blocks(x, 3)[2]
        xp.tanh(n, out=n)
        out = h - n
        out *= z
        out += n
        return out, act

    def vjp(gs, u, h, act):
        g_out, g_act = gs
        g_x, g_u, g_h = GruUnitGrad(_or_zeros(g_out, h), u, h, act)
        if g_act is not None:
            r, z, n = split(act, 3, -1)
            wr, wz, wn = split(g_act, 3, -1)
            wn = wn * (1 - n * n)
            wr, wz = (wr + wn * split(u, 3, -1)[2]) * r * (1 - r), wz * z * (1 - z)
            g_x, g_u = g_x + concat([wr, wz, wn], -1), g_u + concat([wr, wz, wn * r], -1)
        return [g_x, g_u, g_h]


@op("gru_unit_grad", Trait.MULTI, Trait.ALLOCATES)
class GruUnitGrad:
    """The gradients of gru_unit's operands, from that of out."""

    outputs = ("g_x", "g_u", "g_h")

    def infer_meta(g, u, h, act):
        _check("gru_unit_grad", h, 3, u=u, act=act)
        return Meta(u.shape, h.dtype), Meta(u.shape, h.dtype), Meta(h.shape, h.dtype)

    def kernel(xp, g, u, h, act):
        r, z, n = _blocks(act, 3)
        to_x = act * (1 - act)
        gr, gz, gn = _blocks(to_x, 3)
        gn[...] = g * (1 - z) * (1 - n * n)
        gr *= gn * _blocks(u, 3)[2]
        gz *= g * (h - n)
        to_u = to_x.copy()
        last = _blocks(to_u, 3)[2]
        last *= r
        return to_x, to_u, g * z

    def vjp(gs, g, u, h, act):
        r, z, n = split(act, 3, -1)
        un = split(u, 3, -1)[2]
        ar, az, an = split(_or_zeros(gs[0], u), 3, -1)
        br, bz, bn = split(_or_zeros(gs[1], u), 3, -1)
        w, wr, wz = _or_zeros(gs[2], h), ar + br, az + bz
        slope_r, slope_z, slope_n = r * (1 - r), z * (1 - z), 1 - n * n
        d = g * (1 - z) * slope_n                                   # what reaches n's activation
        wd = wr * un * slope_r + an + bn * r                        # and the gradient of that
        zeros = zeros_like(h)
        to_act = concat([wr * d * un * (1 - 2 * r) + bn * d,
                         wz * g * (h - n) * (1 - 2 * z) + w * g - wd * g * slope_n,
                         -2 * wd * g * (1 - z) * n - wz * g * slope_z], -1)
        return [wd * (1 - z) * slope_n + wz * (h - n) * slope_z + w * z,
                concat([zeros, zeros, wr * d * slope_r], -1), wz * g * slope_z, to_act]
