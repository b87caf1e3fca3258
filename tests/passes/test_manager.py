"""The pass manager: order, watching, checking."""

import numpy as np
import pytest

from minipd.framework.meta import Meta
from minipd.ir.parser import parse
from minipd.ir.passes import Pass
from minipd.ir.traced import trace
from minipd.ir.verify import VerifyError
from minipd.passes import PassManager
from minipd.passes.drr import drr
from minipd.passes.formula import ops

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
