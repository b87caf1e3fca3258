"""What holds for every test: hypothesis repeats itself exactly, BLAS does not start threads.

The thread counts must be set before numpy is imported; pytest reads this file before any test module.
"""

import os

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

from hypothesis import settings  # noqa: E402  (see above)

# derandomize: the same examples on every machine.  deadline: a slow machine is no failure.
# print_blob: a failure prints the line that reproduces it.
settings.register_profile("minipd", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("minipd")


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write the golden texts anew instead of comparing")
