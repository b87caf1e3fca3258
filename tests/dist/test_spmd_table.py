"""The column "spmd" against the table of operators."""

import inspect

import pytest

from minipd.dist.spmd import RULES, spmd
from minipd.framework.row import ROWS, Trait


def test_every_operator_has_a_rule_but_collectives():
    """And what stands around them in a rank's program."""
    assert {name for name, row in ROWS.items() if "spmd" not in row.columns} == {
        name for name, row in ROWS.items() if Trait.COMM in row.traits} - {"stage_sum"} | {
        "dtensor_to_local", "dtensor_from_local"}


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if not rule.placed])
def test_a_rules_signature_is_the_rows_schema(name):
    """Operands by name and order, attributes by name and default: what infer_meta takes, the rule takes."""
    row, parameters = ROWS[name], list(inspect.signature(RULES[name].function).parameters.values())
    assert tuple(p.name for p in parameters if p.kind is not p.KEYWORD_ONLY) == row.inputs
    assert {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY} == row.attrs


def test_a_rule_is_written_once():
    with pytest.raises(ValueError, match="row 'add' has an SPMD rule already, in minipd.dist.spmd.elementwise"):
        spmd("add")(lambda x, y: None)
