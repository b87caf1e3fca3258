"""What may go wrong with a compiled function from outside: right results, or one clear error or warning."""

import os
import signal
import subprocess
import sys
import textwrap
import warnings

import ml_dtypes
import numpy as np
import pytest

import minipd as paddle
from minipd.cinn.compile import apply_cinn_pass
from minipd.cinn.dialect import JIT_KERNEL
from minipd.executor import Executor
from minipd.jit import to_static
from minipd.nn import functional as F
from minipd.static import InputSpec
from tests.cinn.programs import traced

R = np.random.default_rng(0)

#: a process that compiles softmax(x) + 1 in the folder argv[1], and prints how often it compiled, loaded, and warned
PROCESS = """
    import os, sys, warnings
    os.environ["MINIPD_CACHE"] = sys.argv[1]
    import numpy as np
    import minipd as paddle
    from minipd.jit import to_static
    from minipd.nn import functional as F
    from minipd.cinn.runtime.compiler import process_compiler
    x = paddle.to_tensor(np.linspace(-3, 3, 24, dtype=np.float32).reshape(4, 6))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = to_static(lambda x: F.softmax(x * 2.0) + 1.0, backend="CINN")(x).numpy()
    e = np.exp(x.numpy() * 2.0)
    np.testing.assert_allclose(y, e / e.sum(-1, keepdims=True) + 1, rtol=1e-6)
    statistics = process_compiler().statistics
    print(statistics.compiled, statistics.loaded, len(caught))
    for warning in caught:
        print(warning.message)
"""


def start(folder, **changes):
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(PROCESS), str(folder)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **changes)


def result(process):
    """(compiled, loaded, warnings) and the texts of the warnings; the process has ended well."""
    out, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors
    counts, *messages = out.splitlines()
    return tuple(map(int, counts.split())), messages


# ------------------------------------------------------------------------------------------- the folder of kernels
@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    assert result(start(folder)) == ((1, 0, 0), [])
    assert result(start(folder)) == ((0, 1, 0), [])
    return folder


def copied(filled, folder):
    (folder / "kernels").mkdir()
    for path in (filled / "kernels").iterdir():
        (folder / "kernels" / path.name).write_bytes(path.read_bytes())
    return folder


@pytest.mark.long
def test_corrupted_machine_code(filled, tmp_path):
    (path,) = (copied(filled, tmp_path) / "kernels").glob("*.bin")
    path.write_bytes(path.read_bytes()[:-1000] + bytes(1000))
    counts, (message,) = result(start(tmp_path))
    assert counts == (1, 0, 1) and "checksum is wrong" in message and "compiled anew" in message
    assert result(start(tmp_path)) == ((0, 1, 0), [])               # and has been replaced


@pytest.mark.long
def test_stale_machine_code_is_not_looked_at(filled, tmp_path):
    """Code for another source, or another processor or Python, has another name."""
    (path,) = (copied(filled, tmp_path) / "kernels").glob("*.bin")
    name, key, machine, ending = path.name.rsplit(".", 3)
    path.rename(path.with_name(".".join([name, key, "0" * len(machine), ending])))
    assert result(start(tmp_path)) == ((1, 0, 0), [])


@pytest.mark.long
def test_a_process_that_is_killed_leaves_a_folder_that_serves(tmp_path):
    """Killed at the worst moment: when the file is half written, under its temporary name."""
    code = PROCESS.replace("import numpy as np\n", """import numpy as np
    import pathlib, signal
    whole = pathlib.Path.write_bytes
    def half(path, data):
        if ".bin." in path.name:
            whole(path, data[:len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return whole(path, data)
    pathlib.Path.write_bytes = half
""", 1)
    command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)]
    killed = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert [p for p in (tmp_path / "kernels").iterdir() if ".bin." in p.name]
    assert result(start(tmp_path)) == ((1, 0, 0), [])
    assert result(start(tmp_path)) == ((0, 1, 0), [])


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_read_only_folder(filled, tmp_path):
    copied(filled, tmp_path)
    (tmp_path / "kernels").chmod(0o500)
    assert result(start(tmp_path)) == ((0, 1, 0), [])


@pytest.mark.long
def test_a_folder_that_cannot_be_made(tmp_path):
    """A file stands in its place: nothing can be kept, one warning says so."""
    (tmp_path / "cache").write_text("")
    counts, (message,) = result(start(tmp_path / "cache"))
    assert counts == (1, 0, 1) and "cannot be kept" in message and "set MINIPD_CACHE" in message


# ---------------------------------------------------------------------------------------------------- dtypes and sizes
def check(fn, *arrays, rtol=1e-6):
    """The compiled function gives what it gives uncompiled, or refuses in the same words."""
    tensors = [paddle.to_tensor(x) for x in arrays]
    try:
        want = fn(*tensors)
    except (TypeError, ValueError) as error:
        with pytest.raises(type(error)) as refused:
            to_static(fn, backend="CINN")(*tensors)
        assert str(error).splitlines()[0] in str(refused.value)
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = to_static(fn, backend="CINN")(*tensors)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got.numpy().astype(np.float64), want.numpy().astype(np.float64), rtol=rtol)
    return got


DTYPES = ["float32", "float64", "float16", ml_dtypes.bfloat16, "int32", "int64", "uint8", "bool"]


@pytest.mark.parametrize("a", DTYPES, ids=str)
@pytest.mark.parametrize("b", ["float32", "int64", ml_dtypes.bfloat16], ids=str)
def test_mixed_dtypes(a, b):
    """As eager: promoted alike, or refused alike."""
    x, y = np.arange(6).reshape(2, 3).astype(a), np.arange(3).astype(b)
    check(lambda x, y: (x + y) * 2, x, y, rtol=2e-2)


@pytest.mark.long
def test_more_elements_than_32_bits_can_count(compiler):
    """A row's address is beyond 2^31 elements, and so is an element's in an array of one axis."""
    x = np.ones((65_537, 32_769), np.int8)
    x[-1, -1] = 3

    def rows(x):
        return (x.astype("int64") * 2).sum(-1)
    for given, last in (x, 2 * 32_769 + 4), (x.reshape(1, -1), 2 * x.size + 4):
        program, feed = traced(rows, given)
        assert apply_cinn_pass(program) == 1
        y, = Executor(program).run(feed).values()
        assert y[-1] == last and (y[:-1] == 2 * 32_769).all()
    flat = x.reshape(-1)
    program, feed = traced(lambda x: x * 3 - x, flat)
    assert apply_cinn_pass(program) == 1
    y, = Executor(program).run(feed).values()
    assert y[-1] == 6 and y[2 ** 31] == 2 and int(y.sum(dtype=np.int64)) == 2 * flat.size + 4


# ----------------------------------------------------------------------------------------- groups that cannot be built
def test_a_kernel_that_numba_refuses_falls_back_with_one_warning(monkeypatch):
    def refuse(*args, **options):
        raise RuntimeError("LLVM has run out of registers")
    monkeypatch.setattr("minipd.cinn.runtime.compiler.compiled", refuse)
    x, w = R.normal(size=(3, 4)), R.normal(size=(4, 4))
    program, feed = traced(lambda x, w: (F.softmax(x * 7.25) - 3.0, paddle.matmul(x, w).exp() * 9.5), x, w)
    with pytest.warns(UserWarning, match="the group of .* runs as library kernels.*no kernel could be built for "
                                         ".*LLVM has run out of registers") as caught:
        apply_cinn_pass(program)
    assert len([c for c in caught if "library kernels" in str(c.message)]) == 1
    y, z = Executor(program).run(feed).values()
    e = np.exp(x * 7.25 - (x * 7.25).max(-1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(-1, keepdims=True) - 3, rtol=1e-12)
    np.testing.assert_allclose(z, np.exp(x @ w) * 9.5, rtol=1e-12)


# ---------------------------------------------------------------------------------------------------- sizes at run time
def test_one_compile_serves_all_lengths():
    """A block of attention's neighbours with batch and length open: everything is built for the first length."""
    from minipd.cinn.runtime.compiler import process_compiler
    statistics = process_compiler().statistics

    def block(x, w):
        y = x * paddle.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w
        scores = paddle.matmul(y, y.transpose([0, 2, 1]))
        return F.softmax(scores * 0.25) + 1.0, F.silu(y).sum(1)
    w = R.normal(size=16).astype(np.float32)
    compiled = to_static(block, backend="CINN", input_spec=[InputSpec([None, None, 16], "float32", "x"),
                                                            InputSpec([16], "float32", "w")])
    built = []
    for batch, length in (2, 7), (1, 1), (3, 2), (2, 64), (1, 257), (2, 513), (1, 1025):
        x = R.normal(size=(batch, length, 16)).astype(np.float32)
        attention, pooled = compiled(paddle.to_tensor(x), paddle.to_tensor(w))
        wide = x.astype(np.float64)
        y = wide / np.sqrt((wide * wide).mean(-1, keepdims=True) + 1e-5) * w
        scores = 0.25 * y @ y.transpose(0, 2, 1)
        e = np.exp(scores - scores.max(-1, keepdims=True))
        np.testing.assert_allclose(attention.numpy(), e / e.sum(-1, keepdims=True) + 1, rtol=2e-5)
        np.testing.assert_allclose(pooled.numpy(), (y / (1 + np.exp(-y))).sum(1), rtol=1e-4, atol=1e-4)
        built.append(statistics.compiled + statistics.loaded)
    assert len(set(built)) == 1


def test_a_length_that_does_not_fit_is_refused_by_name():
    program, feed = traced(lambda x, y: F.silu(x) + y, R.normal(size=(3, 4)), R.normal(size=(3, 4)))
    apply_cinn_pass(program)
    assert any(op.name() == JIT_KERNEL for op in program.walk())
    with pytest.raises(ValueError, match="x1"):
        Executor(program).run({**feed, "x1": R.normal(size=(5, 4))})
