"""The matrix of operators: no hole without a reason, no reason without a hole."""

import pytest

import minipd  # noqa: F401  (wires every floor, so that every column is there)
from minipd import cli
from minipd.framework.row import ROWS, Trait
from minipd.ops import matrix
from minipd.ops.holes import HOLES


def column(name):
    return next(column for column in matrix.COLUMNS if column.name == name)


def test_every_hole_has_its_reason():
    assert matrix.unexplained() == []


def test_every_reason_has_its_hole():
    """A row that gains the column must lose the excuse."""
    stale = [f"{name}.{hole.column}" for hole in HOLES for name in hole.rows if isinstance(name, str)
             if name not in ROWS or column(hole.column).cell(ROWS[name])]
    assert stale == []
    assert all(len(hole.rows) == len(set(hole.rows)) for hole in HOLES)


def test_a_trait_explains_only_rows_without_the_column():
    for hole in HOLES:
        for trait in hole.rows:
            if isinstance(trait, Trait):
                having = [row.name for row in ROWS.values() if trait in row.traits]
                assert having and not all(column(hole.column).cell(ROWS[name]) for name in having)


@pytest.mark.parametrize(("name", "expected"), [
    ("multiply", {"schema": "x, y", "vjp": "x y", "saves": "y x", "traits": "Commutative Elementwise"}),
    ("add", {"schema": "x, y", "vjp": "x y", "saves": "[x y]"}),
    ("rsqrt", {"schema": "x", "vjp": "x", "saves": "out"}),
    ("sum", {"schema": "x; axis, keepdim", "vjp": "x", "saves": "[x]"}),
    ("concat", {"schema": "*xs; axis", "vjp": "joint", "saves": "[*xs]"}),
    ("warpctc_grad", {"vjp": "logits loss_grad", "saves": "all"}),
    ("equal", {"vjp": "", "saves": "", "kernel": matrix.HERE}),
    ("reshape", {"kernel_out": "", "traits": "Exact View"}),
])
def test_cells(name, expected):
    assert {key: column(key).cell(ROWS[name]) for key in expected} == expected


@pytest.mark.parametrize("width", [70, 100, 150, 400])
def test_a_narrow_table_lacks_columns_and_folds_nothing(width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    assert cli.main(["ops"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith(("┃", "│"))]
    assert len(lines) == 1 + len(ROWS)
    assert max(map(len, lines)) <= width
    assert "…" not in "".join(lines)
    assert "saves" in lines[0] and ("schema" in lines[0]) == (width == 400)


def test_the_table_has_a_line_for_each_row(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert cli.main(["ops"]) == 0
    text = capsys.readouterr().out
    for name in ROWS:
        assert f" {name} " in text or f".{name} " in text
    assert "??" not in text
    for hole in HOLES:
        assert hole.reason in text


def test_one_operator_in_words(capsys):
    assert cli.main(["ops", "rsqrt", "equal"]) == 0
    text = capsys.readouterr().out
    assert "pd_op.rsqrt(x)" in text and "saves       out" in text
    assert "vjp         the result is a truth value, an index or a count" in text


def test_an_unknown_operator_is_refused(capsys):
    assert cli.main(["ops", "rsqrrt"]) == 2
    assert capsys.readouterr().err == (
        "minipd: expected the name of an operator, got 'rsqrrt': `minipd ops` lists them\n")


def test_what_is_gathered_on_a_mesh_shows_as_such_and_says_why(capsys):
    matrix.main(["poisson", "fused_dropout_add", "topk"])
    gathered, parts, plain = (block for block in capsys.readouterr().out.split("\npd_op."))
    assert "spmd        whole: how many random words a number takes" in gathered
    assert "spmd        parts\n" in parts and "spmd        yes\n" in plain
