"""Overlapping frames of a signal, and their sum: each the transpose of the other."""

from __future__ import annotations

from minipd.framework.dim import require_at_least
from minipd.framework.meta import Meta, describe
from minipd.framework.row import Trait, op
from minipd.ops.fft import resized

__all__: list[str] = []


@op("frame", Trait.EXACT, Trait.ALLOCATES)
class Frame:
    """[..., time] -> [..., frame_length, frames]: out[..., i, j] = x[..., j hop_length + i]; an incomplete frame at the
    end is left out."""

    def infer_meta(x, *, frame_length, hop_length):
        n = x.shape[-1]
        require_at_least(n, frame_length, f"frame: the elements of {describe(x)}, of which a frame needs some")
        return Meta((*x.shape[:-1], frame_length, (n - frame_length) // hop_length + 1), x.dtype)

    def kernel(xp, x, *, frame_length, hop_length):
        frames = xp.lib.stride_tricks.sliding_window_view(x, frame_length, axis=-1)[..., ::hop_length, :]
        return xp.array(frames.swapaxes(-1, -2), order="C")

    def vjp_x(g, x: Meta, hop_length):
        return resized(OverlapAdd(g, hop_length=hop_length), len(x.shape) - 1, x.shape[-1])


@op("overlap_add", Trait.ALLOCATES)
class OverlapAdd:
    """[..., frame_length, frames] -> [..., time]: frame j added in at j hop_length."""

    def infer_meta(x, *, hop_length):
        return Meta((*x.shape[:-2], (x.shape[-1] - 1) * hop_length + x.shape[-2]), x.dtype)

    def kernel(xp, x, *, hop_length):       # a frame is some blocks of hop_length, of which block i of frame j
        *lead, length, frames = x.shape     # meets the blocks at i + j
        blocks = -(-length // hop_length)
        padded = xp.zeros((*lead, frames, blocks * hop_length), x.dtype)
        padded[..., :length] = x.swapaxes(-1, -2)
        padded = padded.reshape(*lead, frames, blocks, hop_length)
        out = xp.zeros((*lead, frames + blocks - 1, hop_length), x.dtype)
        for i in range(blocks):
            out[..., i:i + frames, :] += padded[..., i, :]
        whole = out.reshape(*lead, (frames + blocks - 1) * hop_length)
        return whole[..., :(frames - 1) * hop_length + length]

    def vjp_x(g, x: Meta, hop_length):
        return Frame(g, frame_length=x.shape[-2], hop_length=hop_length)
