"""Where the real Paddle is."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path


def found_python(folder: Path) -> str | None:
    """A Python in which, in `folder`, `import paddle` gives the real one: the one that is named, or else the system's.

    Raises: SystemExit if the one that is named has no Paddle.
    """
    named = os.environ.get("PADDLE_PYTHON")
    for candidate in (named,) if named else ("python3", "python"):
        path = shutil.which(candidate)
        if path and subprocess.run([path, "-c", "import paddle; paddle.base.core"], capture_output=True, cwd=folder,
                                   check=False).returncode == 0:
            return path
    if named:
        raise SystemExit(f"interop: expected PADDLE_PYTHON to be a Python with the real Paddle, got {named}, which "
                         "cannot import it")
    return None
