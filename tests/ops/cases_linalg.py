"""Cases of operators on matrices, far from singular ones: there nothing is left of the digits.

The second derivatives of decompositions are long programs: they are taken of one case or two (`smooth`).
"""

import math

import numpy as np

from tests.ops.case import Case, cases

#: the sides of a matrix of which one is the longer: of symbols that is not known
KNOWN = ((0, -2), (0, -1))


def regular(d, n, *batch):
    """Matrices far from singular: between the identity and thrice it, with a little of everything."""
    return np.asarray(d.floats(*batch, n, n, low=-0.4, high=0.4) + np.diag(np.linspace(1.0, 2.0, n)))


def each_matrix(f, results=1):
    """f, of one matrix (and further operands), for each matrix of a batch."""
    def want(*xs, **attrs):
        batch = np.broadcast_shapes(*(x.shape[:-2] for x in xs))
        xs = [np.broadcast_to(x, batch + x.shape[-2:]) for x in xs]
        found = [f(*(x[i] for x in xs), **attrs) for i in np.ndindex(batch)]
        if results == 1:
            return np.reshape(found, batch + np.shape(found[0])) if found else None
        return tuple(np.reshape([r[k] for r in found], batch + np.shape(found[0][k])) for k in range(results))
    return want


def by_cofactors(x):
    """The determinant, by Laplace's expansion."""
    n = len(x)
    if n == 0:
        return 1.0
    minors = (np.delete(x[1:], j, 1) for j in range(n))
    return sum((-1) ** j * x[0, j] * by_cofactors(m) for j, m in enumerate(minors))


def adjugate_inverse(x):
    n = len(x)
    cofactors = [[(-1) ** (i + j) * by_cofactors(np.delete(np.delete(x, i, 0), j, 1)) for j in range(n)]
                 for i in range(n)]
    return np.array(cofactors).reshape(n, n).T / by_cofactors(x)


@cases("inverse")
def _(d):
    for n, *batch in ((1,), (2,), (3, 2), (2, 2, 1)):
        yield Case((regular(d, n, *batch),), each_matrix(adjugate_inverse))


@cases("determinant")
def _(d):
    for n, *batch in ((1,), (2,), (3, 2)):
        yield Case((regular(d, n, *batch),), each_matrix(by_cofactors))


@cases("slogdet")
def _(d):
    def want(x):
        value = by_cofactors(x)
        return math.copysign(1.0, value), math.log(abs(value))

    for n, *batch in ((1,), (2,), (3, 2)):
        yield Case((regular(d, n, *batch),), each_matrix(want, 2))
    yield Case((-regular(d, 3),), each_matrix(want, 2))


@cases("solve")
def _(d):
    want = each_matrix(lambda a, b: adjugate_inverse(a) @ b)
    for a, b in (((1,), (1, 2)), ((2,), (2, 1)), ((3, 2), (3, 2)), ((2, 2), (1, 2, 3))):
        yield Case((regular(d, *a), d.floats(*b)), want)


@cases("triangular_solve")
def _(d):
    def want(a, b, upper=True, transpose=False, unitriangular=False):
        a = np.where(np.tri(len(a)) > 0, a.T, 0).T if upper else np.where(np.tri(len(a)) > 0, a, 0)
        if unitriangular:
            np.fill_diagonal(a, 1.0)
        return adjugate_inverse(a.T if transpose else a) @ b

    for upper in (True, False):
        for transpose in (True, False):
            for unit in (True, False):
                attrs = {"upper": upper, "transpose": transpose, "unitriangular": unit}
                yield Case((regular(d, 3), d.floats(3, 2)), each_matrix(want), attrs, smooth=not unit)
    yield Case((regular(d, 2, 2), d.floats(2, 1)), each_matrix(want))


@cases("cholesky")
def _(d):
    def want(a, upper=False):
        n = len(a)
        low = np.zeros((n, n))
        for i in range(n):
            for j in range(i + 1):
                rest = a[i, j] - low[i, :j] @ low[j, :j]
                low[i, j] = math.sqrt(rest) if i == j else rest / low[j, j]
        return low.T if upper else low

    for n, *batch in ((1,), (2,), (3, 2)):
        a = regular(d, n, *batch)
        for upper in (False, True):
            yield Case((a @ a.swapaxes(-1, -2),), each_matrix(want), {"upper": upper}, symmetric=(0,), smooth=n == 2)


@cases("qr")
def _(d):
    def want(x, mode="reduced"):
        """By Householder's reflections, with LAPACK's signs."""
        m, n = x.shape
        q, r = np.eye(m), x.copy()
        for i in range(min(m - 1, n)):
            v = r[i:, i].copy()
            v[0] += math.copysign(np.linalg.norm(v), v[0])
            h = np.eye(m)
            h[i:, i:] -= 2 * np.outer(v, v) / (v @ v)
            q, r = q @ h, h @ r
        k = m if mode == "complete" else min(m, n)
        return q[:, :k], r[:k]

    for shape in ((1, 1), (3, 3), (3, 2), (2, 3, 2), (2, 3)):
        yield Case((d.floats(*shape) + 2 * np.eye(*shape[-2:]),), each_matrix(want, 2), fixed=KNOWN,
                   smooth=shape in ((3, 2), (2, 3)))
    yield Case((d.floats(3, 2) + 2 * np.eye(3, 2),), each_matrix(want, 2), {"mode": "complete"}, wrt=())
    yield Case((d.floats(3, 3) + 2 * np.eye(3),), each_matrix(want, 2), {"mode": "complete"}, smooth=False)


def rounded_rotation(*angles):
    """A product of rotations of the plane of each two neighbouring axes."""
    n = len(angles) + 1
    q = np.eye(n)
    for i, angle in enumerate(angles):
        turn = np.eye(n)
        turn[i:i + 2, i:i + 2] = [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
        q = q @ turn
    return q


def signed(columns, reference):
    """The columns with the signs that those of `reference` have: eigenvectors are determined up to sign."""
    return columns * np.where((columns * reference).sum(-2, keepdims=True) < 0, -1.0, 1.0)


@cases("svd")
def _(d):
    """Made of known factors: what is wanted is those, with the signs that LAPACK gave the vectors."""
    def made(m, n, *values, smooth=False):
        u, v = rounded_rotation(*[0.5 + 0.2 * i for i in range(m - 1)]), rounded_rotation(*[0.9] * (n - 1))
        k = min(m, n)

        def want(x, full_matrices=False):
            got = np.linalg.svd(x)
            return (signed(u[:, :k], got[0][:, :k]), np.array(values), signed(v[:, :k], got[2].T[:, :k]).T)
        return Case((u[:, :k] * values @ v[:, :k].T,), want, fixed=KNOWN, smooth=smooth)

    yield made(1, 1, 2.0)
    yield made(2, 2, 3.0, 1.0)
    yield made(3, 2, 2.0, 0.5, smooth=True)
    yield made(2, 3, 2.0, 0.5)
    one = made(2, 2, 3.0, 1.0)
    yield Case((np.stack([one.inputs[0]] * 2),), lambda x: tuple(np.stack([w] * 2) for w in one.want(x[0])),
               smooth=False)
    yield Case(one.inputs, one.want, {"full_matrices": True}, wrt=())


@cases("eigh")
def _(d):
    def made(n, *values):
        v = rounded_rotation(*[0.4 + 0.3 * i for i in range(n - 1)])

        def want(x, UPLO="L"):
            return np.array(values), signed(v, np.linalg.eigh(x, UPLO)[1])
        return v * values @ v.T, want

    for values in ((2.0,), (-1.0, 1.5), (-1.0, 0.5, 2.0)):
        a, want = made(len(values), *values)
        yield Case((a,), want, symmetric=(0,), smooth=len(values) == 2)
        yield Case((a,), want, {"UPLO": "U"}, symmetric=(0,), smooth=False)


@cases("eig")
def _(d):
    """Real eigenvalues in float64; what is complex is tested in test_complex_matrices.py."""
    def want(x):
        w, v = np.linalg.eig(x)
        return w.astype(np.complex128), v.astype(np.complex128)

    yield Case((np.array([[3.0, 1.0], [0.5, 1.0]]),), want)


@cases("lu")
def _(d):
    def want(x):
        m, n = x.shape
        x, pivots = x.copy(), []
        for i in range(min(m, n)):
            p = i + int(np.abs(x[i:, i]).argmax())
            x[[i, p]] = x[[p, i]]
            pivots.append(p + 1)
            x[i + 1:, i] /= x[i, i]
            x[i + 1:, i + 1:] -= np.outer(x[i + 1:, i], x[i, i + 1:])
        return x, np.array(pivots, np.int32), np.int32(0)

    for shape in ((1, 1), (3, 3), (3, 2), (2, 2, 2), (2, 3)):
        x = np.linspace(-1.0, 1.0, math.prod(shape)).reshape(shape) ** 2 + 0.1 * d.floats(*shape)
        yield Case((x + 2 * np.eye(*shape[-2:])[::-1],), each_matrix(want, 3), fixed=KNOWN,
                   smooth=shape in ((3, 3), (2, 3)))


@cases("pivots_to_permutation")
def _(d):
    def want(pivots, like):
        order = list(range(like.shape[-2]))
        for i, p in enumerate(pivots):
            order[i], order[p - 1] = order[p - 1], order[i]
        return np.array(order)

    yield Case((np.array([3, 3], np.int64), d.floats(3, 2)), want, wrt=())
    yield Case((np.array([2, 3, 3], np.int64), d.floats(3, 3)), want, wrt=())


@cases("pinv")
def _(d):
    def want(x, rcond, hermitian=False):
        """Of full rank: by the normal equations."""
        m, n = x.shape
        return np.linalg.inv(x.T @ x) @ x.T if m >= n else x.T @ np.linalg.inv(x @ x.T)

    for shape in ((1, 1), (2, 2), (3, 2), (2, 3), (2, 3, 2)):
        yield Case((d.floats(*shape, low=-0.5, high=0.5) + np.eye(*shape[-2:]), 1e-4),
                   lambda x, rcond: each_matrix(lambda m: want(m, rcond))(x))
    symmetric = regular(d, 2)
    yield Case((symmetric + symmetric.T, 1e-4), want, {"hermitian": True}, symmetric=(0,))


@cases("matrix_exp")
def _(d):
    def want(x):
        """Taylor's series, with more digits."""
        x = x.astype(np.longdouble)
        power = total = np.eye(len(x), dtype=np.longdouble)
        for k in range(1, 60):
            power = power @ x / k
            total = total + power
        return total.astype(np.float64)

    for shape in ((1, 1), (2, 2), (2, 3, 3)):
        yield Case((d.floats(*shape, low=-1.0, high=1.0),), each_matrix(want))
    yield Case((d.floats(2, 2) * 4.0,), each_matrix(want), wrt=())


@cases("p_norm")
def _(d):
    def want(x, porder, axis, keepdim=False):
        return np.sum(np.abs(x) ** porder, axis=axis, keepdims=keepdim) ** (1 / porder)

    for porder in (1.0, 2.0, 3.0, 2.5, 1.5):
        yield Case((d.distinct(2, 3),), want, {"porder": porder, "axis": (1,)}, smooth=porder != 1.0)
    yield Case((d.distinct(2, 3, 2),), want, {"porder": 2.0, "axis": (0, 2), "keepdim": True})
    yield Case((d.floats(0, 2),), want, {"porder": 2.0, "axis": (0,)})
    yield Case((d.floats(),), want, {"porder": 2.0, "axis": ()})
    yield Case((np.zeros(3),), want, {"porder": 2.0, "axis": (0,)}, wrt=())
