"""The table of compile stages, and printing after each."""

import pytest

import minipd as paddle
from minipd.ir.dce import remove_dead_ops
from minipd.jit import StaticFunction, register_stage, to_static
from minipd.jit import stages as table


@pytest.fixture
def stages(monkeypatch):
    monkeypatch.setattr(table, "STAGES", {})
    return table.STAGES


def test_stages_run_in_their_order_for_their_backend(stages):
    seen = []

    def stage(name):
        def run(program, options):
            seen.append((name, options.backend))
            return program
        return run
    register_stage("compile", stage("compile"), needs_backend="CINN")
    register_stage("graph_passes", stage("graph_passes"))
    register_stage("forward_fusion", stage("forward_fusion"), "trace")
    with paddle.no_grad():
        to_static(lambda x: x * 2.0)(paddle.ones([2]))
        assert seen == [("forward_fusion", None), ("graph_passes", None)]
        seen.clear()
        to_static(lambda x: x * 2.0, backend="CINN")(paddle.ones([2]))
        assert seen == [("forward_fusion", "CINN"), ("graph_passes", "CINN"), ("compile", "CINN")]
        seen.clear()
        StaticFunction(lambda x: x * 2.0, options=table.Options("CINN", until="decompose"))(paddle.ones([2]))
    assert seen == [("forward_fusion", "CINN"), ("graph_passes", "CINN")]           # up to there, and no farther


def test_what_may_be_registered(stages):
    register_stage("group", lambda program, options: program)
    with pytest.raises(ValueError, match="there is a stage 'group' already"):
        register_stage("group", lambda program, options: program)
    with pytest.raises(ValueError, match="expected a name among forward_fusion, .* got 'magic'"):
        register_stage("magic", lambda program, options: program)


def test_every_stage_is_printed(stages, capsys):
    def clean(program, options):
        remove_dead_ops(program)
        return program
    register_stage("graph_passes", clean)
    paddle.set_flags({"FLAGS_print_ir": 1})
    try:
        with paddle.no_grad():
            to_static(lambda x: x * 2.0)(paddle.ones([2]))
    finally:
        paddle.set_flags({"FLAGS_print_ir": 0})
    text = capsys.readouterr().out
    assert text.count('"pd_op.scale" (') == 4 and "after graph_passes = {" in text
    assert text.count('"multiply(phi_kernel)" (') == 1, "and the kernel that was chosen"


def test_the_compiler_shows_groups_loops_and_source(capsys):
    paddle.set_flags({"FLAGS_print_ir": 1})
    try:
        with paddle.no_grad():
            to_static(lambda x: (x * x).mean(-1).tanh(), backend="CINN")(paddle.ones([3, 5]))
    finally:
        paddle.set_flags({"FLAGS_print_ir": 0})
    text = capsys.readouterr().out
    places = [text.index(shown) for shown in (
        "after forward_fusion = {", "after graph_passes = {", "after decompose = {", '"pd_op.scale"',
        "after group = {", '"cinn_op.group"', "after cluster = {", '"cinn_op.fusion"',
        "after compile = {", '"cinn_runtime.jit_kernel"', "loops of multiply_sum",
        "parallel for (i, 0, x0.shape[0])", "source of multiply_sum",
        "for i in range(x0_dim0 * task // tasks")]
    assert places == sorted(places)


def test_flags(monkeypatch):
    assert paddle.get_flags(["FLAGS_print_ir"]) == {"FLAGS_print_ir": 0}
    with pytest.raises(ValueError, match="expected a flag among .*FLAGS_print_ir.*, got 'FLAGS_x'"):
        paddle.set_flags({"FLAGS_x": 1})
