"""Complex numbers: what users see of them.  (Values and gradients of the rows are in `cases_complex`.)"""

import math

import numpy as np
import pytest

import minipd as paddle
from minipd.autograd import PyLayer
from minipd.jit import to_static


def tensor(*numbers, **kwargs):
    return paddle.to_tensor(list(numbers), stop_gradient=False, **kwargs)


def numbers(x):
    return [complex(round(v.real, 5), round(v.imag, 5)) for v in x.tolist()]


# ------------------------------------------------------------------------------------------------ gradients
@pytest.mark.parametrize(("loss", "want"), [                    # at 1 + 2i; worked out by hand
    (lambda z: paddle.abs(z) ** 2, 2 + 4j),                     # a^2 + b^2: (2a, 2b)
    (lambda z: (z * z).real(), 2 - 4j),                         # a^2 - b^2: (2a, -2b)
    (lambda z: (z * z).imag(), 4 + 2j),                         # 2ab: (2b, 2a)
    (lambda z: paddle.angle(z), -0.4 + 0.2j),                   # atan(b/a): (-b, a) / (a^2 + b^2)
    (lambda z: (z * (3 + 1j)).real(), 3 - 1j),                  # 3a - b
    (lambda z: (2.0 * z).imag(), 2j),
    (lambda z: (z.conj() * 1j).real(), 1j),                     # i(a - bi): b
    (lambda z: (1 / z).real(), 0.12 - 0.16j),                   # a/(a^2 + b^2): ((b^2 - a^2), -2ab) / (a^2 + b^2)^2
    (lambda z: paddle.as_real(z)[..., 1] * 5.0, 5j),
    (lambda z: z * z, 2 - 4j),                                  # of a complex result: of its real part
])
def test_the_gradient_is_where_a_real_loss_grows(loss, want):
    z = tensor(1 + 2j, dtype="complex128")
    loss(z).backward()
    assert z.grad.dtype == paddle.complex128
    np.testing.assert_allclose(z.grad.numpy(), [want], atol=1e-14)


def test_a_step_against_the_gradient_descends():
    z = tensor(3 - 2j, -1 + 0.5j)
    target = paddle.to_tensor([1 + 1j, 2.0])
    for _ in range(60):
        loss = (paddle.abs(z - target) ** 2).sum()
        (g,) = paddle.grad(loss, z)
        z = (z - 0.1 * g).detach()
        z.stop_gradient = False
    np.testing.assert_allclose(z.numpy(), target.numpy(), atol=1e-4)


def test_a_real_operand_gets_the_real_part():
    x, z = tensor(2.0, 3.0), tensor(1 + 1j, 4j)
    (x * z).imag().sum().backward()
    assert x.grad.dtype == paddle.float32 and x.grad.tolist() == [1.0, 4.0]
    assert z.grad.tolist() == [2j, 3j]
    x.grad = None
    (x * 1j * z).real().sum().backward()
    assert x.grad.tolist() == [-1.0, -4.0]


def test_second_derivatives():
    z = tensor(1 + 2j, dtype="complex128")
    (g,) = paddle.grad((z * z * z).real().sum(), z, create_graph=True)             # conj(3 z^2)
    assert numbers(g) == [-9 - 12j]
    (h,) = paddle.grad(g.imag().sum(), z)                                           # -12ab / 2: (-6b, -6a)
    assert numbers(h) == [-12 - 6j]


def test_hooks_and_layers_of_the_user_see_the_gradient_of_the_user():
    class Twice(PyLayer):
        @staticmethod
        def forward(ctx, x):
            return x * 2j

        @staticmethod
        def backward(ctx, g):
            seen.append(g.tolist())
            return g * -2j

    seen = []
    z = tensor(1 + 1j)
    y = z * 1.0
    y.register_hook(lambda g: seen.append(g.tolist()))
    (Twice.apply(y) * (3 + 1j)).backward()
    assert seen == [[3 - 1j], [-2 - 6j]]
    assert z.grad.tolist() == [-2 - 6j]


def test_given_gradients():
    z = tensor(1 + 1j)
    (z * 2j).backward(paddle.to_tensor([1 + 1j]))           # conj(2i) (1 + i)
    assert z.grad.tolist() == [2 - 2j]
    (g,) = paddle.grad(z * 2j, z, paddle.to_tensor([1.0]))
    assert g.tolist() == [-2j]


@pytest.mark.parametrize("backend", [None, "CINN"])
def test_compiled_functions(backend):
    """(The compiler leaves complex numbers to the library's kernels.)"""
    def f(z):
        return paddle.abs(paddle.exp(z) * z + 1j) * 2.0 + z.real()

    z, w = tensor(1 + 2j, 0.5j), tensor(1 + 2j, 0.5j)
    for x, g in ((z, f), (w, to_static(f, backend=backend))):
        out = g(x)
        out.sum().backward()
    np.testing.assert_allclose(z.grad.numpy(), w.grad.numpy(), rtol=1e-6)


# ------------------------------------------------------------------------------------------------ views and numbers
def test_parts_are_views():
    z = paddle.to_tensor([1 + 2j, 3 + 4j])
    re, both = z.real(), paddle.as_real(z)
    z[0] = 9 + 8j
    assert re.tolist() == [9, 3] and both.tolist() == [[9, 8], [3, 4]]
    re[1] = 0.0
    assert z.tolist() == [9 + 8j, 4j]
    x = paddle.ones([2, 2])
    paddle.as_complex(x)[1] = 5j
    assert x.tolist() == [[1, 1], [0, 5]]
    column = paddle.ones([2, 3]).transpose([1, 0])          # parts that do not lie side by side: a copy
    assert paddle.as_complex(column).tolist() == [1 + 1j] * 3


def test_python_numbers():
    z = paddle.to_tensor(1 + 2j)
    assert complex(z) == z.item() == 1 + 2j and type(z.item()) is complex
    assert (z == 1 + 2j).item() and bool(z) and not bool(z * 0)
    assert (1j - paddle.to_tensor([1])).tolist() == [-1 + 1j]
    with pytest.raises(TypeError):
        float(z)


def test_polar_and_sgn():
    x = paddle.polar(paddle.to_tensor([2.0, 1.0]), paddle.to_tensor([math.pi / 2, math.pi]))
    np.testing.assert_allclose(x.numpy(), [2j, -1], atol=1e-6)
    z = tensor(3 + 4j, 0j)
    y = paddle.sgn(z)
    assert numbers(y) == [0.6 + 0.8j, 0]
    y.real().sum().backward()
    np.testing.assert_allclose(z.grad.numpy(), [(0.64 - 0.48j) / 5, 0], atol=1e-6)
    assert paddle.sgn(paddle.to_tensor([-2.0, 0.0])).tolist() == [-1.0, 0.0]


def test_the_variance_is_of_distances():
    z = tensor(1 + 1j, 3 - 1j)
    assert z.var(unbiased=False).item() == pytest.approx(2.0) and z.std().dtype == paddle.float32  # sqrt(2) from 2


def test_questions():
    z, x = paddle.to_tensor([1 + 0j, 2j]), paddle.ones([2])
    assert z.is_complex() and not x.is_complex()
    assert paddle.isreal(z).tolist() == [True, False] and paddle.isreal(x).tolist() == [True, True]
    assert paddle.conj(x) is x
    assert paddle.angle(paddle.to_tensor([-1.0, 2.0])).tolist() == [np.float32(math.pi), 0.0]


def test_casts():
    z = paddle.to_tensor([1.7 + 2j, 1j])
    assert z.astype("float64").dtype == paddle.float64 and z.astype("int32").tolist() == [1, 0]
    assert z.astype("bool").tolist() == [True, True]
    assert paddle.to_tensor([1 + 1j], dtype=complex).dtype == paddle.complex64
    assert paddle.zeros([1], "complex128").tolist() == [0j] and paddle.full([1], 2j).tolist() == [2j]
    assert (paddle.complex64.code, paddle.complex128.code) == (23, 24)


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: paddle.real(paddle.ones([2])), TypeError, r"real: expected a complex tensor, got f32\[2\]"),
    (lambda: paddle.as_real(paddle.ones([2])), TypeError, r"as_real: expected a complex tensor, got f32\[2\]"),
    (lambda: paddle.as_complex(paddle.ones([2, 3])), ValueError, r"as_complex: expected .* got f32\[2, 3\]"),
    (lambda: paddle.complex(paddle.ones([2], "int32"), paddle.ones([2], "int32")), TypeError,
     r"complex: expected parts of float32 or float64, got i32\[2\] and i32\[2\]"),
    (lambda: paddle.sgn(paddle.ones([2], "int32")), TypeError, "sgn: expected a floating or complex tensor, got i32"),
])
def test_bad_operands(call, error, text):
    with pytest.raises(error, match=text):
        call()
