# %% [markdown]
# # Chapter 3: Passes
#
# The lesson is `chapters/03_passes/README.md`. Here you watch the passes work, break one on purpose, and write rules
# of your own. All later floors are closed (`MINIPD_FLOOR=3`).

# %%
import numpy as np

import minipd as paddle
from minipd import nn, viz
from minipd.executor import Executor, Scope
from minipd.ir.backward import append_backward
from minipd.ir.traced import trace
from minipd.ir.verify import verify
from minipd.nn import functional as F
from minipd.passes import Listener, PassManager, PatternRewritePass, bisect, create_pass, fuse_forward, pass_names
from minipd.passes.compare import random_state
from minipd.passes.drr import drr
from minipd.passes.formula import ops
from minipd.passes.library.constant_folding import constant_holding
from minipd.passes.matching import Source
from minipd.passes.pattern import RewriteError, RewritePattern, apply_patterns_greedily
from minipd.passes.pipelines import add_passes, inference_passes
from minipd.passes.show import brief, program_of
from minipd.static import InputSpec

# %% [markdown]
# ## Before and after
#
# The wasteful program of the lesson. Find the three wastes in the picture before you run the next cell.


# %%
def f(x):
    half = paddle.full([2], 3.0) * 0.5
    unused = x.tanh()  # noqa: F841
    return x.exp() * half + x.exp()


program = trace(f, InputSpec([2], "float32", "x")).program
program

# %%
manager = PassManager(debug=True)
for name in ("constant_folding_pass", "common_subexpression_elimination_pass", "dead_code_elimination_pass"):
    manager.add_pass(name)
manager.run(program)
for run in manager.statistics:
    print(f"{run.name:40} {run.changes} change, {run.ops_before} -> {run.ops_after} operations")
program

# %% [markdown]
# The same side by side: what is gone is red, what is new green, and what reads something else yellow.

# %%
viz.changes(trace(f, InputSpec([2], "float32", "x")).program,
            ["constant_folding_pass", "common_subexpression_elimination_pass", "dead_code_elimination_pass"])

# %% [markdown]
# All the passes there are:

# %%
pass_names()

# %% [markdown]
# ## How a wrong pass is found
#
# A pass is right if the program means the same before and after. So write that down, once:


# %%
def same(f, change, *arrays):
    """Whether f's program means the same after `change`, on these arrays."""
    specs = [InputSpec(list(a.shape), str(a.dtype), f"x{i}") for i, a in enumerate(arrays)]
    program = trace(f, *specs).program
    feed = {f"x{i}": a for i, a in enumerate(arrays)}
    with np.errstate(all="ignore"):         # infinities and NaN are among the values to compare
        before = Executor(program).run(feed, Scope())
        changes = change(program)
        verify(program)
        after = Executor(program).run(feed, Scope())
    return changes, all(np.array_equal(before[name], after[name], equal_nan=True) for name in before)


# %% [markdown]
# This pass merges operations of equal names and operands, and forgets the attributes. It is right on the first
# program.


# %%
def careless(program):
    seen, gone = {}, 0
    for op in list(program.global_block()):
        if op.row is None or op.num_results() != 1 or op.name().startswith("pd_op.full"):
            continue
        key = op.name(), tuple(id(v) for v in op.operands_source()[:1])
        if key in seen:
            op.replace_all_uses_with(seen[key].results())
            op.erase()
            gone += 1
        else:
            seen[key] = op
    return gone


x = np.array([[1.0, 2.0], [3.0, 4.0]])
print(same(lambda x: x.exp() + x.exp(), careless, x))
print(same(lambda x: x.sum(0) + x.sum(1), careless, x))

# %% [markdown]
# The second program tells: one change, and no longer the same. A test of a pass is only as good as the programs it
# runs. Compare with the pass of the library:

# %%
merge = create_pass("common_subexpression_elimination_pass").run
print(same(lambda x: x.exp() + x.exp(), merge, x))
print(same(lambda x: x.sum(0) + x.sum(1), merge, x))

# %% [markdown]
# ## Constants, to the bit
#
# `constant_holding` looks for the constant that holds exactly an array. Which of these have one?

# %%
for array in (np.array([1.5, 1.5]), np.array([1.5, 2.5]), np.array([-0.0, -0.0]), np.array([0.0, -0.0]),
              np.array([np.nan, np.nan]), np.array([3, 1, 2]), np.array([3, 1, 2], np.int32)):
    found = constant_holding(array)
    print(f"{str(array.tolist()):14} {array.dtype!s:8}", found and (found[0], found[1]["value"]))

# %% [markdown]
# ## A rule of your own
#
# log(e^x) is x. On paper.


# %%
@drr()
class LogExp:
    def source(x):
        return ops.log(ops.exp(x))

    def result(x):
        return x


for numbers in ([0.0], [0.0, 800.0]):
    change = same(lambda x: x.exp().log() * 2.0, lambda p: apply_patterns_greedily(p, [LogExp]), np.array(numbers))
    print(numbers, change)

# %% [markdown]
# e^800 is infinite in float64, so the program gave inf, and now it gives 1600. The rule makes the result *better*,
# and it is still another program. Whether a rule may do that is a decision, and belongs into its docstring. What
# about x y / y = x? Try y = 0.


# %%
@drr()
class Cancelled:
    def source(x, y):
        return x * y / y

    def result(x, y):
        return x


print(same(lambda x, y: x * y / y, lambda p: apply_patterns_greedily(p, [Cancelled]), np.array([3.0]), np.array([0.0])))

# %% [markdown]
# ## Matching, step by step
#
# The source formula is traced into nodes; the plan says in which order they are matched, and from which value each is
# reached.

# %%
source = Source(lambda x, y: ops.silu(x) * y, "swiglu")
for node, via in source.plan:
    print(node.row.name, "is where matching starts" if via is None else "is reached along an operand")

# %% [markdown]
# Multiply commutes, so in `silu(a) * silu(b)` the pattern stands twice. The rule takes the first match that its
# constraint accepts.

# %%
a, b = InputSpec([2], "float32", "a"), InputSpec([2], "float32", "b")
program = trace(lambda a, b: F.silu(a) * F.silu(b), a, b).program
*_, product, _ = program.global_block()
for match in source.matches(product):
    print("silu(x) * y with x =", match.names()["x"].get_defining_op().attributes["name"].value)

# %% [markdown]
# A value in the middle that somebody else reads: the rule must not fire.


# %%
@drr()
class Silu:
    def source(x):
        return x * ops.sigmoid(x)

    def result(x):
        return ops.silu(x)


def shared(x):
    s = F.sigmoid(x)
    return x * s, s + 1.0


for g in (lambda x: x * F.sigmoid(x), shared):
    program = trace(g, InputSpec([2], "float32", "x")).program
    print(apply_patterns_greedily(program, [Silu]), [op.name() for op in program.global_block()][1:])

# %% [markdown]
# Where does a rule match? The picture says, with the names of the rule.

# %%
program = trace(lambda a, b: a * F.sigmoid(a) + b * F.sigmoid(a), a, b).program
viz.matches(program, Silu)

# %% [markdown]
# And where it does not, how near it came. Change `shared` until the rule fires.

# %%
viz.matches(program_of(shared, "f32[2]"), Silu)

# %% [markdown]
# A rule need not be made of formulas. This one removes a transposition of a transposition.


# %%
class TwoTransposes(RewritePattern):
    roots = ("pd_op.transpose",)

    def match_and_rewrite(self, op, rewriter):
        inner = op.operand_source(0).get_defining_op()
        if inner is None or inner.name() != "pd_op.transpose":
            return False
        first, second = (o.attributes["perm"].value for o in (inner, op))
        if [first[i] for i in second] != list(range(len(first))):
            return False
        rewriter.replace_op(op, [inner.operand_source(0)])
        return True


manager = PassManager()
manager.register_pass("two_transposes", TwoTransposes())
manager.add_pass("dead_code_elimination_pass")
spec = InputSpec([2, 3, 4], "float32", "x")
program = trace(lambda x: x.transpose([1, 2, 0]).transpose([2, 0, 1]) + 1.0, spec).program
manager.run(program)
[op.name() for op in program.global_block()]


# %% [markdown]
# ## Listening to the driver
#
# A listener is told of every change. This one writes them down; the driver itself has one, and looks again at what
# it is told.


# %%
class Log(Listener):
    def inserted(self, op):
        print("  +", op.name())

    def replaced(self, old, new):
        print("    users of", old.get_defining_op().name(), "->", new.get_defining_op().name())

    def erased(self, op):
        print("  -", op.name())

    def applied(self, rule, at):
        print(rule, "was that")


program = program_of(lambda x: (x * F.sigmoid(x)).exp() * F.sigmoid(x), "f32[2]")
apply_patterns_greedily(program, [Silu], listeners=[Log()])

# %% [markdown]
# ## Does it end, and where?
#
# Rules that never end are stopped, and named.


# %%
@drr()
class Swapped:
    def source(x, y):
        return x + y

    def result(x, y):
        return y + x


program = trace(lambda x: x + x.exp(), InputSpec([2], "float32", "x")).program
try:
    apply_patterns_greedily(program, [Swapped], max_rewrites=5)
except RewriteError as error:
    print(str(error).partition(" (from")[0])


# %% [markdown]
# Two rules that end, and race. Which one comes first decides what is left.


# %%
@drr()
class Quotient:
    def source(x, y):
        return x / ops.exp(y)

    def result(x, y):
        return x * ops.exp(-y)


@drr()
class QuotientOfPowers:
    def source(x, y):
        return ops.exp(x) / ops.exp(y)

    def result(x, y):
        return ops.exp(x - y)


def end(*rules):
    program = program_of(lambda x, y: x.exp() / y.exp(), "f32[2]", "f32[2]")
    apply_patterns_greedily(program, rules)
    return brief(program)


print(end(Quotient, QuotientOfPowers), end(QuotientOfPowers, Quotient), sep="\n\n")


# %% [markdown]
# Completed: the worse end goes on, and both orders lead to one program.


# %%
@drr()
class ProductOfPowers:
    def source(x, y):
        return ops.exp(x) * ops.exp(y)

    def result(x, y):
        return ops.exp(x + y)


@drr()
class PlusMinus:
    def source(x, y):
        return x + (-y)

    def result(x, y):
        return x - y


rules = [Quotient, QuotientOfPowers, ProductOfPowers, PlusMinus]
print(end(*rules), end(*reversed(rules)), sep="\n\n")

# %% [markdown]
# ## The manager is an instrument
#
# What each pass of inference does to a small network: a convolution, a batch norm, an activation, twice.


# %%
class Block(nn.Layer):
    def __init__(self, channels):
        super().__init__()
        self.conv, self.bn = nn.Conv2D(channels, 8, 3, bias_attr=False, padding=1), nn.BatchNorm2D(8)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


program = program_of(nn.Sequential(Block(3), Block(8)).eval(), "f32[1, 3, 6, 6]")
manager = PassManager(debug=True)
add_passes(manager, inference_passes(), random_state(program))
manager.run(program)
for run in manager.statistics:
    if run.changes:
        print(f"{run.name:40} {run.ops_before:2} -> {run.ops_after:2}  {run.rewrites or ''}")
print(brief(program))

# %% [markdown]
# Now a wrong rule among right ones. `bisect` runs the passes one by one against the original program, and of the one
# that is wrong, halves the number of rewrites until it has the first wrong one.


# %%
@drr()
class Careless:
    """x - (x - y) is y, not x."""

    def source(x, y):
        return x - (x - y)

    def result(x, y):
        return x


program = program_of(lambda x, y: ((x - (x - y)) * 1.0).tanh(), "f32[2]", "f32[2]")
wrong = bisect(program, ["identity_op_clean_pass", PatternRewritePass("careless_pass", [Careless]),
                         "dead_code_elimination_pass"])
print(wrong.name, wrong.rule, *wrong.lines, sep="\n")

# %% [markdown]
# ## Fuse first, differentiate then
#
# The feed-forward part of a Llama layer, as one writes it: a norm, a gated unit, and the sum of it for a loss.


# %%
def layer(x, w, gate, up, down):
    h = x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * w
    g = paddle.matmul(h, gate)
    return paddle.matmul(g * F.sigmoid(g) * paddle.matmul(h, up), down).sum()


shapes = {"x": [32, 64], "w": [64], "gate": [64, 128], "up": [64, 128], "down": [128, 64]}
specs = [InputSpec(s, "float32", n, stop_gradient=False) for n, s in shapes.items()]
traced = trace(layer, *specs)
composed = traced.program.clone()
loss, = fuse_forward(traced.program, traced.output_values)
viz.changes(composed, traced.program)

# %% [markdown]
# `rms_norm` and `swiglu` stand where six and three operations were. What it saves, with the gradient appended: the
# number of operations, and the bytes that the forward part keeps for the gradient beside the inputs.


# %%
def training(fused):
    traced = trace(layer, *specs)
    program, inputs, (value,) = traced.program, set(traced.input_values), traced.output_values
    if fused:
        value, = fuse_forward(program, [value])
    forward = set(program.global_block().ops)
    append_backward(program, [value], traced.input_values)
    kept = {v for op in program.global_block() if op not in forward and op.row is not None
            for i, v in enumerate(op.operands_source()) if i not in op.row.shape_only
            and v.get_defining_op() in forward and v not in inputs}
    return program.num_ops(), sum(int(np.prod(v.shape)) * v.dtype.itemsize for v in kept)


for fused in (False, True):
    print("fused" if fused else "composed", *training(fused))

# %% [markdown]
# And where does a value go? Its use-def chain says. Here: who reads the output of the norm.

# %%
norm = next(op for op in traced.program.walk() if op.name() == "pd_op.rms_norm")
viz.use_def(norm.result(0))

# %% [markdown]
# ## Try
#
# * Write `x * x` instead of `x.square()` in `layer`. Which rule does not fire any more? What becomes of the numbers?
# * Add `with paddle.no_grad():` around the sigmoid. Why must the rule not fire now?
# * The rule for `exp(x) * exp(y)` is right on paper. For which x, y is it another program? (`same` finds out.)
# * Take `PlusMinus` out of the four rules. Do both orders still lead to one program? Which measure falls?
# * Then the exercises: `make exercise-3`.
