"""The configuration as a TOML file: read with every key checked, written with every value explained."""

import json
import tomllib
from pathlib import Path
from typing import Any

from minipd.framework.errors import InputError
from minipd.framework.files import reason, write_atomically
from minipd.models.config.values import KEYS, RunConfig, get, with_values


def load(path: str | Path, base: RunConfig | None = None) -> RunConfig:
    """`base` (by default the default values) with the values of a TOML file.

    Raises:
        InputError: the file is missing or no TOML, a key does not exist, or a value has the wrong type.
    """
    try:
        tables = tomllib.loads(Path(path).read_bytes().decode("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(
            "a configuration file in TOML", f"{path} ({reason(error)})", "mend it, or name another file"
        ) from error
    values: dict[str, Any] = {}
    for name, value in tables.items():
        known = any(key.section == name for key in KEYS.values())
        if isinstance(value, dict) and (value or known):  # another empty table stays whole, so that its name is refused
            values.update({f"{name}.{inner}": inner_value for inner, inner_value in value.items()})
        else:
            values[name] = value
    return with_values(base or RunConfig(), values, str(path))


def to_toml(config: RunConfig) -> str:
    """The whole configuration as TOML, every value with the line that explains it.

    >>> print(to_toml(RunConfig())[:99])
    out = "runs"  # folder in which the run gets a folder with the next free number
    seed = 0  # of para
    """
    lines, section = [], ""
    for key in KEYS.values():
        if key.section != section:
            section = key.section
            lines += ["", f"[{section}]"]
        lines.append(f"{key.name} = {_literal(get(config, str(key)))}  # {key.about}")
    return "\n".join(lines) + "\n"


def _literal(value: int | float | bool | str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON's escapes are TOML's too; TOML alone wants the delete character escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)  # the shortest digits that give the same float back


def save(config: RunConfig, path: str | Path) -> None:
    """Write `to_toml(config)`; `load` gives the same configuration back."""
    write_atomically(Path(path), to_toml(config))
