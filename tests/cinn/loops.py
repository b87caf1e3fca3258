"""Loop-IR functions for the tests of kernels, written by hand, and what compares a kernel with the interpreter."""

import numpy as np

from minipd.cinn.ir.ast import Accumulate, Alloc, Dim, For, Function, Init, Let, Load, Param, Seq, Store, Var
from minipd.cinn.ir.build import binary, cast, const, unary
from minipd.cinn.ir.interpreter import interpret
from minipd.cinn.runtime.kernel import Kernel

F32, F64, I64 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int64)
i, j, k = Var("i"), Var("j"), Var("k")


def flat(name, inputs, outputs, stmts, comment=()):
    """A parallel loop over 1-D arrays; inputs, outputs: name -> dtype."""
    params = [Param(n, d, 1) for n, d in inputs.items()] + [Param(n, d, 1, True) for n, d in outputs.items()]
    return Function(name, tuple(params), For("i", Dim(params[0].name, 0), Seq(tuple(stmts)), "parallel"), comment)


def rms_norm(dtype=F32, power=2, wide=F32):
    """y = x / sqrt(mean(x^power) + 1e-6) * w, of [rows, columns] and [columns], computed in `wide`."""
    x = cast(Load("x", (i, j), dtype), wide)
    term = binary("mul", Var("e", wide), Var("e", wide))
    if power == 4:
        term = binary("mul", term, term)
    columns = cast(Dim("x", 1), wide)
    scaled = binary("mul", binary("mul", x, Var("r", wide)), cast(Load("w", (j,), dtype), wide))
    body = Seq((
        Init("total", const(0, wide)),
        For("j", Dim("x", 1), Seq((Let("e", x), Accumulate("total", "add", term))), "vector"),
        Let("r", unary("rsqrt", binary("add", binary("div", Var("total", wide), columns), const(1e-6, wide)))),
        For("j", Dim("x", 1), Store("y", (i, j), cast(scaled, dtype)), "vector")))
    return Function("rms_norm", (Param("x", dtype, 2), Param("w", dtype, 1), Param("y", dtype, 2, True)),
                    For("i", Dim("x", 0), body, "parallel"), ("square", "mean", "rsqrt", "multiply"))


def softmax(dtype=F32):
    """Over the rows of [rows, columns], exponentials kept in a row buffer."""
    x, buffer = Load("x", (i, j), dtype), Load("row", (j,), dtype)
    body = Seq((
        Alloc("row", (Dim("x", 1),), dtype),
        Init("top", const(-np.inf, dtype)),
        For("j", Dim("x", 1), Accumulate("top", "max", x), "vector"),
        Init("total", const(0, dtype)),
        For("j", Dim("x", 1), Seq((Let("e", unary("exp", binary("sub", x, Var("top", dtype)))),
                                   Store("row", (j,), Var("e", dtype)),
                                   Accumulate("total", "add", Var("e", dtype)))), "vector"),
        For("j", Dim("x", 1), Store("y", (i, j), binary("div", buffer, Var("total", dtype))), "vector")))
    return Function("softmax", (Param("x", dtype, 2), Param("y", dtype, 2, True)),
                    For("i", Dim("x", 0), body, "parallel"), ("softmax",))


def column_sum(chunks=3, dtype=F32):
    """[rows, columns] -> [columns]: each chunk of rows into its own accumulator row, then these added up."""
    rows, part = Dim("x", 0), Load("partial", (k, j), dtype)
    per = binary("floordiv", binary("add", rows, chunks - 1), chunks)
    first = binary("mul", k, Var("per"))
    left = binary("max", binary("sub", rows, first), 0)
    count = binary("min", Var("per"), left)
    row = binary("add", first, i)
    return Function("column_sum", (Param("x", dtype, 2), Param("y", dtype, 1, True)), Seq((
        Let("per", per),
        Alloc("partial", (const(chunks, I64), Dim("x", 1)), dtype),
        For("k", const(chunks, I64), Seq((
            For("j", Dim("x", 1), Store("partial", (k, j), const(0, dtype)), "vector"),
            For("i", count, For("j", Dim("x", 1), Store("partial", (k, j), binary(
                "add", part, Load("x", (row, j), dtype))), "vector")))), "parallel"),
        For("j", Dim("x", 1), Seq((
            Init("total", const(0, dtype)),
            For("k", const(chunks, I64), Accumulate("total", "add", part)),
            Store("y", (j,), Var("total", dtype)))), "parallel"))), ("sum",))


def run_all(function, compiler, inputs, shapes, threads=False):
    """The outputs by each way of running a kernel: called; serially in 3 tasks; if `threads`, by 2 threads in 3 tasks,
    and in more tasks than there is work."""
    kernel = Kernel(function, compiler)
    results = []
    dtypes = [p.dtype for p in function.params if p.output]
    for way in (None, (3, 1), *([(3, 2), (50, 2)] if threads else [])):
        outputs = [np.empty(s, d) for s, d in zip(shapes, dtypes, strict=True)]
        if way is None:
            kernel(inputs, outputs)
        elif all(y.size for y in outputs):
            arrays = [kernel._fitted(p, a, 0) for p, a in zip(function.params, (*inputs, *outputs), strict=True)]
            for call in kernel.calls(kernel.version(), arrays, *way):
                call()
        results.append(outputs)
    return results


def check(function, compiler, inputs, shapes, rtol=0.0, atol=0.0, threads=False):
    """Every way of running the kernel gives what the interpreter gives; NaN where it does."""
    expected = [np.empty(s, p.dtype) for s, p in zip(shapes, (p for p in function.params if p.output), strict=True)]
    interpret(function, inputs, expected)
    for outputs in run_all(function, compiler, inputs, shapes, threads):
        for p, got, want in zip((p for p in function.params if p.output), outputs, expected, strict=True):
            wide = np.float64 if want.dtype.kind in "fV" else want.dtype
            np.testing.assert_allclose(got.astype(wide), want.astype(wide), rtol=rtol, atol=atol, equal_nan=True,
                                       err_msg=p.name)
