"""One kernel folder and one compiler for all tests of a run: what one test has compiled, the next one uses."""

import pytest

from minipd.cinn.runtime.compiler import Compiler


@pytest.fixture(scope="session")
def compiler(tmp_path_factory):
    return Compiler(tmp_path_factory.mktemp("kernels"))
