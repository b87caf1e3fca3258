"""The pass manager: order, watching, checking."""

import tracemalloc

import numpy as np
import pytest

from minipd.framework.meta import Meta
from minipd.ir import Program
from minipd.ir.parser import parse
from minipd.ir.passes import Pass
from minipd.ir.traced import trace
from minipd.ir.verify import VerifyError
from minipd.passes import FunctionPass, PassManager, PatternRewritePass, base, create_pass, function_pass, register_pass
from minipd.passes.drr import drr
from minipd.passes.formula import ops
from minipd.passes.table import MAKERS
from minipd.static.nn import cond

CSE, DCE = "common_subexpression_elimination_pass", "dead_code_elimination_pass"


def program():
    def f(x):
        x.exp()
        return x.tanh() * x.tanh()
    return trace(f, Meta((2,), np.dtype("float32"))).program


def test_passes_in_order():
    manager = PassManager()
    assert manager.empty()
    manager.add_pass(CSE)
    manager.add_pass(DCE, {})
    assert manager.passes() == [CSE, DCE] and not manager.empty()
    manager.clear()
    assert manager.empty() and manager.passes() == []


def test_statistics_are_data_and_text():
    manager, told = PassManager(), []
    manager.add_pass(CSE)
    manager.add_pass(DCE)
    manager.enable_print_statistics(told.append)
    assert manager.run(program()) == 2
    assert [(r.name, r.changes, r.ops_before, r.ops_after) for r in manager.statistics] == [(CSE, 1, 6, 5),
                                                                                           (DCE, 1, 5, 4)]
    assert all(r.seconds >= 0 for r in manager.statistics)
    assert told == [manager.report()] and told[0].startswith(f"{CSE}      1 changes      6 -> 5     ops  ")
    assert all(r.peak_bytes > 0 for r in manager.statistics) and told[0].count(" KiB") == 2


def test_memory_is_measured_where_somebody_asks_and_is_that_of_the_pass():
    class Hungry(base.Pass):
        name = "hungry_pass"

        def run(self, program):
            np.zeros(10_000_000, np.uint8).sum()
            return 0

    manager = PassManager()
    manager.add_pass(Hungry())
    manager.add_pass(DCE)
    manager.run(program())
    assert [r.peak_bytes for r in manager.statistics] == [None, None] and not tracemalloc.is_tracing()
    manager.enable_print_statistics(lambda text: None)
    manager.run(program())
    hungry, modest = (r.peak_bytes for r in manager.statistics)
    assert 10_000_000 <= hungry < 11_000_000 and modest < 1_000_000 and not tracemalloc.is_tracing()
    tracemalloc.start()
    manager.run(program())                      # somebody else's tracing goes on
    assert tracemalloc.is_tracing()
    tracemalloc.stop()


def test_statistics_say_which_rules_were_applied_and_how_often():
    @drr()
    class TanhIsExp:
        def source(x):
            return ops.tanh(x)

        def result(x):
            return ops.exp(x)

    manager = PassManager()
    manager.register_pass("wild_pass", TanhIsExp)
    manager.add_pass(CSE)
    manager.run(program())
    assert [r.rewrites for r in manager.statistics] == [{"TanhIsExp": 2}, {}]
    assert manager.report().splitlines()[0].endswith("ms  TanhIsExp 2")


def test_programs_before_and_after_as_files_text_and_calls(tmp_path, capsys):
    manager, calls = PassManager(), []
    manager.add_pass(DCE)
    manager.enable_ir_printing(tmp_path / "dump")
    manager.enable_ir_printing(lambda *call: calls.append((*call[:3], call[3].num_ops())))
    manager.enable_ir_printing()
    manager.run(program())
    assert calls == [(0, DCE, "before", 6), (0, DCE, "after", 5)]
    assert parse((tmp_path / "dump" / f"00_{DCE}.before.pir").read_text()) == program()
    assert parse((tmp_path / "dump" / f"00_{DCE}.after.pir").read_text()).num_ops() == 5
    out = capsys.readouterr().out
    assert f"===------ IR before {DCE} ------===\n{{\n" in out and out.count("pd_op.exp") == 1


def test_only_what_passes_have_changed_may_be_shown():
    manager, calls = PassManager(opt_level=1), []
    for name in ("silu_fuse_pass", "identity_op_clean_pass", CSE, "identity_op_clean_pass", DCE):
        manager.add_pass(name)
    manager.enable_ir_printing(lambda *call: calls.append((*call[:3], call[3].num_ops())), changed_only=True)
    manager.run(program())
    assert calls == [(1, "identity_op_clean_pass", "before", 6), (2, CSE, "after", 5), (4, DCE, "after", 4)]


def test_debug_names_the_pass_that_breaks_a_program():
    class Careless:
        name = "careless_pass"

        def run(self, program):
            op = program.global_block().back()
            op.move_before(program.global_block().front())
            return 1

    assert isinstance(Careless(), Pass)
    manager = PassManager(debug=True)
    manager.add_pass(Careless())
    with pytest.raises(VerifyError, match="defined after its use") as caught:
        manager.run(program())
    assert caught.value.__notes__ == ["after careless_pass: the pass left a program that is not well formed"]


def test_rules_of_ones_own_make_a_pass():
    @drr()
    class Square:
        def source(x):
            return ops.tanh(x)

        def result(x):
            return ops.abs(x)

    manager = PassManager(debug=True)
    manager.register_pass("my_pass", Square)
    assert manager.passes() == ["my_pass"] and manager.run(program()) == 2


# ------------------------------------------------------------------------------------- levels, dependents
def counted(name, level=1, after=(), applies=True):
    """A pass that notes that it was run, in `runs`."""
    class Counted(base.Pass):
        opt_level, dependents = level, after

        def run(self, program):
            runs.append(self.name)
            return 0

        def can_apply_on(self, program):
            return applies
    Counted.name, runs = name, []
    made = Counted()
    made.runs = runs
    return made


@pytest.mark.parametrize("level, run", [(0, [0]), (1, [0, 1]), (2, [0, 1, 2]), (4, [0, 1, 2, 4])])
def test_passes_of_a_higher_level_are_skipped_and_the_statistics_say_so(level, run):
    """As Paddle's: run where opt_level <= that of the manager."""
    passes = [counted(f"level_{n}_pass", n) for n in (0, 1, 2, 4)]
    manager = PassManager(opt_level=level)
    for each in passes:
        manager.add_pass(each)
    manager.run(program())
    assert [n for n, each in zip((0, 1, 2, 4), passes, strict=True) if each.runs] == run
    for n, found in zip((0, 1, 2, 4), manager.statistics, strict=True):
        assert found.skipped == ("" if n in run else f"of level {n}, the manager is of level {level}")
        assert found.ops_before == found.ops_after == 6
    if level < 4:
        assert f"level_4_pass  skipped: of level 4, the manager is of level {level}" in manager.report()


def test_a_pass_may_refuse_a_program():
    refusing = counted("refusing_pass", applies=False)
    manager = PassManager()
    manager.add_pass(refusing)
    manager.run(program())
    assert refusing.runs == [] and manager.statistics[0].skipped == "it cannot be applied on this program"


def test_what_a_pass_depends_on_stands_before_it():
    late = counted("late_pass", after=(CSE, DCE))
    manager = PassManager()
    manager.add_pass(CSE)
    manager.add_pass(late)
    with pytest.raises(ValueError, match=f"pass late_pass: expected {DCE}, which it depends on, to stand before it, "
                                         "got none; add_pass.*first, or make the manager with add_dependents=True"):
        manager.run(program())
    manager.add_pass(DCE)
    with pytest.raises(ValueError, match="got it after, as pass 3"):
        manager.run(program())
    assert late.runs == []

    low = PassManager(opt_level=0)
    low.add_pass(CSE)
    low.add_pass(counted("basic_pass", level=0, after=(CSE,)))
    with pytest.raises(ValueError, match=f"pass basic_pass: expected {CSE}, which it depends on, to run before it, got "
                                         "a manager of level 0, which skips it; make one of level 1"):
        low.run(program())


def test_dependents_can_be_added_with_what_they_depend_on():
    try:
        register_pass("middle_pass")(type("Middle", (base.Pass,), {"dependents": (CSE,), "run": lambda self, p: 0}))
        manager = PassManager(add_dependents=True)
        manager.add_pass(DCE)
        manager.add_pass(counted("late_pass", after=("middle_pass", DCE)))
        assert manager.passes() == [DCE, CSE, "middle_pass", "late_pass"]
        manager.run(program())
    finally:
        MAKERS.pop("middle_pass", None)


# ------------------------------------------------------------------------------------- kinds of passes
def test_what_a_function_pass_visits():
    def f(x):
        return cond(x.sum() > 0.0, lambda: x.exp(), lambda: cond(x.sum() > 1.0, lambda: x.tanh(), lambda: x))
    found = trace(f, Meta((2,), np.dtype("float32"))).program
    seen = []

    def note(what):
        seen.append(what)
        return len(seen) == 2
    assert FunctionPass("a_pass", note).run(found) == 0 and seen == [found]
    seen.clear()
    assert FunctionPass("a_pass", note, "block").run(found) == 1
    assert len(seen) == 5 and seen[-1] is found.global_block()
    inside = [block.parent_op for block in seen]            # inner ones first
    assert all(inside.index(op) < inside.index(op.get_parent_op()) for op in inside[:-1])
    seen.clear()
    FunctionPass("a_pass", note, "operation").run(found)
    assert seen == list(found.walk())
    with pytest.raises(ValueError, match="pass a_pass: expected visits to be one of program, block, operation, got"):
        FunctionPass("a_pass", note, "ops")
    with pytest.raises(ValueError, match="pass a_pass: expected visits to be one of program, block, operation, got"):
        function_pass("a_pass", visits="blocks")            # where it is written, not where it is first used


def test_a_function_pass_does_not_visit_what_it_has_erased():
    def chain(op):
        if op.name() != "pd_op.exp":
            return 0
        for user in op.result(0).all_used_ops():
            user.erase()
        op.erase()
        return 1
    found = trace(lambda x: (x, x.exp(), x.exp()) and x, Meta((2,), np.dtype("float32"))).program
    assert FunctionPass("a_pass", chain, "operation").run(found) == 2


def test_options_of_a_function_pass_are_its_keywords():
    try:
        @function_pass("limit_pass", opt_level=3, dependents=(DCE,), exact=True)
        def limit(program, *, least, most=7):
            """Says what it is given."""
            return least + most
        made = create_pass("limit_pass", {"least": 1})
        assert (made.opt_level, made.dependents, made.exact, made.name) == (3, (DCE,), True, "limit_pass")
        assert made.attrs == {"least": 1} and create_pass(DCE).attrs == {}
        assert made.run(Program()) == 8 and create_pass("limit_pass", {"least": 1, "most": 2}).run(Program()) == 3
        with pytest.raises(TypeError, match="pass limit_pass: expected a value for the option 'least', got none; give "
                                            "it as add_pass.'limit_pass', .'least': ...}."):
            create_pass("limit_pass")
        with pytest.raises(TypeError, match="pass limit_pass: expected options among least, most, got 'mots'; did you "
                                            "mean most"):
            create_pass("limit_pass", {"least": 1, "mots": 2})
    finally:
        MAKERS.pop("limit_pass", None)


def test_paddles_attributes_are_options_where_a_pass_has_them():
    try:
        @function_pass("scoped_pass")
        def scoped(program, *, param_scope=None):
            return len(param_scope)
        assert create_pass("scoped_pass", {"__param_scope__": {"w": 1}, "__place__": "cpu"}).run(Program()) == 1
        assert create_pass(DCE, {"__param_scope__": {}, "__place__": "cpu"}).name == DCE
        with pytest.raises(TypeError, match=f"pass {DCE}: expected options among .it has none., got 'place'"):
            create_pass(DCE, {"place": "cpu"})
    finally:
        MAKERS.pop("scoped_pass", None)


def test_a_class_with_patterns_has_the_rules_registered_under_its_name_too():
    from minipd.passes.pattern import RULES
    from tests.passes.test_pattern import TwiceIsSum
    try:
        @drr("two_ways_pass")
        class Half:
            def source(x):
                return x + x

            def constraint(x):
                return False

            def result(x):
                return x * 2.0

        @register_pass("two_ways_pass")
        class TwoWays(PatternRewritePass):
            """Two ways."""
            patterns, exact = (TwiceIsSum,), True
        made = create_pass("two_ways_pass")
        assert [rule.name for rule in made.rules] == ["TwiceIsSum", "Half"] and made.exact and made.opt_level == 2
        assert made.run(trace(lambda x: x.scale(2.0), Meta((2,), np.dtype("float32"))).program) == 1
    finally:
        MAKERS.pop("two_ways_pass", None), RULES.pop("two_ways_pass", None)


# ------------------------------------------------------------------------------------- errors that teach
def test_names_are_registered_once_but_a_module_may_be_run_again():
    try:
        first = register_pass("mine_pass")(type("Mine", (base.Pass,), {}))
        second = register_pass("mine_pass")(type("Mine", (base.Pass,), {}))
        assert first is not second and MAKERS["mine_pass"] is second and second.name == "mine_pass"
        other = type("Other", (base.Pass,), {"__module__": "elsewhere"})
        with pytest.raises(ValueError, match="register_pass: expected a new name, got 'mine_pass', which is the pass "
                                             f"of {__name__}; choose another"):
            register_pass("mine_pass")(other)
        with pytest.raises(ValueError, match="expected Named.name to be 'mine_pass', got 'other_pass'; leave it out"):
            register_pass("mine_pass")(type("Named", (base.Pass,), {"name": "other_pass"}))
    finally:
        MAKERS.pop("mine_pass", None)


def test_an_unknown_pass_is_named_with_its_neighbours_or_all_there_are():
    with pytest.raises(KeyError, match=f"pass 'dead_code_pass': expected one of the table, got no such name; did you "
                                       f"mean {DCE}"):
        PassManager().add_pass("dead_code_pass")
    with pytest.raises(KeyError, match=f"got no such name; there are add_norm_fuse_pass, .*{DCE}"):
        PassManager().add_pass("?")
    with pytest.raises(TypeError, match="add_pass: expected the name of a pass, or a pass, got .*; write Pattern"):
        PassManager().add_pass(PatternRewritePass)
    with pytest.raises(TypeError, match="expected the name of a pass, or a pass, got <function"):
        PassManager().add_pass(counted)
    with pytest.raises(TypeError, match="expected options with the name of a pass, got {'a': 1}"):
        PassManager().add_pass(create_pass(DCE), {"a": 1})


def test_what_a_pass_raises_says_in_which_pass():
    def broken(program):
        raise RuntimeError("boom")
    manager = PassManager()
    manager.add_pass(DCE)
    manager.add_pass(FunctionPass("broken_pass", broken))
    with pytest.raises(RuntimeError) as caught:
        manager.run(program())
    assert caught.value.__notes__ == ["in broken_pass, pass 2 of 2"]


def test_a_pass_returns_the_number_of_its_changes():
    class Forgetful(base.Pass):
        name = "forgetful_pass"

        def run(self, program):
            pass
    manager = PassManager()
    manager.add_pass(Forgetful())
    with pytest.raises(TypeError, match="pass forgetful_pass: expected run.program. to return the number of changes, "
                                        "got None; return 0 where nothing is changed"):
        manager.run(program())
    with pytest.raises(TypeError, match="pass a_pass: expected its function to return the number of its changes, or "
                                        "whether there was one, got None; return 0 where nothing is changed"):
        FunctionPass("a_pass", lambda op: None, "operation").run(program())
    assert FunctionPass("a_pass", lambda op: np.bool_(op.name() == "pd_op.tanh"), "operation").run(program()) == 2
    with pytest.raises(NotImplementedError, match="pass empty_pass: expected a method run.program."):
        type("Empty", (base.Pass,), {"name": "empty_pass"})().run(program())


def test_debug_says_whether_the_program_was_broken_before():
    broken = program()
    broken.global_block().back().move_before(broken.global_block().front())
    manager = PassManager(debug=True)
    manager.add_pass(DCE)
    with pytest.raises(VerifyError) as caught:
        manager.run(broken)
    assert caught.value.__notes__ == ["before the first pass: the program was not well formed already"]


def test_programs_in_paddles_form_are_for_conversion_first():
    from minipd.ir.paddle import to_paddle
    with pytest.raises(ValueError, match="expected a program in minipd's form, got one in Paddle's; convert it"):
        PassManager().run(to_paddle(program()))
