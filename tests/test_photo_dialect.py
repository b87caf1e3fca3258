"""examples/photo_dialect.py: a user's dialect, and what the floors above programs make of what it declares."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import minipd as paddle
from minipd.decomposition import DecomposePass
from minipd.dist.mesh import parse_mesh
from minipd.dist.placements import Replicate, Shard
from minipd.dist.spmd import infer
from minipd.dist.spmd.notation import Notation
from minipd.framework.row import ROWS, Trait
from minipd.ir import Program
from minipd.ir.builder import Builder
from minipd.ir.context import CONTEXT
from minipd.ir.dialect import Dialect, register_dialect
from minipd.ir.traced import trace

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "photo_dialect.py"


@pytest.fixture
def photo():
    spec = importlib.util.spec_from_file_location("photo_dialect", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    register_dialect(Dialect("photo"), replace=True)
    del CONTEXT.dialects["photo"]


def test_what_the_example_prints(photo, capsys):
    photo.operator()
    photo.darkroom()
    text = capsys.readouterr().out
    assert "eager:    [0.0625, 0.25, 1.0] gradient: [0.5, 1.0, 2.0]\n" in text
    assert "compiled: [1.0625, 1.25, 2.0]\n" in text
    assert "power: f64(2.0), stop_gradient: [true]} : (tensor<3xf32>) -> tensor<3xf32>\n" in text
    assert "{'InferMeta': True, 'Vjp': True, 'Decomp': True, 'SPMD': False}" in text
    assert '(%0) = "photo.expose" () {} : () -> photo.film<"Ektar", i64(100)>\n' in text
    assert "photo_dialect.py:" in text and "minutes: expected a time above zero, got -1.0\n" in text


def test_the_declaration_is_about_thirty_lines():
    text = EXAMPLE.read_text().split("The dialect\n")[1].split("# ----")[0]
    assert len([line for line in text.splitlines() if line.strip()]) <= 32


def test_passes_find_the_decomposition(photo):
    x = paddle.to_tensor([0.25, 4.0])
    program = trace(lambda image: photo.Gamma(image, power=3.0), x).program
    call = next(op for op in program.walk() if op.name() == "photo.gamma")
    np.testing.assert_allclose(call.interface("Decomp").entry(x, power=3.0).numpy(), [0.25**3, 64.0], rtol=1e-6)
    assert DecomposePass().run(program) == 1
    assert [op.name() for op in program.global_block() if op.row is not None and op.name() != "pd_op.full"] == [
        "pd_op.log", "pd_op.multiply", "pd_op.exp"]


def test_a_declaration_may_say_how_it_is_placed_and_how_it_loops(photo):
    @photo.photo.op("brighten", Trait.ELEMENTWISE)
    class Brighten:
        def infer_meta(image, *, by: float): return image
        def kernel(xp, image, *, by): return image + by
        def spmd(image, *, by): return Notation(("ab",), ("ab",))
        def compute(image, *, by): return image + by
    image = Builder(Program().global_block()).data("image", (4, 6), "float32")
    build = Builder(image.parent_block())
    op = build.call(Brighten, (image,), {"by": 0.5})[0].get_defining_op()
    assert op.has_interface("SPMD")
    placed = infer(ROWS["brighten"], (image,), ([Shard(0)],), {"by": 0.5}, parse_mesh("dp=2"))
    assert placed.outputs == ((Shard(0),),)
    register_dialect(Dialect("photo"), replace=True)
    with pytest.warns(UserWarning, match="brighten: no SPMD rule"):
        placed = infer(Brighten, (image,), ([Shard(0)],), {"by": 0.5}, parse_mesh("dp=2"))
    assert placed.outputs == ((Replicate(),),)
