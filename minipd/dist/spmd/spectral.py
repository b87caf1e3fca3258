"""Rules of Fourier transforms, of the frames of a signal, and of reading an element as several.

A transform is linear: a Partial of complex numbers passes one of the same size.
"""

from __future__ import annotations

from typing import Any

from minipd.dist.spmd.along import along
from minipd.dist.spmd.notation import Notation, letters
from minipd.dist.spmd.reshape import same_cuts
from minipd.dist.spmd.table import spmd

__all__: list[str] = []


@spmd("fft_c2c")
def fft_c2c(x: Any, *, axes: tuple[int, ...], normalization: str = "backward", forward: bool = True) -> Notation:
    return along(x, axes, linear=((0,),))


@spmd("fft_r2c")
def fft_r2c(x: Any, *, axes: tuple[int, ...], normalization: str = "backward", forward: bool = True,
            onesided: bool = True) -> Notation:
    return along(x, axes, resized=True)


@spmd("fft_c2r")
def fft_c2r(x: Any, *, axes: tuple[int, ...], last_dim_size: int, normalization: str = "backward",
            forward: bool = True) -> Notation:
    return along(x, axes, resized=True, linear=((0,),))


@spmd("frame")
def frame(x: Any, *, frame_length: int, hop_length: int) -> Notation:
    word = letters(len(x.shape) - 1)
    return Notation((word + "t",), (word + "kn",), whole="tkn")


@spmd("overlap_add")
def overlap_add(x: Any, *, hop_length: int) -> Notation:
    word = letters(len(x.shape) - 2)
    return Notation((word + "kn",), (word + "t",), whole="tkn", linear=((0,),))


@spmd("as_complex")
def as_complex(x: Any) -> Notation:
    word = letters(len(x.shape) - 1)
    return Notation((word + "z",), (word,), whole="z", linear=((0,),))


@spmd("as_real")
def as_real(x: Any) -> Notation:
    word = letters(len(x.shape))
    return Notation((word,), (word + "z",), whole="z", linear=((0,),))


@spmd("view_dtype")
def view_dtype(x: Any, *, dtype: Any) -> Notation:
    """The last dimension is cut where elements of both types end."""
    word, own, other = letters(len(x.shape)), x.dtype.itemsize, dtype.itemsize
    last = word[-1:]

    def splits(letter: str, ways: tuple[int, ...]) -> bool:
        n = x.shape[-1]
        return own == other or letter != last or same_cuts(n, own, n * own / other, other, ways)

    return Notation((word,), (word,), splits=splits)
