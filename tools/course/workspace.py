"""Writes the files that a student fills in: each exercise's function with its docstring and without its body."""

from __future__ import annotations

import ast
import io
import textwrap
import tokenize
from pathlib import Path

from tools.course.chapter import Chapter, Exercise
from tools.course.source import ROOT, Found, Function, find

WORKSPACE = ROOT / "workspace"


def file_of(exercise: Exercise, workspace: Path = WORKSPACE) -> Path:
    """The student's file."""
    return workspace / exercise.folder.name / f"{exercise.name}.py"


def write(chapter: Chapter, workspace: Path = WORKSPACE) -> list[tuple[Path, bool]]:
    """Write the chapter's files that are not there yet.  Returns each file, and whether it was written now."""
    written = []
    for exercise in chapter.exercises:
        path = file_of(exercise, workspace)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with path.open("x", encoding="utf-8") as file:      # "x" fails where there is a file
                file.write(stub(chapter, exercise))
            written.append((path, True))
        except FileExistsError:
            written.append((path, False))
    return written


def stub(chapter: Chapter, exercise: Exercise) -> str:
    """The text of a file to fill in."""
    found = find(exercise.target, exercise.name)
    return _file(chapter, exercise, found, _blanked(found, exercise))


def solution(chapter: Chapter, exercise: Exercise) -> str:
    """The same, filled in with what the library has."""
    found = find(exercise.target, exercise.name)
    return _file(chapter, exercise, found, "".join(_lines(found)))


def _file(chapter: Chapter, exercise: Exercise, found: Found, function: str) -> str:
    parts = [_header(chapter, exercise), _imports(found)]
    if own := _own_names(found):
        parts.append(f"from {exercise.target.module} import {', '.join(own)}")
    kind = "".join(f"@{ast.unparse(d)}\n" for d in found.function.decorator_list if d not in found.registering)
    function = kind + textwrap.dedent(function).rstrip()
    if found.cls is not None:
        docstring = f"    {_docstring(found, found.cls)}\n\n" if _docstring(found, found.cls) else ""
        function = f"class {found.cls.name}:\n{docstring}{textwrap.indent(function, '    ')}"
    return "\n".join(part for part in parts if part) + f"\n\n\n{function}\n"


def _header(chapter: Chapter, exercise: Exercise) -> str:
    number = chapter.exercises.index(exercise) + 1
    task = f"{exercise.target.qualname}, below. {exercise.task or 'Its docstring says what it must do.'}"
    rows = [("Write", task), ("Read", exercise.lesson), ("Check", f"make check-{chapter.number} ARGS={exercise.name}")]
    lines = [f"Exercise {number} of chapter {chapter.number}: {exercise.title} (about {exercise.minutes} minutes)", ""]
    for label, text in rows:
        lines += textwrap.wrap(" ".join(text.split()), 100, initial_indent=f"{label:8}", subsequent_indent=" " * 8,
                               break_long_words=False, break_on_hyphens=False)        # a path stays in one piece
    lines += ["", *textwrap.wrap(
        f"While it is checked, what you write takes the place of {exercise.target.qualname} in "
        f"{exercise.target.module}; everything else there stays as it is. Helpers and imports that you add come along.",
        108)]
    return "\n".join(f"# {line}".rstrip() for line in lines) + "\n"


def _imports(found: Found) -> str:
    lines = found.text.splitlines()
    return "\n".join("\n".join(lines[node.lineno - 1:node.end_lineno]) for node in found.module.body
                     if isinstance(node, (ast.Import, ast.ImportFrom)) or _is_type_checking(node))


def _is_type_checking(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def _own_names(found: Found) -> list[str]:
    """What the function uses that its own module defines: helpers that the student may use as well."""
    defined = {node.name for node in found.module.body if isinstance(node, (ast.ClassDef, Function))}
    defined |= {name.id for node in found.module.body if isinstance(node, (ast.Assign, ast.AnnAssign))
                for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}
    used = {node.id for node in ast.walk(found.function) if isinstance(node, ast.Name)}
    return sorted((defined & used) - {getattr(found.statement, "name", "")})


def _blanked(found: Found, exercise: Exercise) -> str:
    """The function's text up to the end of its docstring, and a body that says that it is yet to be written."""
    indent = " " * (found.function.col_offset + 4)
    body = f'raise NotImplementedError("exercise {exercise.name}: {exercise.target.qualname} is not written yet")'
    parts = [_signature("".join(_lines(found))), f"{indent}{_docstring(found, found.function)}", f"{indent}{body}"]
    return "\n".join(part for part in parts if part.strip())


def _lines(found: Found) -> list[str]:
    """The function's, without its decorators."""
    return found.text.splitlines(keepends=True)[found.function.lineno - 1:found.function.end_lineno]


def _docstring(found: Found, node: Function | ast.ClassDef) -> str:
    """The docstring as it is written, "" if there is none."""
    first = node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return ast.get_source_segment(found.text, first) or ""
    return ""


def _signature(text: str) -> str:
    """The text of a function up to the colon that ends its signature; comments behind it may give the answer away."""
    depth = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
            if token.string == ":" and depth == 0:
                lines = text.splitlines(keepends=True)
                return "".join(lines[:token.end[0] - 1]) + lines[token.end[0] - 1][:token.end[1]]
    raise AssertionError("a function has a colon")
