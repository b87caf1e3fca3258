"""Low precision as a pass: what becomes low, how few casts that takes, and that the program means nearly the same."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings

import minipd as paddle
from minipd.ir.builder import Builder
from minipd.ir.verify import verify
from minipd.nn import Layer, Linear, Sequential, Softmax, TransformerEncoderLayer
from minipd.passes import create_pass, pass_names
from minipd.passes.compare import difference, outcome, random_feed, random_state
from minipd.passes.show import program_of
from minipd.static.nn import cond, while_loop
from tests.ir.random_programs import programs
from tests.passes.meaning import names, observed, run

NAME = "auto_mixed_precision_pass"
BF16 = np.dtype(ml_dtypes.bfloat16)


def lowered(function, *specs, scoped=False, **options):
    """(the program after the pass, the number of changes, the parameters it has), checked."""
    program = program_of(function, *specs)
    changed, state = program.clone(), random_state(program)
    after = dict(state)
    made = create_pass(NAME, {**options, **({"param_scope": after} if scoped else {})})
    count = made.run(changed)
    verify(changed)
    found = difference(outcome(program, random_feed(program), state), outcome(changed, random_feed(changed), after),
                       made.rtol)
    assert found is None, found
    assert made.run(changed) == 0
    return changed, count, after


def dtypes_of(program, name):
    return [op.result(0).dtype.name for op in program.walk() if op.name() == f"pd_op.{name}"]


def test_white_black_and_others():
    def f(x, w, b):
        y = (x @ w + b) * 2.0                       # white; others follow, the sum not: b is no weight
        return paddle.nn.functional.softmax(y, -1)  # black
    program, count, _ = lowered(f, (3, 4), (4, 2), (2,))
    assert count == 1 and dtypes_of(program, "matmul") == ["bfloat16"] and dtypes_of(program, "add") == ["float32"]
    program, count, _ = lowered(Sequential(Linear(4, 2), Softmax()), (3, 4))
    assert count == 2 and dtypes_of(program, "add") == ["bfloat16"] and dtypes_of(program, "softmax") == ["float32"]


def test_weights_become_parameters_of_low_precision_and_the_others_stay():
    program, _, state = lowered(Sequential(Linear(4, 2), paddle.nn.LayerNorm(2)), (3, 4), scoped=True)
    assert {name: array.dtype for name, array in state.items()} == {
        "0.weight.cast_bfloat16": BF16, "0.bias.cast_bfloat16": BF16, "1.weight": np.float32, "1.bias": np.float32}
    assert names(program).count("cast") == 2        # the input, and what is normalised
    assert set(program.parameters()) == set(state)


def test_state_that_is_written_stays_float32():
    program = program_of(Linear(4, 4), (3, 4))
    w = program.parameters()["weight"]
    Builder(program.global_block()).set_parameter("weight", w)
    scope = random_state(program)
    create_pass(NAME, {"param_scope": scope}).run(program)
    verify(program)
    assert scope["weight"].dtype == np.float32 and "weight" in program.parameters()


def test_a_value_is_cast_once_whoever_reads_it():
    def f(x, w, v):
        return x @ w, x @ v, (x @ w) @ v.transpose([1, 0])
    program, _, _ = lowered(f, (3, 4), (4, 2), (4, 2))
    casts = [op for op in program.walk() if op.name() == "pd_op.cast"]
    assert len(casts) == 4 + 3              # x, w, v, v transposed, and the outputs


def test_fewer_casts_than_auto_cast_call_by_call():
    encoder = TransformerEncoderLayer(8, 2, 16, dropout=0.0)
    encoder.eval()

    class Cast(Layer):
        def __init__(self):
            super().__init__()
            self.encoder = encoder

        def forward(self, x):
            with paddle.amp.auto_cast(dtype="bfloat16"):
                return self.encoder(x)
    by_call = program_of(Cast(), (2, 4, 8))
    create_pass("common_subexpression_elimination_pass").run(by_call)
    program, _, _ = lowered(encoder, (2, 4, 8))
    assert names(program).count("cast") < names(by_call).count("cast")
    scoped, _, _ = lowered(encoder, (2, 4, 8), scoped=True)
    assert names(scoped).count("cast") == 6     # into and out of each product that float32 surrounds


def test_constants_are_written_in_low_precision():
    program, count, _ = lowered(Sequential(Linear(4, 2), paddle.nn.LeakyReLU(0.1)), (3, 4))
    assert count == 5 and dtypes_of(program, "full") == ["bfloat16"] * 2
    program, count, _ = lowered(lambda x, w: (x @ w) * 2.0, (3, 4), (4, 2))
    assert count == 2 and "float32" not in dtypes_of(program, "full")


def test_float16_lists_of_ones_own_and_levels():
    program, _, _ = lowered(lambda x, w: x @ w, (3, 4), (4, 2), dtype="float16")
    assert dtypes_of(program, "matmul") == ["float16"]
    assert lowered(lambda x, w: x @ w, (3, 4), (4, 2), custom_black_list=["matmul"])[1] == 0
    assert lowered(lambda x: x.exp(), (3, 4), custom_white_list=["exp"])[1] == 1
    assert lowered(lambda x: x.tanh(), (3, 4))[1] == 0
    assert lowered(lambda x: x.tanh(), (3, 4), level="O2")[1] == 1
    assert lowered(lambda x, w: x @ w, (3, 4), (4, 2), level="O0")[1] == 0
    with pytest.raises(ValueError, match="level"):
        create_pass(NAME, {"level": "O3"})


def test_what_was_fused_before_is_on_the_lists_too():
    encoder = TransformerEncoderLayer(8, 2, 16, dropout=0.0)
    encoder.eval()
    program = program_of(encoder, (2, 4, 8))
    for name in ("layer_norm_fuse_pass", "fused_flash_attn_pass", "fused_gemm_epilogue_pass"):
        if name in pass_names():
            create_pass(name).run(program)
    create_pass(NAME).run(program)
    verify(program)
    assert set(dtypes_of(program, "fused_gemm_epilogue")) <= {"bfloat16"}
    assert set(dtypes_of(program, "flash_attn")) <= {"bfloat16"}
    assert set(dtypes_of(program, "layer_norm")) <= {"float32"}
    assert dtypes_of(program, "fused_gemm_epilogue")
    both = create_pass(NAME, {"custom_black_list": ["flash_attn", "layer_norm"]}).amp.black
    assert {"matmul", "flash_attn", "standardize", "layer_norm"} <= both and "reduce_sum" not in both


def test_float64_and_integers_are_none_of_its_business():
    assert lowered(lambda x, w: x @ w, "f64[3, 4]", "f64[4, 2]")[1] == 0
    program, count, _ = lowered(lambda x, i, w: (x @ w).gather(i), "f32[3, 4]", "i64[2]", "f32[4, 2]")
    assert count == 2 and dtypes_of(program, "gather") == ["bfloat16"]


def test_lists_and_parts():
    def f(s, x):
        a, b = paddle.split(s(x), 2, -1)
        return paddle.concat([b, a], -1)

    class Halves(Layer):
        def __init__(self):
            super().__init__()
            self.linear = Linear(4, 6)

        def forward(self, x):
            return f(self.linear, x)
    program, _, _ = lowered(Halves(), (3, 4))
    assert dtypes_of(program, "concat") == ["bfloat16"]
    mixed, _, _ = lowered(lambda x, w: paddle.concat([x @ w, x], -1), (3, 4), (4, 2))
    assert dtypes_of(mixed, "concat") == ["float32"]


def test_branches_and_loops_go_on_inside():
    def f(x, w):
        y = x @ w
        z = cond(y.sum() > 0.0, lambda: (y @ w).tanh() + y, lambda: y)
        _, out = while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, (a @ w) * 0.5), [paddle.full([], 0, "int64"), z])
        return out
    program, count, _ = lowered(f, (3, 3), (3, 3))
    assert count == 6 and dtypes_of(program, "matmul") == ["bfloat16"] * 3
    inputs = [op.result(0) for op in program.global_block() if op.name() == "pd_op.data"]
    weights = [op for op in program.walk() if op.name() == "pd_op.cast" and op.operand_source(0) in inputs]
    assert len(weights) == 2 and all(op.parent is program.global_block() for op in weights)


@given(programs().map(observed))
@settings(max_examples=25)
def test_random_programs_stay_well_formed_whatever_is_low(program):
    made = create_pass(NAME, {"level": "O2", "custom_white_list": ["exp", "sum", "square"]})
    made.run(program)
    verify(program)
    assert made.run(program) == 0


@given(programs(symbolic=False).map(observed))
@settings(max_examples=15)
def test_and_run(program):
    want, _ = run(program)
    create_pass(NAME, {"level": "O2", "custom_white_list": ["exp", "sum", "square"]}).run(program)
    got, _ = run(program)
    assert {n: (a.shape, a.dtype) for n, a in want.items()} == {n: (a.shape, a.dtype) for n, a in got.items()}
