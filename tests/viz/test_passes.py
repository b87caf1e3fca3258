"""Pictures of what rules and passes do: where they match, and programs before and after, side by side."""

import re

import pytest

import minipd as paddle
from minipd import viz
from minipd.framework.errors import InputError
from minipd.nn import functional as F
from minipd.passes import FunctionPass, PatternRewritePass, RewritePattern, create_pass
from minipd.passes.drr import drr, ops
from minipd.passes.explain import places
from minipd.passes.show import brief, program_of
from minipd.static.nn import cond
from minipd.viz.passes.changes import Row, changes_text, rows
from minipd.viz.passes.matches import matches_text
from minipd.viz.style import PIECES


@drr()
class Silu:
    def source(x):
        return x * ops.sigmoid(x)

    def result(x):
        return ops.silu(x)


@drr()
class Scaled:
    def source(x, *, c):
        return ops.exp(x * c).named("e") + 1.0

    def result(x, c):
        return ops.exp(x * c) + 1.0


def shown(program, then):
    return [(r.left_sign, r.left, r.right_sign, r.right) for r in rows(program, then)[0]]


# ------------------------------------------------------------------------------------------------- side by side
def test_what_stays_is_on_one_height_and_what_reads_something_else_is_marked():
    program = program_of(lambda x, y: (x * F.sigmoid(x)).exp() + y.tanh(), "f32[2]", "f32[2]")
    text = brief(program)
    assert shown(program, Silu) == [
        ("-", "a = sigmoid(x)", " ", ""), ("-", "b = multiply(x, a)", "+", "f = silu(x)"),
        ("~", "c = exp(b)", "~", "c = exp(f)"), (" ", "d = tanh(y)", " ", "d = tanh(y)"),
        (" ", "e = add(c, d)", " ", "e = add(c, d)"), (" ", "return e", " ", "return e")]
    assert brief(program) == text                       # the pass works on a copy


def test_an_operation_that_reads_the_same_and_is_another_one_is_new():
    program = program_of(lambda x: x.exp(), "f32[2]")
    assert shown(program, _Renew())[0] == ("-", "a = exp(x)", "+", "b = exp(x)")


class _Renew(RewritePattern):
    """exp once more, in its own place."""

    roots = ("pd_op.exp",)

    def match_and_rewrite(self, op, rewriter):
        if op.attributes.get("renewed") is not None:
            return False
        new, = rewriter.replace_op_with(op, op.row, op.operands_source())
        new.get_defining_op().set_attr("renewed", True)
        return True


def test_an_operation_that_moves_is_on_both_sides():
    def swap(program):
        first, second = (op for op in program.global_block() if op.name() in ("pd_op.exp", "pd_op.tanh"))
        second.move_before(first)
        return 1
    program = program_of(lambda x: (x.exp(), x.tanh()), "f32[2]")
    assert shown(program, FunctionPass("swap_pass", swap)) in ([
        (" ", "", ">", "b = tanh(x)"), (" ", "a = exp(x)", " ", "a = exp(x)"), (">", "b = tanh(x)", " ", ""),
        (" ", "return a, b", " ", "return a, b")], [
        (">", "a = exp(x)", " ", ""), (" ", "b = tanh(x)", " ", "b = tanh(x)"), (" ", "", ">", "a = exp(x)"),
        (" ", "return a, b", " ", "return a, b")])


def test_regions_and_several_passes():
    def f(x):
        return cond(x.sum() > 0.0, lambda: x * F.sigmoid(x), lambda: x.tanh()), x.abs() * 1.0
    found = shown(program_of(f, "f32[2]"), [Silu, "identity_op_clean_pass"])
    assert ("-", "  e = multiply(x, d)", "+", "  i = silu(x)") in found
    assert (" ", "else", " ", "else") in found and (" ", "  f = tanh(x)", " ", "  f = tanh(x)") in found
    assert [row[0] for row in found].count("-") == 3 and [row[2] for row in found].count("+") == 1


def test_two_programs_are_aligned_by_what_they_say():
    one, two = program_of(lambda x: x.exp().tanh(), "f32[2]"), program_of(lambda x: x.exp().abs(), "f32[2]")
    assert rows(one, two) == ([Row("a = exp(x)", " ", "a = exp(x)", " "), Row("b = tanh(a)", "-", "b = abs(a)", "+"),
                               Row("return b", " ", "return b", " ")], two)


def test_the_picture_shows_each_line_in_the_colour_of_its_sign():
    program = program_of(lambda x: (x * F.sigmoid(x)).exp(), "f32[2]")
    picture = viz.changes(program, ["silu_fuse_pass"])
    assert picture.title == "before and after silu_fuse_pass"
    kinds = re.findall(r'<rect class="(\w+)"', picture.svg)
    assert kinds == ["ground", "comm", "comm", "fusion", "op", "output", "fusion", "op"]
    assert "before: 5 operations" in picture.svg and "after: 4 operations" in picture.svg
    assert changes_text(program, "silu_fuse_pass").splitlines()[2] == "- b = multiply(x, a)    | + d = silu(x)"


def test_passes_by_any_name_and_the_name_of_none():
    program = program_of(lambda x: x * F.sigmoid(x), "f32[2]")
    want = changes_text(program, Silu)
    for then in ("silu_fuse_pass", create_pass("silu_fuse_pass"), PatternRewritePass("p", [Silu]), [Silu],
                 ["silu_fuse_pass", "dead_code_elimination_pass"]):
        assert changes_text(program, then) == want
    with pytest.raises(KeyError, match="no_such_pass"):
        viz.changes(program, "no_such_pass")


# ----------------------------------------------------------------------------------------------- matches in place
def boxes(picture):
    """Label of each node -> its colour."""
    found = re.findall(r'(op\d+) \[label="?((?:[^"\\]|\\.)*?)"? color="[^"]*" fillcolor="([^"]*)"\]', picture.source)
    return {label.split("\\n")[0]: (label.split("\\n")[2:], colour) for _, label, colour in found}


def test_what_is_matched_is_coloured_and_values_have_the_names_of_the_rule():
    program = program_of(lambda a: (a * 2.0).exp() + 1.0, "f32[2]")
    picture = viz.matches(program, Scaled)
    assert matches_text(program, Scaled) == "Scaled matches: add, exp, multiply"
    found = boxes(picture)
    assert found["data a"] == (["x of Scaled"], "#dbeafe")
    assert [found[n][1] for n in ("add", "exp", "multiply")] == ["#9ec9f8"] * 3
    assert found["add"][0] == ["Scaled: c=2.0"] and found["exp"][0] == ["Scaled", "e of Scaled"]
    assert found["full value=1.0"] == ([], "#ffffff")


def test_matches_that_share_operations_are_all_named():
    @drr()
    class Product:
        def source(x, y):
            return ops.exp(x) * y

        def result(x, y):
            return ops.exp(x + 0.0) * y
    program = program_of(lambda a, b: a.exp() * b.exp(), "f32[2]", "f32[2]")
    assert len(places(Product, program)) == 2
    assert matches_text(program, Product) == "Product matches: multiply, exp (2 times)"
    assert boxes(viz.matches(program, Product))["multiply"] == (["Product"], "#9ec9f8")
    assert viz.matches(program, Product).svg.count(f'class="{PIECES[1]}"') == 1


def test_a_near_miss_says_where_it_stops_and_why():
    program = program_of(lambda a, b: a * F.sigmoid(b), "f32[2]", "f32[2]")
    picture = viz.matches(program, [Silu])
    assert boxes(picture)["multiply"] == (["Silu"], "#fde68a") and boxes(picture)["sigmoid"][0] == ["here it stops"]
    text = matches_text(program, Silu)
    assert text.startswith("Silu: 1 of 2 operations match. It stops at sigmoid: operand 0: x is ")
    assert "(from" not in text


def test_a_value_in_between_with_another_reader_is_a_near_miss_at_that_reader():
    def f(a):
        s = F.sigmoid(a)
        return a * s, s.tanh()
    text = matches_text(program_of(f, "f32[2]"), Silu)
    assert text.startswith("Silu: 2 of 2 operations match. It stops at tanh: ") and "keep=True" in text


def test_nothing_of_the_rule_is_there():
    program = program_of(lambda a: a.exp(), "f32[2]")
    assert matches_text(program, Silu).startswith("Silu: 0 of 2 operations match: the program has none")
    assert len(boxes(viz.matches(program, Silu))) == 3


def test_rules_of_a_pass_and_patterns_that_cannot_be_drawn():
    program = program_of(lambda a: a.transpose([1, 0]).transpose([1, 0]), "f32[2, 3]")
    assert matches_text(program, "remove_redundant_transpose_pass") == (
        "TransposeOfTranspose matches: transpose, transpose\nTransposeBack matches: transpose, transpose")
    for rules in ("dead_code_elimination_pass", [], [_Renew()]):
        with pytest.raises(InputError, match="expected rules of drr"):
            viz.matches(program, rules)


def test_a_match_in_a_branch():
    program = program_of(lambda a: cond(a.sum() > 0.0, lambda: a * F.sigmoid(a), lambda: a), "f32[2]")
    assert matches_text(program, Silu) == "Silu matches: multiply, sigmoid"
    assert viz.matches(program, Silu).svg.count(f'class="{PIECES[0]}"') == 2


def test_a_value_that_is_no_result_is_marked_where_it_comes_from():
    """The argument of a loop's block."""
    def f(x):
        return paddle.static.nn.while_loop(lambda y: y.sum() < 9.0, lambda y: [y * F.sigmoid(y) + 1.0], [x])[0]
    picture = viz.matches(program_of(f, "f32[2]"), Silu)
    assert re.search(r'label="argument\\n[^"]*x of Silu"', picture.source)


def test_of_a_large_program_the_neighbourhood_is_shown():
    def f(x):
        for i in range(150):
            x = x * F.sigmoid(x) if i == 100 else x.tanh()
        return x
    program = program_of(f, "f32[2]")
    picture = viz.matches(program, Silu)
    names = re.findall(r'^ +\w+ \[label="(\w+)', picture.source, re.M)
    assert sorted(names) == ["multiply", "sigmoid", "tanh", "tanh"] and "x of Silu" in picture.source
    assert "3 of 153 operations are shown" in picture.svg
    part = viz.matches(program, Silu, ops=range(95, 99))
    assert re.findall(r'^ +op\d+ \[label="(\w+)', part.source, re.M) == ["tanh"] * 4
