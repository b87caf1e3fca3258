"""`minipd doctor` (and `make doctor`): what is here, and for what is not, a fix to copy and paste.

Only the standard library is imported: a doctor that falls ill with the patient is of no use.  Each library is examined
in a process of its own, so that one that crashes on import is a line of the report.
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from typing import NamedTuple

__all__: list[str] = []

PYTHON = shlex.quote(sys.executable)
#: Seconds that one examination may take: the first import of numba on a cold disk is slow.
PATIENCE = 60


class Finding(NamedTuple):
    """One line of the report.  `fix` is empty where all is well."""

    name: str
    detail: str
    fix: str = ""
    optional: bool = False

    @property
    def mark(self) -> str:
        """"ok", "off" (not here, and only some features need it) or "MISSING"."""
        if not self.fix:
            return "ok"
        return "off" if self.optional else "MISSING"


def run(command: list[str]) -> tuple[bool, str]:
    """(succeeded, what it printed): standard output, or the last line of the error."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        return False, str(error)
    if done.returncode == 0:
        return True, done.stdout.strip()
    lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
    return False, lines[-1]


def python(code: str) -> tuple[bool, str]:
    """Run Python code in a fresh interpreter that does not see the current folder."""
    return run([sys.executable, "-P", "-c", code])


def examine_python() -> Finding:
    """The interpreter: 3.11 or newer."""
    fix = "" if sys.version_info >= (3, 11) else "install Python 3.11 or newer, then: make setup PYTHON=python3.11"
    return Finding("Python", f"{platform.python_version()} at {sys.executable}", fix)


def examine_package() -> Finding:
    """minipd itself, with everything that it imports."""
    good, said = python("import minipd; print(minipd.__version__, 'at', minipd.__path__[0])")
    return Finding("minipd", said, "" if good else "make setup")


def examine_numpy() -> Finding:
    """numpy, and the BLAS that it multiplies matrices with."""
    good, said = python("import numpy as np\n"
                        "blas = np.show_config(mode='dicts')['Build Dependencies']['blas']\n"
                        "a = np.eye(64, dtype=np.float32); assert (a @ a == a).all()\n"
                        "print(f\"{np.__version__} with {blas['name']} {blas['version']}\")")
    return Finding("numpy", said, "" if good else f"{PYTHON} -m pip install 'numpy>=2.1,<2.6'")


def examine_numba() -> Finding:
    """numba, by compiling a function."""
    good, said = python("import numba, llvmlite\n"
                        "assert numba.njit(lambda x: x + 1)(1) == 2\n"
                        "print(numba.__version__, 'with llvmlite', llvmlite.__version__)")
    return Finding("numba", said, "" if good else f"{PYTHON} -m pip install numba")


def examine_tbb() -> Finding:
    """The threading layer that lets several threads call compiled kernels at once."""
    name = {"win32": "Library/bin/tbb12.dll", "darwin": "lib/libtbb.12.dylib"}.get(sys.platform, "lib/libtbb.so.12")
    library = os.path.join(sys.prefix, *name.split("/"))
    good, said = python(f"import ctypes; ctypes.CDLL({library!r})")
    if good:
        return Finding("TBB", library)
    fix = f"{PYTHON} -m pip install tbb  (x86-64 Linux and Windows; elsewhere OpenMP serves)"
    return Finding("TBB", f"not loaded: {said}", fix, optional=True)


def mpiexec() -> str | None:
    """The launcher that belongs to this environment, else the first on PATH."""
    beside = os.path.dirname(sys.executable)
    return shutil.which("mpiexec", path=beside) or shutil.which("mpiexec")


def examine_mpi() -> Finding:
    """mpi4py and mpiexec, by starting two ranks that add up their numbers."""
    fix = f"{PYTHON} -m pip install 'mpi4py>=4.1' mpich"
    good, said = python("import mpi4py; print(mpi4py.__version__)")
    launcher = mpiexec()
    if not good or launcher is None:
        return Finding("MPI", said if not good else "mpi4py is here, mpiexec is not", fix, optional=True)
    version = said
    code = ("from mpi4py import MPI; total = MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank + 1); "
            "MPI.COMM_WORLD.rank or print(total, MPI.Get_library_version().splitlines()[0])")
    good, said = run([launcher, "-n", "2", sys.executable, "-P", "-m", "mpi4py", "-c", code])
    total, _, library = said.partition(" ")
    if not good or total != "3":
        return Finding("MPI", f"mpi4py {version} with {launcher}: two ranks did not meet: {said}", fix, optional=True)
    return Finding("MPI", f"mpi4py {version}, {' '.join(library.split())}, {launcher}: two ranks met")


def examine_dot() -> Finding:
    """Graphviz's `dot`: pictures do not need it, but who saves a graph as DOT text may want to lay it out."""
    dot = shutil.which("dot")
    fix = "" if dot else "apt-get install graphviz"
    return Finding("dot", dot or "not on PATH: pictures do without; only DOT files need it", fix, optional=True)


def examine_compiler() -> Finding:
    """A C++ compiler, which runs CUDA kernels on the CPU where there is no GPU."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    fix = "" if compiler else "apt-get install g++"
    return Finding("g++", compiler or "not on PATH: CUDA kernels cannot be tried on the CPU", fix, optional=True)


def examine_cuda() -> Finding:
    """A GPU with its driver, and CuPy to use it."""
    driver, gpu = run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"])
    library, said = python("import cupy; assert cupy.cuda.is_available(), 'no device'; print('CuPy', cupy.__version__)")
    if driver and library:
        return Finding("CUDA", f"{gpu.splitlines()[0]}, {said}")
    if driver:
        return Finding("CUDA", f"{gpu.splitlines()[0]}, but {said}", f"{PYTHON} -m pip install -e '.[cuda]'", True)
    return Finding("CUDA", "no GPU or no driver", "nothing to do: minipd computes on the CPU", optional=True)


def examine_cache() -> Finding:
    """The folder for compiled kernels and other things worth keeping, by writing a file into it."""
    environment = os.path.join(os.path.dirname(os.path.abspath(__file__)), "framework", "environment.py")
    good, said = python("import runpy, tempfile\n"
                        f"folder = runpy.run_path({environment!r})['cache_folder']()\n"
                        "folder.mkdir(parents=True, exist_ok=True)\n"
                        "with tempfile.TemporaryFile(dir=folder): print(folder, 'is writable')")
    return Finding("cache", said, "" if good else "export MINIPD_CACHE=/a/folder/you/may/write")


def examine_threads() -> Finding:
    """How many cores there are, and what the environment says about threads."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_THREAD_TIMEOUT", "OPENBLAS_CORETYPE")
    given = [f"{name}={os.environ[name]}" for name in names if name in os.environ]
    return Finding("threads", f"{cores} cores; {', '.join(given) or 'the minipd command sets what it needs'}")


EXAMINATIONS: tuple[Callable[[], Finding], ...] = (
    examine_python, examine_package, examine_numpy, examine_numba, examine_tbb, examine_mpi, examine_dot,
    examine_compiler, examine_cuda, examine_cache, examine_threads,
)


def report(findings: Iterable[Finding]) -> Iterable[str]:
    """The lines to print, one finding at a time.

    >>> print(*report([Finding("dot", "not on PATH", "apt-get install graphviz", optional=True)]), sep="\\n")
    off      dot      not on PATH
                      fix: apt-get install graphviz
    """
    for finding in findings:
        yield f"{finding.mark:8} {finding.name:8} {finding.detail}"
        if finding.fix:
            yield f"{'':17} fix: {finding.fix}"


def main(argv: list[str] | None = None) -> int:
    """Print the report; the exit status is 0 whatever is found."""
    argparse.ArgumentParser(prog="minipd doctor", description=__doc__.partition("\n")[0]).parse_args(argv)
    for line in report(examine() for examine in EXAMINATIONS):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
