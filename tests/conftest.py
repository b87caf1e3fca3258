"""What holds for every test: a rank context of its own, hypothesis that repeats itself exactly, no BLAS threads, and
none that needs MPI where there is none.

The thread counts must be set before numpy is imported; pytest reads this file before any test module.
"""

import os

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import pytest  # noqa: E402  (see above)
from hypothesis import settings  # noqa: E402

from minipd.framework.context import RankContext  # noqa: E402
from minipd.framework.rank import current, set_root  # noqa: E402

# derandomize: the same examples on every machine.  deadline: a slow machine is no failure.
# print_blob: a failure prints the line that reproduces it.
settings.register_profile("minipd", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("minipd")


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write the golden texts anew instead of comparing")


def pytest_runtest_setup(item):
    """Tests that start MPI ranks (`@pytest.mark.mpi`) are skipped where there is no MPI."""
    if item.get_closest_marker("mpi"):
        from minipd.dist.launch import find_mpiexec
        pytest.importorskip("mpi4py")
        if find_mpiexec() is None:
            pytest.skip("no mpiexec")


@pytest.fixture(autouse=True)
def own_context():
    """Layers, flags, random state and names that a test leaves behind belong to nobody else."""
    before = current()
    set_root(RankContext())
    yield
    set_root(before)
