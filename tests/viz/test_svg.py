"""What every picture keeps to, whatever it shows; and that objects show themselves in notebooks."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

import minipd as paddle
from minipd import viz
from minipd.dist.mesh import parse_mesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.reshard.plan import plan
from minipd.framework.errors import InputError
from minipd.framework.meta import Meta
from minipd.ir.traced import trace
from minipd.parallel.pipeline.schedule import schedule
from minipd.viz.style import COLOURS, GROUND, INKS, text_width
from minipd.viz.svg import Sheet

F32 = np.dtype(np.float32)


def norm_program():
    return trace(lambda x: x / ((x * x).mean(-1, keepdim=True) + 1e-5).sqrt(), Meta((4, 8), F32)).program


def pictures():
    mesh = parse_mesh("dp=2,tp=2,pp=2")
    x = paddle.ones([2, 3])
    x.stop_gradient = False
    program = norm_program()
    placements = [Shard(0), Replicate(), Partial()]
    records = [{"rank": 0, "stage": 0, "type": "forward", "micro": 0, "start": 0.0, "end": 0.1}]
    return {
        "tape": viz.tape((x * 2.0).sum()), "program": viz.program(program), "groups": viz.groups(program),
        "use-def": viz.use_def(program.global_block().front().result(0)), "loops": viz.loops(program),
        "mesh": viz.mesh(mesh), "sharding": viz.sharding((5, 3), mesh, placements),
        "reshard": viz.reshard((5, 3), mesh, placements, [Replicate()] * 3),
        "schedule": viz.schedule(schedule("1F1B", 2, 4)), "timeline": viz.timeline(records),
    }


@pytest.mark.parametrize("name", pictures())
def test_every_picture_is_whole_and_refers_to_nothing_outside(name):
    picture = pictures()[name]
    root = ElementTree.fromstring(picture.svg)
    svg = "{http://www.w3.org/2000/svg}"
    assert root.tag == f"{svg}svg" and root.get("role") == "img"
    assert root[0].tag == f"{svg}title" and root[0].text == picture.title
    assert not re.search(r"href|url\(|@import|<script|<image|<foreignObject", picture.svg)
    assert [url for url in re.findall(r"https?://[^\"<]*", picture.svg) if url != "http://www.w3.org/2000/svg"] == []
    assert not any(e.get("id") for e in root.iter()), "ids of several pictures in one page would meet"
    classes = {c for e in root.iter() for c in (e.get("class") or "").split()}
    style = root.find(f"{svg}style").text
    assert all(f".{c}{{" in style or f".{c} " in style or f".{c}." in style or c == "minipd" for c in classes), classes


@pytest.mark.parametrize("name", pictures())
def test_nothing_is_cut_off(name):
    root = ElementTree.fromstring(pictures()[name].svg)
    left, top, width, height = map(float, root.get("viewBox").split())
    svg = "{http://www.w3.org/2000/svg}"

    def check(element, dx, dy):
        moved = re.findall(r"-?[\d.]+", element.get("transform", "")) or [0, 0]
        dx, dy = dx + float(moved[0]), dy + float(moved[1])
        if element.tag == f"{svg}rect" and element.get("class") != "ground":
            x, y, w, h = (float(element.get(k)) for k in ("x", "y", "width", "height"))
            assert left <= x + dx and x + dx + w <= left + width and top <= y + dy and y + dy + h <= top + height
        if element.tag == f"{svg}text":
            kind = (element.get("class") or "").split()
            size = float(element.get("font-size", 12))
            w = text_width(element.text, size, "mono" in kind, "bold" in kind)
            x = dx + float(element.get("x")) - (w / 2 if "mid" in kind else w if "end" in kind else 0)
            assert left <= x and x + w <= left + width, element.text
        for inner in element:
            check(inner, dx, dy)

    check(root, 0, 0)


def test_text_is_text_and_escaped():
    svg = Sheet("a < b & c").text(0, 0, 'say "<hi>" & go').done().svg
    assert "say &quot;&lt;hi&gt;&quot; &amp; go" in svg and "<title>a &lt; b &amp; c</title>" in svg


def luminance(colour):
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


@pytest.mark.parametrize("dark", [0, 1])
def test_words_can_be_read_on_every_colour(dark):
    grounds = {"the ground": GROUND[dark], **{name: four[2 * dark] for name, four in COLOURS.items()}}
    for ink in ("ink", "dim"):
        for name, ground in grounds.items():
            if ink == "dim" and re.fullmatch(r"p\d|forward|backward|optimizer|kernel|focus", name):
                continue                # only plain ink is written there
            one, other = sorted((luminance(INKS[ink][dark]), luminance(ground)))
            assert (other + 0.05) / (one + 0.05) >= 4.5, f"{ink} on {name}"


def test_saving(tmp_path):
    picture = viz.program(norm_program())
    assert picture.save(tmp_path / "p.svg").read_text() == picture.svg
    assert picture.save(tmp_path / "p.dot").read_text().startswith("digraph")
    for path, expected in ((tmp_path / "p.png", "a drawing that ends in .svg or .dot or .gv"),
                           (tmp_path / "no" / "p.svg", "a place to write the drawing to")):
        with pytest.raises(InputError, match=f"expected {expected}"):
            picture.save(path)
    with pytest.raises(InputError, match=r"expected a drawing that ends in .svg, got m.dot"):
        viz.mesh(parse_mesh("dp=2")).save("m.dot")


def test_objects_show_themselves():
    program = norm_program()
    first = program.global_block().front()
    mesh = parse_mesh("tp=1")
    shard = paddle.distributed.shard_tensor(paddle.ones([2]), mesh, [Shard(0)])
    assert program._repr_svg_() == viz.program(program).svg
    assert trace(lambda x: [x := x + 1.0 for _ in range(200)][-1], Meta((2,), F32)).program._repr_svg_() is None
    assert first._repr_svg_() == viz.use_def(first).svg
    assert first.result(0)._repr_svg_() == viz.use_def(first.result(0)).svg
    assert mesh._repr_svg_() == viz.mesh(mesh).svg
    assert shard._repr_svg_() == viz.tensor(shard).svg == shard.payload._repr_svg_()
    assert paddle.ones([2])._repr_svg_() is None
    two = parse_mesh("tp=2")
    assert "A[I_tp, J]" in plan((Partial(),), (Shard(0),), two, 2)._repr_svg_()
    assert schedule("1F1B", 2, 4)._repr_svg_() == viz.schedule(schedule("1F1B", 2, 4)).svg
    from minipd.viz.cinn.groups import grouped, is_group
    group = next(op for op in grouped(program).program.walk() if is_group(op))
    assert "fusion group" in group._repr_svg_()
    from minipd.viz.cinn.loops import loop_nests
    function, = loop_nests(program)
    assert function._repr_svg_() == viz.loops(function).svg


def test_an_unknown_drawer_is_named():
    with pytest.raises(AttributeError, match="has no attribute 'graph_of'; it has tape, program"):
        viz.graph_of
