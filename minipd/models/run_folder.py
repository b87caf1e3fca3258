"""The folder of a run: a number that no run had before, its configuration, and metrics line by line.

    runs/0001/
      config.toml      the configuration, complete
      metrics.jsonl    one JSON object a line, appended as the run goes
      report.html      the run on one page, drawn from the other files at the end
      ...              what else the run writes: a checkpoint, a loss curve, a sample, records, programs
"""

import json
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from minipd.framework.errors import InputError
from minipd.framework.files import reason, write_atomically

CONFIG = "config.toml"
METRICS = "metrics.jsonl"


class RunFolder:
    """A folder that one process (rank 0) writes. `create` makes a new one; the constructor opens one that is there.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as runs:
    ...     with RunFolder.create(runs) as folder:
    ...         folder.log(step=1, loss=6.5)
    ...     folder.path.name, RunFolder.create(runs).path.name, read_metrics(folder.path)
    ('0001', '0002', [{'step': 1, 'loss': 6.5}])
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._metrics: TextIO | None = None

    @classmethod
    def create(cls, out: str | Path) -> "RunFolder":
        """Make the folder with the next free number in `out`, which is made too if need be.

        Two runs that start at once get two folders: making a folder that exists fails, and the next number is tried.

        Raises:
            InputError: `out` is a file, or cannot be written.
        """
        try:
            Path(out).mkdir(parents=True, exist_ok=True)
            number = max((int(run.name) for run in Path(out).iterdir() if run.name.isdecimal()), default=0)
            while True:
                number += 1
                path = Path(out, f"{number:04}")
                try:
                    path.mkdir()
                    return cls(path)
                except FileExistsError:
                    continue
        except OSError as error:
            raise InputError(
                "a folder to put runs in", f"{out} ({reason(error)})", "set out to a folder that can be written"
            ) from error

    def log(self, **values: Any) -> None:
        """Append one line to metrics.jsonl, and flush it: a run that is killed keeps its lines.

        Args:
            values: what json writes; a NaN or an infinity too, as Python's json writes and reads it.
        """
        if self._metrics is None:
            file = self.path / METRICS
            if file.exists():  # a line cut off by a crash would spoil the next one
                with file.open("r+b") as cut:
                    cut.truncate(cut.read().rfind(b"\n") + 1)
            self._metrics = file.open("a", encoding="utf-8")
        self._metrics.write(json.dumps(values) + "\n")
        self._metrics.flush()

    def write(self, name: str, data: str | bytes) -> Path:
        """Write a file of the folder, whole or not at all; returns its path."""
        write_atomically(self.path / name, data)
        return self.path / name

    def close(self) -> None:
        """Close metrics.jsonl; `log` opens it again."""
        if self._metrics is not None:
            self._metrics.close()
            self._metrics = None

    def __enter__(self) -> "RunFolder":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_metrics(path: str | Path) -> list[dict[str, Any]]:
    """The lines of a run's metrics.jsonl, in order. A last line that a crash has cut off is left out.

    Args:
        path: the run folder.

    Raises:
        InputError: there is no such file, or a line of it is no JSON object.
    """
    file = Path(path, METRICS)
    try:
        lines = file.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("the metrics of a run", f"{file} ({reason(error)})", "name a run folder") from error
    rows = []
    for number, line in enumerate(lines[:-1], 1):  # after the last newline: nothing, or the part of a line
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise InputError("one JSON object a line", f"line {number} of {file}: {line[:60]!r}", "mend the file")
        rows.append(row)
    return rows


def find_config(path: str | Path) -> Path:
    """The config.toml of the run that `path` is, or lies in, such as a checkpoint of it.

    Raises:
        InputError: `path` does not exist, or neither it nor a folder above it, up to three, has a config.toml.
    """
    given = Path(path)
    if not given.exists():
        raise InputError("a run folder or a checkpoint in one", f"{path}, which does not exist", "name another path")
    for folder in [given.resolve(), *given.resolve().parents][:4]:
        if (folder / CONFIG).is_file():
            return folder / CONFIG
    raise InputError(
        f"a run folder (with its {CONFIG}) or a checkpoint in one",
        f"{path}, which has none",
        "name another path, or give the configuration with --config",
    )
