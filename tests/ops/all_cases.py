"""The table `CASES`, filled: every `cases_*.py` beside this file is imported."""

import importlib
from pathlib import Path

from tests.ops.case import CASES, DTYPES

__all__ = ["CASES", "DTYPES"]

for _path in sorted(Path(__file__).parent.glob("cases_*.py")):
    importlib.import_module(f"tests.ops.{_path.stem}")
