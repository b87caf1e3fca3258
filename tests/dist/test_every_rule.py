"""Every rule of the library is run: on the cases of its operator, and on fresh shapes of its family."""

import zlib

import numpy as np
import pytest

from minipd.dist.mesh import parse_mesh
from minipd.dist.placements import Replicate, Shard
from minipd.dist.spmd import RULES, infer
from minipd.dist.spmd.inference import infer_backward
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


@pytest.mark.parametrize("name", FAMILIES)
def test_operands_placed_backwards_need_not_move(name):
    """Called with operands as `infer_backward` places them, an operator moves none, and gives the results it said.
    (All but expand: each dimension that is new may be split, though nobody asks for that forwards.)"""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    for n in range(60):
        row, operands, attrs = FAMILIES[name](rng)
        row, mesh = ROWS[row], MESHES[n % len(MESHES)]
        metas = row.infer_meta(*operands, **attrs)
        wanted = [draw_shards(meta, mesh, rng) for meta in (metas if row.multi else (metas,))]
        back = infer_backward(row, operands, wanted, attrs, mesh)
        forward = infer(row, operands, back.inputs, attrs, mesh)
        context = f"{row.name}{[getattr(x, 'shape', x) for x in operands]} {attrs}, results {wanted} on {mesh.text()}"
        assert forward.inputs == back.inputs, context
        assert forward.outputs == back.outputs or row.name == "expand", context


def draw_shards(meta, mesh, rng):
    choices = [Replicate(), Replicate(), *map(Shard, range(len(meta.shape)))]
    return tuple(choices[rng.integers(len(choices))] for _ in mesh.sizes)
