"""Kernels on disk: shared by processes, damaged, not writable.  The results are right, and one warning says why it took
longer."""

import subprocess
import sys
import textwrap
import warnings
from dataclasses import replace

import numpy as np
import pytest

from minipd.cinn.runtime.build import build_versions
from minipd.cinn.runtime.compiler import Compiler, content_key
from minipd.cinn.runtime.kernel import Kernel, Version, compile_function
from minipd.dist.comm.sim import World
from tests.cinn.loops import rms_norm, softmax

X = np.random.default_rng(0).standard_normal((5, 31)).astype(np.float32)


def softmax_of(compiler):
    y = np.empty_like(X)
    compile_function(softmax(), compiler=compiler)([X], [y])
    return y


def versions(compiler, *functions):
    return [Version(Kernel(function, compiler)) for function in functions]


@pytest.fixture(scope="module")
def expected():
    e = np.exp(X.astype(np.float64) - X.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A folder with softmax's kernel in it."""
    folder = tmp_path_factory.mktemp("filled")
    softmax_of(Compiler(folder))
    return folder


@pytest.fixture
def folder(filled, tmp_path):
    """A copy of it, to damage."""
    for path in filled.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def test_the_second_process_loads(folder, expected):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiler = Compiler(folder)
        np.testing.assert_allclose(softmax_of(compiler), expected, rtol=1e-5)
    assert (compiler.statistics.compiled, compiler.statistics.loaded) == (0, 1)
    assert compiler.statistics.seconds > 0


def test_the_source_is_there_to_read(folder):
    (source,) = folder.glob("softmax_*.py")
    assert source.read_text() == Kernel(softmax(), Compiler(folder)).source
    assert not [p for p in folder.iterdir() if p.name.startswith(".")]           # no temporary files


def test_another_source_is_another_kernel():
    assert content_key(softmax(), "a") != content_key(softmax(), "b")
    assert content_key(softmax(), "a") == content_key(softmax(), "a")


def test_one_text_over_other_types_is_another_kernel():
    """A copy reads alike for every dtype; its machine code does not."""
    wide = replace(softmax(), params=tuple(replace(p, dtype=np.dtype("float64")) for p in softmax().params))
    assert content_key(softmax(), "a") != content_key(wide, "a")


DAMAGES = {
    "emptied": lambda content: b"",
    "cut off": lambda content: content[:-100],
    "a bit flipped": lambda content: content[:-200] + bytes([content[-200] ^ 1]) + content[-199:],
    "other text": lambda content: b"not machine code",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_code_is_compiled_anew_and_replaced(folder, expected, damage):
    (path,) = folder.glob("*.bin")
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    compiler = Compiler(folder)
    with pytest.warns(UserWarning, match="cannot be used: its checksum is wrong.  It is compiled anew") as caught:
        np.testing.assert_allclose(softmax_of(compiler), expected, rtol=1e-5)
    assert len(caught) == 1 and compiler.statistics.compiled == 1
    assert softmax_of(healed := Compiler(folder)) is not None and healed.statistics.loaded == 1


def test_code_that_numba_cannot_load_is_compiled_anew(folder, expected):
    (path,) = folder.glob("*.bin")
    compiler = Compiler(folder)
    compiler.store.save(path.name, b"whole, but of no known format")
    with pytest.warns(UserWarning, match="cannot be loaded") as caught:
        np.testing.assert_allclose(softmax_of(compiler), expected, rtol=1e-5)
    assert len(caught) == 1


def test_a_damaged_source_does_no_harm(folder, expected):
    (path,) = folder.glob("*.py")
    path.write_text("raise SystemExit")
    np.testing.assert_allclose(softmax_of(Compiler(folder)), expected, rtol=1e-5)
    assert "def softmax" in path.read_text()


def test_a_folder_that_cannot_be_written_costs_one_warning(tmp_path, expected):
    """A file where the folder should be: no permission helps there, not even the superuser's."""
    (tmp_path / "file").write_text("")
    compiler = Compiler(tmp_path / "file" / "kernels")
    with pytest.warns(UserWarning, match="cannot be kept in .*: Not a directory.*set MINIPD_CACHE") as caught:
        np.testing.assert_allclose(softmax_of(compiler), expected, rtol=1e-5)
        compile_function(rms_norm(), compiler=compiler)
    assert len(caught) == 1 and compiler.statistics.compiled == 2


def test_a_full_disk_costs_one_warning(tmp_path, expected, monkeypatch):
    def full(path, data):
        raise OSError(28, "No space left on device")
    monkeypatch.setattr("minipd.cinn.runtime.store.write_atomically", full)
    with pytest.warns(UserWarning, match="No space left on device") as caught:
        np.testing.assert_allclose(softmax_of(Compiler(tmp_path)), expected, rtol=1e-5)
    assert len(caught) == 1


def test_a_folder_that_can_only_be_read_serves(folder, expected, monkeypatch):
    def refused(path, data):
        raise PermissionError(13, "Permission denied")
    monkeypatch.setattr("minipd.cinn.runtime.store.write_atomically", refused)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiler = Compiler(folder)
        np.testing.assert_allclose(softmax_of(compiler), expected, rtol=1e-5)
    assert compiler.statistics.loaded == 1


def test_an_interrupted_compilation_leaves_nothing(tmp_path, expected, monkeypatch):
    compiler = Compiler(tmp_path)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        def interrupted(*args):
            raise KeyboardInterrupt
        patch.setattr("numba.core.compiler.compile_extra", interrupted)
        softmax_of(compiler)
    assert not list(tmp_path.glob("*.bin"))
    np.testing.assert_allclose(softmax_of(compiler), expected, rtol=1e-5)


SHARING = """
    import sys, warnings
    from pathlib import Path
    import numpy as np
    warnings.simplefilter("error")
    sys.path.insert(0, sys.argv[2])
    from minipd.cinn.runtime.compiler import Compiler
    from minipd.cinn.runtime.kernel import compile_function
    from tests.cinn.loops import softmax
    y = np.empty((3, 4), np.float32)
    compiler = Compiler(Path(sys.argv[1]))
    compile_function(softmax(), compiler=compiler)([np.zeros((3, 4), np.float32)], [y])
    assert (y == 0.25).all()
    print(compiler.statistics.loaded)
"""


def test_a_process_that_compiles_nothing_loads(filled, pytestconfig):
    """Machine code calls numba's runtime, which nothing else sets up there."""
    command = [sys.executable, "-c", textwrap.dedent(SHARING), str(filled), str(pytestconfig.rootpath)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stdout) == (0, "1\n"), ran.stderr


@pytest.mark.parametrize("count", [2, pytest.param(6, marks=pytest.mark.long)])
def test_processes_share_a_cold_folder(tmp_path, pytestconfig, count):
    command = [sys.executable, "-c", textwrap.dedent(SHARING), str(tmp_path), str(pytestconfig.rootpath)]
    processes = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                 for _ in range(count)]
    for process in processes:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
    assert sorted(p.name.split(".")[1] for p in tmp_path.iterdir()) == ["contiguous", "py"]
    compiler = Compiler(tmp_path)
    softmax_of(compiler)
    assert compiler.statistics.loaded == 1


def test_importing_the_runtime_does_not_import_numba():
    code = ("import sys, minipd.cinn.runtime.build, minipd.cinn.codegen.numba_source; "
            "assert 'numba' not in sys.modules and 'llvmlite' not in sys.modules")
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


# ------------------------------------------------------------------------------------------------- several ranks
def test_ranks_share_the_compiling(tmp_path):
    """Two functions on both ranks: each compiles one, and loads the other."""
    def run(comm):
        compiler = Compiler(tmp_path)
        assert build_versions(versions(compiler, softmax(), rms_norm()), comm) == [None, None]
        return compiler.statistics.compiled, compiler.statistics.loaded, comm.counts.total()
    assert World(2).run(run) == [(1, 1, 2), (1, 1, 2)]
    compiler = Compiler(tmp_path)
    build_versions(versions(compiler, softmax(), rms_norm()))
    assert compiler.statistics.compiled == 0


def test_ranks_may_have_different_functions(tmp_path):
    def run(comm):
        compiler = Compiler(tmp_path)
        build_versions(versions(compiler, *[softmax()][:comm.rank]), comm)
        return compiler.statistics.compiled
    assert World(2).run(run) == [0, 1]


def test_what_cannot_be_built_is_an_error_in_the_list(tmp_path, monkeypatch):
    from minipd.cinn.runtime.compiler import KernelError

    def broken(*args):
        raise RuntimeError("out of registers")
    monkeypatch.setattr("minipd.cinn.runtime.compiler.module_of", broken)
    (error,) = build_versions(versions(Compiler(tmp_path), softmax()))
    assert isinstance(error, KernelError)
    assert str(error) == "no kernel could be built for softmax (softmax): RuntimeError: out of registers"
