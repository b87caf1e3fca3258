"""The table of passes as text: what `minipd passes` prints."""

from __future__ import annotations

import ast
import inspect
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minipd.passes.base import Pass, PatternRewritePass
from minipd.passes.pattern import RULES, RewritePattern
from minipd.passes.table import MAKERS, pass_names, pass_options, require_pass

__all__ = ["PassInfo", "info", "listing", "rules_of"]

PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True)
class PassInfo:
    """What is known about a pass without running it.

    doc: the first line on what it does.  text: all that its file says about it.  file: where it is defined.  rules: the
    names of its rules.  options: as they are written in Python, "max_elements=65536".
    """

    name: str
    opt_level: int
    exact: bool
    dependents: tuple[str, ...]
    doc: str
    text: str
    file: str
    rules: tuple[str, ...]
    options: tuple[str, ...]


def info(name: str) -> PassInfo:
    """What is known about a pass of the table.

    >>> found = info("common_subexpression_elimination_pass")
    >>> found.doc, Path(found.file).name
    ('Of two operations that compute the same, the first serves for both', 'common_subexpression_elimination.py')

    Raises: KeyError for an unknown name.
    """
    require_pass(name)
    facts: Any = MAKERS.get(name, PatternRewritePass)
    rules, file = _rules(name), _file(name)
    text = _text(name, file, rules)
    return PassInfo(
        name, getattr(facts, "opt_level", Pass.opt_level), getattr(facts, "exact", Pass.exact),
        tuple(getattr(facts, "dependents", ())), _first(text), text, file,
        tuple(rule.name for rule in rules), tuple(str(p).replace("'", "") for p in pass_options(name).values()))


def listing(names: list[str] | None = None, long: bool = False) -> str:
    """The passes as text: name, level, whether results stay the same to the bit, what it does; `long` adds the rest.

    >>> print(listing(["common_subexpression_elimination_pass", "silu_fuse_pass"]))  # doctest: +ELLIPSIS
    pass                                   level  exact  what it does
    common_subexpression_elimination_pass  1      ...    Of two operations that compute the same, ...
    silu_fuse_pass                         2      ...
    """
    found = [info(name) for name in (pass_names() if names is None else names)]
    width = max([len(each.name) for each in found], default=4)
    lines = [f"{'pass':<{width}}  level  exact  what it does"]
    for each in found:
        lines.append(f"{each.name:<{width}}  {each.opt_level:<5}  {'yes' if each.exact else '-':<5}  {each.doc}")
        if long:
            lines += [f"    {line}" for line in _more(each)]
    return "\n".join(lines)


def _more(each: PassInfo) -> list[str]:
    parts = {"file": (each.file,), "rules": each.rules, "options": each.options, "after": each.dependents}
    return [f"{key:<8} {', '.join(values)}" for key, values in parts.items() if values]


def _first(text: str) -> str:
    """The first sentence, without what follows a colon if it is long."""
    line = text.partition("\n\n")[0].replace("\n", " ")
    line = line.partition(". ")[0].removesuffix(".")
    return line.partition(": ")[0] if len(line) > 90 else line


# ---------------------------------------------------------------------------------------------- where, and what of
def rules_of(name: str) -> list[RewritePattern]:
    """The rules of a pass of the table.

    >>> rules_of("silu_fuse_pass")
    [<rule Silu: sigmoid, multiply>]

    Raises: KeyError for an unknown name.
    """
    require_pass(name)
    return _rules(name)


def _rules(name: str) -> list[RewritePattern]:
    own = getattr(MAKERS.get(name), "patterns", ())
    return [*(p() if isinstance(p, type) else p for p in own), *RULES.get(name, ())]


def _definition(name: str) -> Any:
    """The class or function of a pass; None for one of rules only."""
    return inspect.unwrap(MAKERS[name]) if name in MAKERS else None


def _file(name: str) -> str:
    """The file, relative to the package's folder for one of ours."""
    found, rules = _definition(name), _rules(name)
    if inspect.isfunction(found):
        file = found.__code__.co_filename
    else:
        own = [f for f in vars(found).values() if inspect.isfunction(f)] if found is not None else []
        file = (own[0].__code__.co_filename if own else rules[0].file if rules else
                str(sys.modules[found.__module__].__file__))
    path = Path(file)
    return str(path.relative_to(PACKAGE.parent)) if path.is_relative_to(PACKAGE) else file


def _text(name: str, file: str, rules: list[RewritePattern]) -> str:
    """What is said about the pass: by the file, if it defines only this one; by the class, function, or rule."""
    path = PACKAGE.parent / file
    siblings = any(_file(other) == file for other in pass_names() if other != name)
    if not siblings and path.is_file():
        said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        if said:
            return said
    found = _definition(name)
    docs = [getattr(found, "__doc__", None), *(rule.__doc__ for rule in rules)]
    return next((inspect.cleandoc(doc) for doc in docs if doc), "")
