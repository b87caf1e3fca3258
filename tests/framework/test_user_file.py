"""Files that the user names are run like modules, and take no module's place."""

import sys
from pathlib import Path

import pytest

from minipd.framework.errors import InputError
from minipd.framework.user_file import run_file

TEXT = """
from __future__ import annotations
from dataclasses import dataclass
from typing import ClassVar

@dataclass
class Options:
    seen: ClassVar[int] = 1
    times: int = 2
"""


@pytest.mark.parametrize("name", ["a_file_of_the_users.py", "json.py"])
def test_a_file_may_have_dataclasses_and_any_name(tmp_path, name):
    file, there = tmp_path / name, sys.modules.get(Path(name).stem)
    file.write_text(TEXT)
    module = run_file(file)
    assert module.Options(times=3).times == 3 and module.__file__ == str(file)
    assert sys.modules.get(file.stem) is there
    file.write_text("times = 1 / 0")
    with pytest.raises(InputError, match=f"{name} to run, got ZeroDivisionError: division by zero: mend the file"):
        run_file(file)
    assert sys.modules.get(file.stem) is there
