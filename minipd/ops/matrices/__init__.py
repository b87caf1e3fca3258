"""Linear algebra beyond `matmul`: products of matrices, equations, decompositions, norms."""

from minipd.ops.matrices.chain import multi_dot
from minipd.ops.matrices.covariance import corrcoef, cov
from minipd.ops.matrices.eigen import eig, eigh, eigvals, eigvalsh
from minipd.ops.matrices.einstein import einsum
from minipd.ops.matrices.elimination import lu, lu_solve, lu_unpack
from minipd.ops.matrices.equations import det, inv, inverse, slogdet, solve, triangular_solve
from minipd.ops.matrices.functions import matrix_exp, matrix_power
from minipd.ops.matrices.least_squares import lstsq, pinv
from minipd.ops.matrices.norms import cdist, cond, dist, matrix_norm, norm, pdist, renorm, vector_norm
from minipd.ops.matrices.orthogonal import householder_product, ormqr, qr
from minipd.ops.matrices.parts import matrix_transpose
from minipd.ops.matrices.positive_definite import cholesky, cholesky_inverse, cholesky_solve
from minipd.ops.matrices.products import (
    addmm,
    baddbmm,
    bmm,
    cross,
    dot,
    ger,
    inner,
    kron,
    mm,
    mv,
    outer,
    tensordot,
    trace,
    vecdot,
)
from minipd.ops.matrices.singular_values import matrix_rank, pca_lowrank, svd, svd_lowrank, svdvals

__all__ = [
    "addmm", "baddbmm", "bmm", "cdist", "cholesky", "cholesky_inverse", "cholesky_solve", "cond", "corrcoef", "cov",
    "cross", "det", "dist", "dot", "eig", "eigh", "eigvals", "eigvalsh", "einsum", "ger", "householder_product",
    "inner", "inv", "inverse", "kron", "lstsq", "lu", "lu_solve", "lu_unpack", "matrix_exp", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "mm", "multi_dot", "mv", "norm", "ormqr", "outer",
    "pca_lowrank", "pdist", "pinv", "qr", "renorm", "slogdet", "solve", "svd", "svd_lowrank", "svdvals", "tensordot",
    "trace", "triangular_solve", "vecdot", "vector_norm",
]  # fmt: skip
