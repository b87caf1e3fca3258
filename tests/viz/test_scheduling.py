"""The strip of loop nests, one panel for each primitive."""

import re
from dataclasses import replace

import numpy as np

from minipd.cinn.ir.ast import Seq
from minipd.viz.cinn.loops import places
from minipd.viz.cinn.scheduling import Frame, strip
from tests.cinn.groups import group


def lowered():
    return group(lambda x: (x * 2.0).exp().sum(-1), ((8, 16), np.float32)).blocks()


def changed(function, number, **facts):
    """With other facts of the loop that is statement `number` of the body."""
    body = [replace(s, **facts) if i == number else s for i, s in enumerate(function.body.stmts)]
    return replace(function, body=Seq(tuple(body)))


def loops_at(function):
    return [i for i, s in enumerate(function.body.stmts) if hasattr(s, "extent")]


def test_only_what_a_step_has_changed_stands_out():
    before = lowered()
    at = loops_at(before)[0]
    after = changed(before, at, kind="parallel")
    svg = strip([Frame(before), Frame(after, "s.parallel('i')", "Bind")]).svg
    yellow = svg.count('class="focus"')
    assert yellow == svg.count("parallel i_") * 2 == 2          # the loop, and the one inside, which stands elsewhere
    assert ">as lowered<" in svg and ">1  s.parallel(&#x27;i&#x27;)<" in svg and ">Bind<" in svg
    assert svg.index("as lowered") < svg.index("Bind")


def test_a_step_that_changes_nothing_is_all_grey():
    function = lowered()
    assert 'class="focus"' not in strip([Frame(function), Frame(function, "s.annotate('exp', 'k', 1)")]).svg


def test_blocks_are_short_in_panels():
    """A block speaks of its own iter vars; what these are is said where they are not loops."""
    svg = strip([Frame(lowered())]).svg
    assert re.search(r"exp_\d\[vi, vj\] = exp\(", svg) and "axis.bind" not in svg


def test_many_panels_stand_in_rows():
    function = lowered()
    wide, tall = strip([Frame(function)] * 2), strip([Frame(function)] * 12)
    assert tall.width < 1600 and tall.height > 2 * wide.height - 100


def test_places_tell_where_a_line_stands():
    found = list(places(lowered().body))
    assert any(place.endswith("; ") and place.count("; ") == 2 for place in found)
    assert len(set(found)) == len(found)
