"""`paddle.fft` against numpy's, and `paddle.signal` against the definition.  (The rows are in `cases_fft`.)"""

import numpy as np
import pytest

import minipd as paddle
from minipd.jit import to_static

RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(3, 4, 5))
COMPLEX = REAL + 1j * RNG.normal(size=REAL.shape)
NORMS = ["backward", "forward", "ortho"]


def agree(got, want):
    assert tuple(got.shape) == want.shape and got.numpy().dtype == want.dtype
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("name", "x"), [("fft", REAL), ("fft", COMPLEX), ("ifft", COMPLEX), ("rfft", REAL),
                                         ("irfft", COMPLEX), ("hfft", COMPLEX), ("ihfft", REAL)])
def test_one_axis(name, x, norm):
    ours, numpys = getattr(paddle.fft, name), getattr(np.fft, name)
    for n in (None, 3, 4, 6, 9):
        for axis in (-1, 0):
            agree(ours(paddle.to_tensor(x), n, axis, norm), numpys(x, n, axis, norm))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("name", "x"), [("fftn", REAL), ("fftn", COMPLEX), ("ifftn", COMPLEX), ("rfftn", REAL),
                                         ("irfftn", COMPLEX)])
def test_several_axes(name, x, norm):
    ours, numpys = getattr(paddle.fft, name), getattr(np.fft, name)
    for s, axes in ((None, None), (None, (1, 0)), ((2, 7), (0, 2)), ((4,), (1,))):
        agree(ours(paddle.to_tensor(x), s, axes, norm), numpys(x, s, axes, norm))
    agree(getattr(paddle.fft, name[:-1] + "2")(paddle.to_tensor(x), (2, 6), norm=norm),
          getattr(np.fft, name[:-1] + "2")(x, (2, 6), norm=norm))


@pytest.mark.parametrize("norm", NORMS)
def test_hermitian_ones(norm):
    """`hfft` over the last axis after `fft` over the others; `ihfft` undoes it."""
    x = paddle.to_tensor(COMPLEX)
    want = np.fft.hfft(np.fft.fft(COMPLEX, axis=1, norm=norm), 7, 2, norm)
    for got in (paddle.fft.hfftn(x, (4, 7), (1, 2), norm), paddle.fft.hfft2(x, (4, 7), norm=norm)):
        agree(got, want)
    back = paddle.fft.ihfftn(paddle.to_tensor(want), None, (1, 2), norm)
    agree(back, np.fft.ifft(np.fft.ihfft(want, None, 2, norm), axis=1, norm=norm))
    agree(paddle.fft.ihfft2(paddle.to_tensor(want), norm=norm), back.numpy())


@pytest.mark.parametrize("dtype, want", [("float32", "complex64"), ("float64", "complex128"), ("int64", "complex64"),
                                         ("float16", "complex64"), ("complex64", "complex64")])
def test_dtypes(dtype, want):
    x = paddle.ones([4], dtype)
    assert paddle.fft.fft(x).dtype == want and paddle.fft.fft(x).tolist() == [4, 0, 0, 0]
    if dtype != "complex64":
        assert paddle.fft.rfft(x).dtype == want
    assert paddle.fft.irfft(x).dtype == ("float64" if want == "complex128" else "float32")


def test_frequencies_and_shifts():
    for n in (1, 4, 5):
        agree(paddle.fft.fftfreq(n, 0.3, "float64"), np.fft.fftfreq(n, 0.3))
        agree(paddle.fft.rfftfreq(n, 0.3, "float64"), np.fft.rfftfreq(n, 0.3))
        x = RNG.normal(size=(n, 3))
        for axes in (None, 0, (1,), [0, 1]):
            agree(paddle.fft.fftshift(paddle.to_tensor(x), axes), np.fft.fftshift(x, axes))
            agree(paddle.fft.ifftshift(paddle.to_tensor(x), axes), np.fft.ifftshift(x, axes))
    assert paddle.fft.fftfreq(4).dtype == paddle.float32
    assert not paddle.fft.rfftfreq(4, requires_grad=True).stop_gradient


def test_parseval_and_its_gradient():
    """The sum of squares is kept by an orthonormal transform; so its gradient is 2x, also through the halves."""
    for there in (paddle.fft.fft, paddle.fft.fftn, lambda x, norm: paddle.fft.irfft(paddle.fft.rfft(x, norm=norm), 5,
                                                                                    norm=norm)):
        x = paddle.to_tensor(REAL, stop_gradient=False)
        y = (paddle.abs(there(x, norm="ortho")) ** 2).sum()
        y.backward()
        np.testing.assert_allclose(y.item(), np.sum(REAL**2))
        np.testing.assert_allclose(x.grad.numpy(), 2 * REAL, rtol=1e-12)


def test_a_derivative_by_transforms():
    """The second derivative of sin along a period, computed with the compiled function too."""
    def second(u):
        k = paddle.fft.fftfreq(16, 1 / 16, "float64")
        return paddle.fft.ifft(paddle.fft.fft(u) * (-(k * k))).real()

    x = np.arange(16) * 2 * np.pi / 16
    for f in (second, to_static(second)):
        np.testing.assert_allclose(f(paddle.to_tensor(np.sin(x))).numpy(), -np.sin(x), atol=1e-12)


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda x: paddle.fft.fft(x, 0), ValueError, r"fft: expected at least 1 element along axis 1 of f32\[2, 3\]"),
    (lambda x: paddle.fft.fft(x, axis=2), ValueError, "fft: axis 2 is out of range for a tensor of 2 dimensions"),
    (lambda x: paddle.fft.fft(x, norm="l2"), ValueError, "expected norm to be 'backward', 'forward' or 'ortho'"),
    (lambda x: paddle.fft.fftn(x, axes=(0, -2)), ValueError, r"fftn: expected one or more different axes"),
    (lambda x: paddle.fft.fftn(x, (2, 2), (0,)), ValueError, r"a size for each of the axes \[0\], got \[2, 2\]"),
    (lambda x: paddle.fft.fft2(x, axes=(0,)), ValueError, r"fft2: expected two axes"),
    (lambda x: paddle.fft.rfft(x * 1j), TypeError, r"rfft: expected a real tensor, got c64\[2, 3\]"),
    (lambda x: paddle.fft.irfft(x[:, :1]), ValueError, "irfft: expected at least 1 element in the result"),
    (lambda x: paddle.fft.fft(x.sum()), ValueError, "fft: expected a tensor of at least 1 dimension"),
    (lambda x: paddle.fft.fftfreq(0), ValueError, "fftfreq: expected n > 0"),
])
def test_bad_transforms(call, error, text):
    with pytest.raises(error, match=text):
        call(paddle.ones([2, 3]))


# ------------------------------------------------------------------------------------------------ signals
WAVE = RNG.normal(size=(2, 40))
HANN = np.hanning(8) + 0.1


def frames(x, n, hop, window):
    return np.stack([x[..., s:s + n] * window for s in range(0, x.shape[-1] - n + 1, hop)], -1)


def test_stft_is_the_transform_of_frames():
    x = paddle.to_tensor(WAVE)
    ones = np.ones(8)
    mirrored = np.pad(WAVE, ((0, 0), (4, 4)), mode="reflect")
    agree(paddle.signal.stft(x, 8), np.fft.rfft(frames(mirrored, 8, 2, ones), axis=1))
    agree(x.stft(8, 3, center=False), np.fft.rfft(frames(WAVE, 8, 3, ones), axis=1))
    agree(x.stft(8, 3, window=paddle.to_tensor(HANN), center=False, normalized=True, onesided=False),
          np.fft.fft(frames(WAVE, 8, 3, HANN), axis=1, norm="ortho"))
    padded = np.pad(WAVE, ((0, 0), (4, 4)))
    agree(x.stft(8, pad_mode="constant"), np.fft.rfft(frames(padded, 8, 2, ones), axis=1))
    short = np.pad(HANN[:5], (1, 2))                        # a window of 5, in the middle of 8
    agree(x.stft(8, 4, 5, paddle.to_tensor(HANN[:5]), center=False), np.fft.rfft(frames(WAVE, 8, 4, short), axis=1))
    agree(x[0].stft(8), np.fft.rfft(frames(mirrored[0], 8, 2, ones), axis=0))
    agree((x * 1j).stft(8, center=False), np.fft.fft(frames(WAVE * 1j, 8, 2, ones), axis=1))


@pytest.mark.parametrize("settings", [
    {}, {"hop_length": 4}, {"normalized": True}, {"onesided": False}, {"win_length": 6}, {"center": False},
    {"window": paddle.to_tensor(HANN)},
])
def test_istft_undoes_stft(settings):
    x = paddle.to_tensor(WAVE)
    back = paddle.signal.istft(paddle.signal.stft(x, 8, **settings), 8, **settings)
    np.testing.assert_allclose(back.numpy(), WAVE, atol=1e-12)


def test_more_inverses():
    x = paddle.to_tensor(WAVE)
    assert x.stft(9).istft(9).shape == [2, 39] and x.stft(8).istft(8, length=37).shape == [2, 37]
    z = paddle.to_tensor(WAVE * (1 + 2j))
    agree(z.stft(8).istft(8, onesided=False, return_complex=True), WAVE * (1 + 2j))


def test_gradients_of_signals():
    x = paddle.to_tensor(WAVE[0], stop_gradient=False)
    (x.stft(8).istft(8) * paddle.to_tensor(np.arange(40.0))).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.arange(40.0), atol=1e-12)


@pytest.mark.parametrize(("call", "text"), [
    (lambda x: x.unsqueeze(0).stft(8), r"stft: expected \[time\] or \[batch, time\], got f64\[1, 2, 40\]"),
    (lambda x: x.stft(8, center=False, hop_length=0), "stft: expected hop_length >= 1"),
    (lambda x: x.stft(8, win_length=9), "0 < win_length <= n_fft"),
    (lambda x: x.stft(50, center=False), "stft: expected 0 < n_fft <= 40"),
    (lambda x: x.stft(80), "expected more than 40 elements, n_fft // 2, to mirror"),
    (lambda x: x.stft(8, pad_mode="edge"), "expected pad_mode 'reflect' or 'constant', got 'edge'"),
    (lambda x: x.stft(8, window=paddle.ones([7])), r"expected a window of win_length=8 elements, got f32\[7\]"),
    (lambda x: (x * 1j).stft(8, onesided=True), "expected onesided=False for a complex signal"),
    (lambda x: x.istft(8), "istft: expected complex"),
    (lambda x: x.stft(8).istft(10), r"istft: expected 6 frequencies for n_fft=10 .* got c128\[2, 5, 21\]"),
    (lambda x: x.stft(8).istft(8, return_complex=True), "istft: expected onesided=False for a complex result"),
    (lambda x: x.stft(8).istft(8, window=paddle.zeros([8])), "istft: expected windows that cover the signal"),
])
def test_bad_signals(call, text):
    with pytest.raises(ValueError, match=text):
        call(paddle.to_tensor(WAVE))
