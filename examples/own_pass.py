"""Passes in a file of one's own: `minipd passes --load examples/own_pass.py` lists them among others, `minipd bisect
model --passes halves_pass --load examples/own_pass.py` says whether one of them changes the result of a model, and
`python examples/own_pass.py` what they do to a function."""

from minipd.nn.functional import dropout
from minipd.passes import PassManager, function_pass
from minipd.passes.drr import drr
from minipd.passes.show import before_after, brief, program_of


@drr("halves_pass")
class Halves:                           # a rule: the formula before, a condition, the formula after
    """Division of floats by two becomes multiplication by a half, which gives the same numbers."""

    def source(x):
        return x / 2.0

    def constraint(x):
        return x.dtype.name.endswith(("float16", "float32", "float64"))

    def result(x):
        return x * 0.5


@function_pass("drop_dropout_pass", visits="operation")
def drop_dropout(op, *, at_most=0.0):   # a function, called for each operation; its options are those of the pass
    """Dropouts of a probability of at most `at_most` are removed."""
    if rarely := op.name() == "pd_op.dropout" and op.attributes["p"].value <= at_most:
        op.result(0).replace_all_uses_with(op.operand_source(0))
        op.erase()
    return rarely                       # whether it has changed something


if __name__ == "__main__":
    print(before_after("halves_pass", lambda x, y: x / 2.0 + y / 3.0, "f32[2, 3]", "f32[2, 3]"))
    program, manager = program_of(lambda x: dropout(x, 0.1) / 2.0, "f32[2, 3]"), PassManager(debug=True)
    manager.add_pass("drop_dropout_pass", {"at_most": 0.2})
    manager.add_pass("halves_pass")
    print(manager.run(program), "changes leave", brief(program).replace("\n", "; "))
