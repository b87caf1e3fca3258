"""Building a notebook: outputs that are the same on every run, errors that name the cell, staleness that is seen."""

import psutil
import pytest

from tools.course import notebook
from tools.course.errors import CourseError

SOURCE = """\
# %% [markdown]
# # A notebook

# %%
import os
import minipd as paddle
os.environ["MINIPD_FLOOR"], paddle.ones([2])

# %% tags=["raises-exception"]
1 / 0
"""


@pytest.fixture(autouse=True)
def no_kernel_is_left():
    """Whatever a notebook does, its kernel ends with it."""
    def kernels():
        return {p.pid for p in psutil.Process().children(recursive=True) if "ipykernel_launcher" in p.cmdline()}
    before = kernels()
    yield
    assert kernels() == before


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "02_demo.py"
        path.write_text(text)
        return path
    return write


def test_a_notebook_is_built_the_same_every_time(write):
    path = write(SOURCE)
    assert notebook.stale(path) == "02_demo.ipynb is not built"
    assert notebook.build(path) is True
    assert notebook.stale(path) == ""
    first = path.with_suffix(".ipynb").read_text()
    assert notebook.build(path) is False
    assert path.with_suffix(".ipynb").read_text() == first
    assert "('2'," in first and "ZeroDivisionError: division by zero" in first
    assert str(path.parent) not in first

    fresh = notebook.run(path)
    assert notebook.other_outputs(path, fresh) == ""
    fresh.cells[1].outputs[0].data["text/plain"] = "('3', 1)"
    assert notebook.other_outputs(path, fresh).startswith("cell 2 of 02_demo.py now shows\n('3', 1)\nbut the built")
    fresh.cells[1].outputs = []
    assert notebook.other_outputs(path, fresh) == (
        "cell 2 of 02_demo.py now has 0 outputs, in the built notebook 1")

    write(SOURCE.replace("1 / 0", "2 / 0"))
    assert notebook.stale(path) == "02_demo.ipynb is older than 02_demo.py: they differ from cell 3 on"
    write(SOURCE + "\n# %%\n3\n")
    assert notebook.stale(path) == "02_demo.ipynb is older than 02_demo.py: they differ from cell 4 on"


@pytest.mark.parametrize(("cell", "said"), [
    ("1 / 0", r"02_demo.py: expected every cell to run, got an error:(.|\n)*1 / 0(.|\n)*ZeroDivisionError"),
    ("import minipd.dist", "ClosedFloorError: floor 5 is closed in chapter 2"),
    ("object()", r"02_demo.py, cell 1: expected outputs that are the same on every run, got the address 0x"),
    ("while True: pass", r"02_demo.py: expected each cell to take less than 5 seconds, got"),
])
def test_a_cell_that_fails_is_named(write, cell, said):
    with pytest.raises(CourseError, match=said):
        notebook.run(write(f"# %%\n{cell}\n"), timeout=5)


def test_a_notebook_that_is_not_there():
    with pytest.raises(CourseError, match="notebooks/: expected one of .*, got '77'"):
        notebook.sources(["77"])
