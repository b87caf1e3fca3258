"""`paddle.signal`: Fourier transforms of short pieces of a signal, and the signal back from them.

(Griffin and Lim, Signal Estimation from Modified Short-Time Fourier Transform, 1984.)
"""

from __future__ import annotations

from minipd.fft import fft, ifft, irfft, rfft
from minipd.framework.meta import describe, is_traced
from minipd.framework.tensor import Tensor
from minipd.ops.complex import is_complex
from minipd.ops.creation import full, zeros
from minipd.ops.fft import resized
from minipd.ops.framing import Frame, OverlapAdd
from minipd.ops.joining import concat

__all__ = ["istft", "stft"]


def stft(x: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
         window: Tensor | None = None, center: bool = True, pad_mode: str = "reflect", normalized: bool = False,
         onesided: bool | None = None, name: str | None = None) -> Tensor:
    """Paddle's `signal.stft`: [batch, time] or [time] -> complex [..., frequencies, frames], the transforms of frames
    of n_fft elements, hop_length (default: n_fft // 4) apart, times the window.

    win_length: of the window (default: n_fft), which is centred in the frame.  window: None for ones.  center: the
    middle of frame j is element j hop_length, for which x is padded ("reflect", "constant"); else its first.
    normalized: divide by the root of n_fft.  onesided: only the first n_fft // 2 + 1 frequencies (default: if all is
    real).

    Raises: ValueError for sizes that do not fit, and for onesided transforms of complex numbers.

    >>> from minipd.ops.creation import ones
    >>> stft(ones([2, 16]), n_fft=8).shape
    paddle.Size([2, 5, 9])
    """
    if x.ndim not in (1, 2):
        raise ValueError(f"stft: expected [time] or [batch, time], got {describe(x.payload)}")
    hop, window = _settings("stft", x, n_fft, hop_length, win_length, window)
    if center:
        x = _padded(x, n_fft // 2, pad_mode)
    if not 0 < n_fft <= x.payload.shape[-1]:
        raise ValueError(f"stft: expected 0 < n_fft <= {x.payload.shape[-1]}, the length of the (padded) signal, got "
                         f"{n_fft}")
    real = not (is_complex(x) or is_complex(window))
    if onesided is None:
        onesided = real
    if onesided and not real:
        raise ValueError("stft: expected onesided=False for a complex signal or window, whose other half is not the "
                         "conjugate of the first")
    frames = Frame(x, frame_length=n_fft, hop_length=hop) * window.unsqueeze(-1)
    return (rfft if onesided else fft)(frames, axis=-2, norm=_norm(normalized))


def istft(x: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
          window: Tensor | None = None, center: bool = True, normalized: bool = False, onesided: bool = True,
          length: int | None = None, return_complex: bool = False, name: str | None = None) -> Tensor:
    """Paddle's `signal.istft`, the inverse of `stft` with the same settings: [..., frequencies, frames] -> [..., time].

    Frames are added where they overlap, and divided by the sum of the squared windows: the signal whose transform is
    nearest to x.  length: of the result.  return_complex: of a complex signal (then onesided must be False).

    Raises: ValueError for sizes that do not fit, and where no window covers the signal.
    """
    if x.ndim not in (2, 3) or not is_complex(x):
        raise ValueError(f"istft: expected complex [frequencies, frames] or [batch, frequencies, frames], got "
                         f"{describe(x.payload)}")
    frequencies = n_fft // 2 + 1 if onesided else n_fft
    if x.payload.shape[-2] != frequencies:
        raise ValueError(f"istft: expected {frequencies} frequencies for n_fft={n_fft} and onesided={onesided}, got "
                         f"{describe(x.payload)}")
    hop, window = _settings("istft", x, n_fft, hop_length, win_length, window)
    if return_complex and onesided or is_complex(window) and not return_complex:
        raise ValueError(f"istft: expected onesided=False for a complex result, and return_complex=True for a complex "
                         f"window, got onesided={onesided}, return_complex={return_complex}")
    frames = irfft(x, n_fft, -2, _norm(normalized)) if onesided else ifft(x, n_fft, -2, _norm(normalized))
    if not (onesided or return_complex):
        frames = frames.real()
    window = window.unsqueeze(-1)
    signal = OverlapAdd(frames * window, hop_length=hop)
    cover = OverlapAdd((window * window).expand([n_fft, x.payload.shape[-1]]), hop_length=hop)
    start = n_fft // 2 if center else 0
    stop = signal.payload.shape[-1] - start if length is None else start + length
    signal, cover = signal[..., start:stop], cover[start:stop]
    if not is_traced(cover.payload) and cover.abs().min().item() < 1e-11:
        raise ValueError("istft: expected windows that cover the signal, but their squares add up to 0 somewhere; take "
                         "a smaller hop_length, or another window")
    return signal / cover


def _settings(what: str, x: Tensor, n_fft: int, hop_length: int | None, win_length: int | None,
              window: Tensor | None) -> tuple[int, Tensor]:
    """The distance between two frames, and a window of n_fft elements."""
    hop = n_fft // 4 if hop_length is None else hop_length
    size = n_fft if win_length is None else win_length
    if hop < 1 or not 0 < size <= n_fft:
        raise ValueError(f"{what}: expected hop_length >= 1 and 0 < win_length <= n_fft, got hop_length={hop}, "
                         f"win_length={size}, n_fft={n_fft}")
    if window is None:
        window = full([size], 1.0, x.real().dtype if is_complex(x) else x.dtype)
    if tuple(window.payload.shape) != (size,):
        raise ValueError(f"{what}: expected a window of win_length={size} elements, got {describe(window.payload)}")
    before = (n_fft - size) // 2
    return hop, resized(concat([zeros([before], window.dtype), window]) if before else window, 0, n_fft)


def _padded(x: Tensor, n: int, mode: str) -> Tensor:
    """x with n more elements at either end: zeros, or x mirrored at its first and its last element."""
    size = x.payload.shape[-1]
    if mode == "constant":
        edge = zeros([*x.payload.shape[:-1], n], x.dtype)
        return concat([edge, x, edge], -1)
    if mode != "reflect":
        raise ValueError(f"stft: expected pad_mode 'reflect' or 'constant', got {mode!r}")
    if n >= size:
        raise ValueError(f"stft: expected more than {n} elements, n_fft // 2, to mirror, got {describe(x.payload)}; "
                         "take a smaller n_fft, or pad_mode='constant'")
    back = x[..., ::-1]
    return concat([back[..., size - 1 - n:size - 1], x, back[..., 1:n + 1]], -1)


def _norm(normalized: bool) -> str:
    return "ortho" if normalized else "backward"


for _method in (stft, istft):
    setattr(Tensor, _method.__name__, _method)
