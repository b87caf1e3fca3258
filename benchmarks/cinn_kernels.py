"""Generated kernels against numpy and torch: loop-IR functions written by hand, as the compiler is to make them.

    python benchmarks/cinn_kernels.py [--threads 2] [--rounds 9] [--torch PYTHON] [filter]

Each round runs every contender once, in turn, and the least time of each is printed: other work on the machine only
ever adds.  GB/s is what the kernel must read and write over its time.  `--torch` names the Python of an environment
with torch, which computes the same eagerly and with torch.compile in a process of its own.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TORCH_WORKER = '''
import sys, time, torch
torch.set_num_threads(int(sys.argv[1]))
F = torch.nn.functional
def rms(x, w): return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w
def xent(x, t):
    p = torch.softmax(x, -1)
    return torch.logsumexp(x, -1) - x.gather(-1, t[:, None])[:, 0], p
def xent_grad(t, p, g): return (p - F.one_hot(t, p.shape[-1])) * g
def adamw(p, g, m, v, s):
    m2 = m * 0.9 + g * 0.1
    v2 = v * 0.999 + g * g * 0.001
    return p * (1 - 1e-5) - m2 * s[0] / (v2.sqrt() * s[1] + 1e-8), m2, v2
r = torch.randn
n = 15_000_000
CASES = {
    "rms_norm": (rms, lambda: (r(4096, 4096), r(4096))),
    "softmax": (lambda x: torch.softmax(x, -1), lambda: (r(2048, 4096),)),
    "cross_entropy": (xent, lambda: (r(2048, 4096), torch.randint(4096, (2048,)))),
    "cross_entropy_grad": (xent_grad, lambda: (torch.randint(4096, (2048,)), r(2048, 4096), r(2048, 1))),
    "swiglu": (lambda g, u: F.silu(g) * u, lambda: (r(1 << 22), r(1 << 22))),
    "adamw": (adamw, lambda: (r(n), r(n), r(n), r(n).abs(), torch.ones(2))),
}
for line in sys.stdin:                      # "name eager|compiled" -> seconds
    name, way = line.split()
    function, make = CASES[name]
    key = name, way
    if key not in globals().setdefault("READY", {}):
        READY.clear()
        READY[key] = (torch.compile(function) if way == "compiled" else function), make()
    function, arguments = READY[key]
    with torch.no_grad():
        function(*arguments)
        start = time.perf_counter()
        function(*arguments)
        print(time.perf_counter() - start, flush=True)
'''


def functions():
    """name -> (function, shapes of its arrays, numpy's way)."""
    import numpy as np

    from minipd.cinn.ir.ast import Accumulate, Dim, Expr, For, Function, Init, Let, Load, Param, Seq, Store, Var
    from minipd.cinn.ir.build import binary, cast, const, select, unary
    f32, i64 = np.dtype(np.float32), np.dtype(np.int64)
    i, j = Var("i"), Var("j")
    add, sub, mul, div = (lambda x, y, op=op: binary(op, x, y) for op in ("add", "sub", "mul", "div"))

    def load(buffer: str, *index: Expr) -> Load:
        return Load(buffer, index, f32)

    def scalar(name: str) -> Var:
        return Var(name, f32)

    def number(value: float) -> Expr:
        return const(value, f32)

    def columns(buffer: str, *body: object) -> For:
        return For("j", Dim(buffer, 1), Seq(body) if len(body) > 1 else body[0], "vector")

    def rows(name: str, inputs: dict, outputs: dict, first: str, *body: object) -> Function:
        params = [Param(n, d, r) for n, (d, r) in inputs.items()]
        params += [Param(n, d, r, True) for n, (d, r) in outputs.items()]
        return Function(name, tuple(params), For("i", Dim(first, 0), Seq(body), "parallel"), (name,))

    x, z = load("x", i, j), const(0, i64)
    rms_norm = rows(
        "rms_norm", {"x": (f32, 2), "w": (f32, 1)}, {"y": (f32, 2)}, "x",
        Init("total", number(0)), columns("x", Accumulate("total", "add", mul(x, x))),
        Let("r", unary("rsqrt", add(div(scalar("total"), cast(Dim("x", 1), f32)), number(1e-6)))),
        columns("x", Store("y", (i, j), mul(mul(x, scalar("r")), load("w", j)))))
    exponentials = (
        Init("top", number(-np.inf)), columns("x", Accumulate("top", "max", x)),
        Init("total", number(0)), columns("x", Let("e", unary("exp", sub(x, scalar("top")))),
                                          Store("p", (i, j), scalar("e")), Accumulate("total", "add", scalar("e"))),
        columns("x", Store("p", (i, j), div(load("p", i, j), scalar("total")))))
    softmax = rows("softmax", {"x": (f32, 2)}, {"p": (f32, 2)}, "x", *exponentials)
    target = Load("label", (i, z), i64)
    cross_entropy = rows(
        "cross_entropy", {"x": (f32, 2), "label": (i64, 2)}, {"p": (f32, 2), "loss": (f32, 2)}, "x", *exponentials,
        Store("loss", (i, z), sub(add(unary("log", scalar("total")), scalar("top")), load("x", i, target))))
    hit = select(binary("eq", j, target), number(1), number(0))
    cross_entropy_grad = rows(
        "cross_entropy_grad", {"label": (i64, 2), "p": (f32, 2), "g": (f32, 2)}, {"dx": (f32, 2)}, "p",
        Let("scale", load("g", i, z)),
        columns("p", Store("dx", (i, j), mul(sub(load("p", i, j), hit), scalar("scale")))))
    swiglu = rows(
        "swiglu", {"g": (f32, 1), "u": (f32, 1)}, {"y": (f32, 1)}, "g", Let("x", load("g", i)),
        Store("y", (i,), mul(div(scalar("x"), add(number(1), unary("exp", unary("neg", scalar("x"))))), load("u", i))))
    m2 = add(mul(load("m", i), number(0.9)), mul(load("g", i), number(0.1)))
    v2 = add(mul(load("v", i), number(0.999)), mul(mul(load("g", i), load("g", i)), number(0.001)))
    root = add(mul(unary("sqrt", scalar("v_new")), load("s", const(1, i64))), number(1e-8))
    adamw = rows(
        "adamw", {n: (f32, 1) for n in "pgmvs"}, {"p2": (f32, 1), "m2": (f32, 1), "v2": (f32, 1)}, "p",
        Let("m_new", m2), Let("v_new", v2), Store("m2", (i,), scalar("m_new")), Store("v2", (i,), scalar("v_new")),
        Store("p2", (i,), sub(mul(load("p", i), number(1 - 1e-5)), div(mul(scalar("m_new"), load("s", z)), root))))

    def numpy_softmax(x):
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    def numpy_cross_entropy(x, label):
        shifted = x - x.max(-1, keepdims=True)
        e = np.exp(shifted)
        total = e.sum(-1, keepdims=True)
        return e / total, np.log(total) - np.take_along_axis(shifted, label, -1)

    def numpy_grad(label, p, g):
        out = p * g
        np.put_along_axis(out, label, np.take_along_axis(out, label, -1) - g, -1)
        return (out,)

    def numpy_adamw(p, g, m, v, s):
        m, v = m * np.float32(0.9) + g * np.float32(0.1), v * np.float32(0.999) + g * g * np.float32(0.001)
        return p * np.float32(1 - 1e-5) - m * s[0] / (np.sqrt(v) * s[1] + np.float32(1e-8)), m, v
    big, loss, n, flat = (2048, 4096), (2048, 1), (15_000_000,), (1 << 22,)
    norm = (4096, 4096)
    return {
        "rms_norm": (rms_norm, [norm, norm[1:], norm], lambda x, w: (
            x * (1 / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(1e-6))) * w,)),
        "softmax": (softmax, [big, big], lambda x: (numpy_softmax(x),)),
        "cross_entropy": (cross_entropy, [big, loss, big, loss], numpy_cross_entropy),
        "cross_entropy_grad": (cross_entropy_grad, [loss, big, loss, big], numpy_grad),
        "swiglu": (swiglu, [flat] * 3, lambda g, u: (g / (1 + np.exp(-g)) * u,)),
        "adamw": (adamw, [n, n, n, n, (2,), n, n, n], numpy_adamw),
    }


def seconds(work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("filter", nargs="?", default="")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--torch", help="the Python of an environment with torch")
    options = parser.parse_args()
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = str(options.threads)         # before numpy and numba are imported

    import numpy as np

    from minipd.cinn.runtime.compiler import Compiler
    from minipd.cinn.runtime.kernel import Kernel
    rng = np.random.default_rng(0)
    compiler = Compiler(Path(tempfile.mkdtemp()))
    # Torch makes new outputs in each call; with these settings it gets their memory back without page faults.
    kept = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_TOP_PAD_": str(1 << 26)}
    worker = options.torch and subprocess.Popen([options.torch, "-c", TORCH_WORKER, str(options.threads)], text=True,
                                                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                                env={**os.environ, **kept})

    def torch(name: str, way: str) -> float:
        worker.stdin.write(f"{name} {way}\n")
        worker.stdin.flush()
        return float(worker.stdout.readline())
    ways = ["numpy", *(["eager", "compiled"] if worker else [])]
    print(f"{options.threads} threads, ms" + "".join(f"{w:>22}" for w in ways))
    for name, (function, shapes, reference) in functions().items():
        if options.filter not in name:
            continue
        arrays = []
        for param, shape in zip(function.params, shapes, strict=True):
            if param.dtype == np.int64:
                arrays.append(rng.integers(0, 4096, shape))
            else:
                arrays.append(np.abs(rng.standard_normal(shape, np.float32)) if param.name in "vs" else
                              rng.standard_normal(shape, np.float32))
        count = sum(not p.output for p in function.params)
        inputs, outputs = arrays[:count], arrays[count:]
        kernel = Kernel(function, compiler)
        elements = max(a.size for a in arrays)
        building = seconds(lambda k=kernel, n=elements: k.version(n))
        call = kernel.bind(inputs, outputs)
        call()
        for got, want in zip(outputs, reference(*inputs), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
        times: dict[str, list[float]] = {w: [] for w in ["kernel", *ways]}
        for _ in range(options.rounds):
            times["kernel"].append(seconds(call))
            times["numpy"].append(seconds(lambda f=reference, x=inputs: f(*x)))
            for way in ways[1:]:
                times[way].append(torch(name, way))
        least = {way: min(t) for way, t in times.items()}
        own = least["kernel"]
        rate = sum(a.nbytes for a in arrays) / own / 1e9
        print(f"{name:20} {own * 1e3:7.2f} ({rate:5.1f} GB/s, built in {building:4.2f} s)"
              + "".join(f"{least[w] * 1e3:9.2f} = {least[w] / own:5.1f}x" for w in ways), flush=True)
    if worker:
        worker.stdin.close()
        worker.wait()


if __name__ == "__main__":
    sys.exit(main())
