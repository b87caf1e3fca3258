"""Every rule of the library is run: on the cases of its operator, and on fresh shapes of its family."""

import zlib

import numpy as np
import pytest

from minipd.dist.mesh import parse_mesh
from minipd.dist.spmd import RULES
from minipd.framework.row import ROWS
from tests.dist.every_rule import check_call
from tests.dist.fresh_calls import FAMILIES
from tests.ops.all_cases import CASES

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of NaN and infinity, which some cases are about

MESHES = [parse_mesh(text) for text in ("x=2", "x=3", "x=2,y=2", "x=2,y=3", "x=1,y=2")]
NAMES = sorted(name for name in CASES if name in RULES)


def check_cases(name, times):
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    cases = [c for c in CASES[name] if c.attrs.get("window") is None]
    for n in range(times):
        case = cases[rng.integers(len(cases))]
        check_call(ROWS[name], case.inputs, case.attrs, MESHES[n % len(MESHES)], rng)


@pytest.mark.parametrize("name", NAMES)
def test_a_rule_holds_on_its_operators_cases(name):
    check_cases(name, 25)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_rule_holds_in_many_placements(name):
    check_cases(name, 400)


def check_family(name, times):
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    for n in range(times):
        row, operands, attrs = FAMILIES[name](rng)
        check_call(ROWS[row], operands, attrs, MESHES[n % len(MESHES)], rng, in_parts=True)


@pytest.mark.parametrize("name", FAMILIES)
def test_rules_hold_on_fresh_shapes(name):
    check_family(name, 200)


@pytest.mark.long
@pytest.mark.parametrize("name", FAMILIES)
def test_rules_hold_on_many_fresh_shapes(name):
    check_family(name, 5000)
