"""Dialects: one way to declare operations, types, attributes, traits and interfaces; what is declared can be done."""

import numpy as np
import pytest

import minipd as paddle
from minipd.framework.row import ROWS, Trait
from minipd.ir import DenseTensorType, Program, VectorType
from minipd.ir.attributes import Attribute, attribute
from minipd.ir.builder import Builder
from minipd.ir.context import CONTEXT
from minipd.ir.dialect import Dialect, op_info, register_dialect
from minipd.ir.interfaces import INTERFACES, InferMeta, InferSymbolicShape, Interface, Layout, Vjp, interface
from minipd.ir.parser import parse
from minipd.ir.traits import IrTrait, checked_trait
from minipd.ir.types import TensorType, Type
from minipd.ir.verify import VerifyError, verify

F23, F32, I23 = DenseTensorType((2, 3), "float32"), DenseTensorType((3, 2), "float32"), DenseTensorType((2, 3), "int64")


@pytest.fixture
def toy():
    """A dialect that is gone after the test."""
    yield register_dialect(Dialect("toy"))
    register_dialect(Dialect("toy"), replace=True)
    del CONTEXT.dialects["toy"]


@pytest.fixture
def program():
    return Program()


@pytest.fixture
def build(program):
    return Builder(program.global_block())


@pytest.fixture
def x(build):
    return build.data("x", (2, 3), "float32")


def fails(program, message):
    with pytest.raises(VerifyError, match=message):
        verify(program)


# ----------------------------------------------------------------------------------------------- declarations
def is_pair(type):
    """a vector of two values."""
    return isinstance(type, VectorType) and len(type.types) == 2


def declare(toy):
    @toy.type("gauge")
    class Gauge(Type):
        __slots__ = ("unit", "size", "inner")

    @toy.attribute("mood")
    class Mood(Attribute):
        __slots__ = ()

    @toy.op("measure", IrTrait.ONE_RESULT)
    class Measure:
        """Says what it is."""
        operands = {"x": TensorType, "*more": F23, "pair": is_pair}
        results = {"gauge": Gauge}
        attributes = {"mood": Mood, "count": int, "weight?": float}
        regions = ("how", "why")

        def verify(op):
            if op.attributes["count"].value < 0:
                raise ValueError(f"count: expected at least 0, got {op.attributes['count'].value}")
    return Gauge, Mood, Measure


@pytest.fixture
def declared(toy, build, x):
    gauge, mood, info = declare(toy)
    pair = build.combine([x, x])

    def make(operands=None, result=None, regions=2, **attributes):
        return build.build("toy.measure", [x, x, x, pair] if operands is None else operands,
                           {"mood": mood("calm"), "count": 1, **attributes},
                           [result or gauge("K", 3, F23)], regions)
    return make, gauge, mood, info, pair


def test_what_is_declared_is_known(declared, program):
    make, gauge, _, info, _ = declared
    assert info is op_info("toy.measure") and info.doc == "Says what it is."
    assert info.inputs == ("x", "*more", "pair") and info.outputs == ("gauge",)
    assert info.attrs == ("mood", "count", "weight") and info.required == ("mood", "count")
    assert info.regions == 2 and info.region_names == ("how", "why")
    op = make(weight=2)
    for region in op.regions:
        Builder(region.add_block()).build("cf.yield")
    assert verify(program).clone() == program == parse(program.to_string("exact"))
    assert 'toy.gauge<"K", i64(3), type(tensor<2x3xf32>)>' in program.to_string("exact")
    assert '{count: i64(1), mood: toy.mood("calm"), weight: i64(2)}' in program.to_string("exact")
    assert gauge("K", True, F23) is not gauge("K", 1, F23) is gauge("K", 1, DenseTensorType([2, 3], "float32"))


@pytest.mark.parametrize("change, message", [
    (lambda make, x, pair, mood: make([pair, x, pair]),
     r"operand 0: expected a value of type tensor, got vec\[tensor<2x3xf32>,tensor<2x3xf32>\]"),
    (lambda make, x, pair, mood: make([x, x, pair, pair]), r"operand 2: expected tensor<2x3xf32>, got vec\["),
    (lambda make, x, pair, mood: make([x, x]), r"operand 1: expected a vector of two values, got tensor<2x3xf32>"),
    (lambda make, x, pair, mood: make([x]), r"expected at least 2 operands \(x, \*more, pair\), got 1"),
    (lambda make, x, pair, mood: make(result=F23),
     r"result 0: expected a value of type toy.gauge, got tensor<2x3xf32>"),
    (lambda make, x, pair, mood: make(mood="calm"), r"attribute 'mood': expected one of kind toy.mood, got \"calm\""),
    (lambda make, x, pair, mood: make(count=1.5),
     r"attribute 'count': expected one of kind i64 or i32 or dim, got f64\(1"),
    (lambda make, x, pair, mood: make(count=True), r"attribute 'count': expected one of kind i64 .*, got true"),
    (lambda make, x, pair, mood: make(weight="1"),
     r"attribute 'weight': expected one of kind f64 or f32 .*, got \"1\""),
    (lambda make, x, pair, mood: make(count=None), r"expected attribute 'count', got none"),
    (lambda make, x, pair, mood: make(colour=1),
     r"attribute 'colour': expected one of mood, count, weight, or a common"),
    (lambda make, x, pair, mood: make(regions=1), r"expected 2 regions \(how, why\), got 1"),
])
def test_the_verifier_holds_operations_to_their_declaration(declared, program, x, change, message):
    make, _, mood, _, pair = declared
    op = change(make, x, pair, mood)
    for region in op.regions:
        Builder(region.add_block()).build("cf.yield")
    fails(program, rf"toy.measure \(from .*test_dialect.py:\d+\): {message}")


def test_a_declaration_may_check_what_no_type_says(declared, program):
    op = declared[0](count=-1)
    for region in op.regions:
        Builder(region.add_block()).build("cf.yield")
    fails(program, "toy.measure .*: count: expected at least 0, got -1")


def test_declarations_that_say_nothing_sensible(toy):
    with pytest.raises(TypeError, match="toy.a: expected a declaration of operands, results, .* got 'operand'; a tens"):
        @toy.op("a")
        class A:
            operand = ("x",)
    with pytest.raises(ValueError, match="toy.b: expected traits that agree, got Pure and SideEffect"):
        @toy.op("b", IrTrait.PURE, Trait.SIDE_EFFECT)
        class B:
            pass
    with pytest.raises(TypeError, match="kind of an attribute: expected a Python type that has one, .* got <object"):
        @toy.op("c")
        class C:
            attributes = {"a": object()}
    toy.op("d")(type("D", (), {}))
    with pytest.raises(ValueError, match="toy.d: there is such an operation already"):
        toy.op("d")(type("D", (), {}))
    with pytest.raises(ValueError, match="register_dialect: there is a dialect 'toy' already; replace=True forgets it"):
        register_dialect(Dialect("toy"))


def test_a_dialect_declared_anew_has_forgotten_the_old_one(toy):
    declare(toy)

    @toy.op("double_it")
    class Double:
        def infer_meta(x): return x
        def kernel(xp, x): return x + x
    assert "double_it" in ROWS and Double(paddle.to_tensor([1.5])).tolist() == [3.0]
    again = register_dialect(Dialect("toy"), replace=True)
    assert "double_it" not in ROWS and "toy.gauge" not in CONTEXT.types and "toy.mood" not in CONTEXT.attributes
    with pytest.raises(KeyError, match="dialect 'toy' has no operation 'measure'"):
        op_info("toy.measure")
    declare(again)


def test_names_of_rows_are_taken_once_whatever_the_dialect(toy):
    with pytest.raises(ValueError, match="row 'add' exists already, in minipd.ops"):
        @toy.op("add")
        class Add:
            def infer_meta(x, y): return x


def test_parts_of_types_and_kinds_without_spelling_of_their_own(toy):
    gauge, mood, _ = declare(toy)
    with pytest.raises(TypeError, match=r"Gauge: expected 3 parts \(unit, size, inner\), got 1"):
        gauge("K")
    assert mood((1, 2)).value == (1, 2) and str(mood((1, 2))) == "toy.mood(ints(1, 2))"

    class Shade:
        pass

    @toy.attribute("shade", Shade)
    class ShadeAttribute(Attribute):
        __slots__ = ()
    assert isinstance(attribute(Shade()), ShadeAttribute)
    with pytest.raises(NotImplementedError, match="kind toy.shade: expected methods `literal` and `parse`"):
        str(attribute(Shade()))


# ---------------------------------------------------------------------------------------------- tensor operators
def row(toy):
    @toy.op("squash", Trait.ELEMENTWISE, IrTrait.SAME_OPERANDS_AND_RESULT_TYPE)
    class Squash:
        """x / (1 + |x| * by)"""
        operands = {"x": TensorType}

        def infer_meta(x, *, by: float = 1.0): return x
        def kernel(xp, x, *, by): return x / (1 + by * xp.abs(x))
        def vjp_x(g, x, by): return g / (1 + by * x.abs()) ** 2

        def verify(op):
            if "by" in op.attributes and op.attributes["by"].value < 0:
                raise ValueError("by: expected at least 0")
    return Squash


def test_an_operator_of_ones_own_runs_is_differentiated_traced_and_compiled(toy):
    squash, values = row(toy), np.array([[-3.0, 0.5], [0.0, 7.0]])
    x = paddle.to_tensor(values, stop_gradient=False)
    squash(x, by=2.0).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 1 / (1 + 2 * np.abs(values)) ** 2, rtol=1e-12)
    compiled = paddle.jit.to_static(lambda x: squash(x, by=2.0) + 1)
    y = paddle.to_tensor(values, stop_gradient=False)
    out = compiled(y)
    np.testing.assert_allclose(out.numpy(), values / (1 + 2 * np.abs(values)) + 1, rtol=1e-12)
    out.sum().backward()
    np.testing.assert_allclose(y.grad.numpy(), x.grad.numpy(), rtol=1e-12)


def test_an_operator_of_ones_own_is_written_read_and_verified(toy, program, build, x):
    out, = build.call(row(toy), (x,), {"by": 3.0})
    assert parse(program.to_string("exact")) == verify(program)
    op = out.get_defining_op()
    op.set_attr("by", "3")
    fails(program, r"toy.squash .*: attribute 'by': expected one of kind f64 or f32 or i64 or i32 or dim, got \"3\"")
    op.set_attr("by", -1.0)
    fails(program, "toy.squash .*: by: expected at least 0")
    op.set_attr("by", 1)
    out.set_type(F32)
    fails(program, "toy.squash .*: result 0: expected the type of operand 0, tensor<2x3xf32>, got tensor<3x2xf32>")


def test_its_interfaces(toy, program, build, x):
    op = build.call(row(toy), (x,), {})[0].get_defining_op()
    assert all(map(op.has_interface, ("InferMeta", "InferSymbolicShape", "Kernel", "Vjp", "Layout")))
    assert op.interface("Kernel").entry(np.float64([3.0, -1.0]), by=1.0).tolist() == [0.75, -0.5]
    y = build.call(ROWS["equal"], (x, x), {})[0].get_defining_op()
    assert not y.has_interface("Vjp") and y.has_interface("Kernel")


# -------------------------------------------------------------------------------------------------- interfaces
def test_interfaces_of_operators_and_of_others(program, build, x):
    y, = build.call(ROWS["matmul"], (x, build.data("w", (3, 5), "float32")), {})
    op, data = y.get_defining_op(), x.get_defining_op()
    assert op.interface(Vjp).inputs() == ["x", "y"] and repr(op.interface(Vjp)) == "Vjp(pd_op.matmul)"
    assert op.interface(InferMeta).infer() == [DenseTensorType((2, 5), "float32")]
    assert not op.has_interface(Layout) and op.interface("Vjp").entry is ROWS["matmul"].vjp_rules
    assert not any(map(data.has_interface, INTERFACES))
    with pytest.raises(TypeError, match=r"pd_op.data .*: expected an operation with interface Vjp, got one with no i"):
        data.interface(Vjp)
    with pytest.raises(KeyError, match="interface 'Fly': there is none; there are InferMeta, InferSymbolicShape, Ker"):
        data.has_interface("Fly")


def test_symbolic_shapes_are_inferred_by_the_same_rule(build):
    s = paddle.framework.dim.symbol("S0")
    x = build.data("x", (s, 4), "float32")
    y, = build.call(ROWS["concat"], (x, x), {"axis": 0})
    assert y.get_defining_op().interface(InferSymbolicShape).infer() == [DenseTensorType((2 * s, 4), "float32")]


def test_layouts_pass_through_what_works_on_elements_but_not_through_broadcasting(build, x):
    row_of = build.data("b", (3,), "float32")
    same, wide = (build.call(ROWS["add"], (x, other), {})[0].get_defining_op() for other in (x, row_of))
    assert same.interface(Layout).can_be_modified() and not wide.interface(Layout).can_be_modified()


def test_an_interface_of_ones_own_shows_a_column(toy, build, x):
    @interface
    class Cost(Interface):
        """What a call costs."""
        name, column = "Cost", "cost"

    try:
        @toy.op("buy")
        class Buy:
            operands = ("x",)
            def cost(op): return 3 * op.num_operands()

        @toy.op("sell")
        class Sell:
            def infer_meta(x): return x
            def kernel(xp, x): return x
            def cost(op): return 7
        op = build.build("toy.buy", [x])
        assert op.interface(Cost).entry(op) == 3
        assert build.call(Sell, (x,), {})[0].get_defining_op().interface("Cost").entry(None) == 7
        assert not x.get_defining_op().has_interface("Cost")
        with pytest.raises(ValueError, match="interface 'Cost' exists already, in tests.ir.test_dialect"):
            interface(type("Other", (Interface,), {"name": "Cost", "column": "c"}))
    finally:
        del INTERFACES["Cost"]


# ------------------------------------------------------------------------------------------------------ traits
def test_traits_by_name():
    add, param = op_info("pd_op.add"), op_info("builtin.parameter")
    op = Builder(Program().global_block()).full((), 1.0, "float32").get_defining_op()
    assert op.has_trait("Constant") and op.has_trait(IrTrait.CONSTANT) and op.has_trait("Pure")
    assert not op.has_trait("Commutative") and not op.has_trait(Trait.COMMUTATIVE)
    assert IrTrait.PURE in add.traits and Trait.COMMUTATIVE in add.traits and IrTrait.READS_STATE in param.traits
    assert IrTrait.PURE not in op_info("pd_op.fetch").traits
    assert "one may stand for two" in repr(IrTrait.PURE)


@pytest.mark.parametrize("trait, good, bad, message", [
    (IrTrait.ONE_RESULT, ([F23], [F32]), ([F23], []), "expected one result, got 0"),
    (IrTrait.SAME_OPERANDS_SHAPE, ([F23, I23], [F32]), ([F23, F32], [F23]),
     "operand 1: expected the shape of operand 0, tensor<2x3xf32>, got tensor<3x2xf32>"),
    (IrTrait.SAME_OPERANDS_ELEMENT_TYPE, ([F23, F32], [I23]), ([F23, I23], []),
     "operand 1: expected the dtype of operand 0, tensor<2x3xf32>, got tensor<2x3xi64>"),
    (IrTrait.SAME_TYPE_OPERANDS, ([F23, F23], [I23]), ([F23, F32], []),
     "operand 1: expected the type of operand 0, tensor<2x3xf32>, got tensor<3x2xf32>"),
    (IrTrait.SAME_OPERANDS_AND_RESULT_SHAPE, ([F23], [I23]), ([F23], [F32]),
     "result 0: expected the shape of operand 0, tensor<2x3xf32>, got tensor<3x2xf32>"),
    (IrTrait.SAME_OPERANDS_AND_RESULT_ELEMENT_TYPE, ([F23], [F32]), ([F23], [I23]),
     "result 0: expected the dtype of operand 0, tensor<2x3xf32>, got tensor<2x3xi64>"),
    (IrTrait.SAME_OPERANDS_AND_RESULT_TYPE, ([F23], [F23, F23]), ([F23], [F23, F32]),
     "result 1: expected the type of operand 0, tensor<2x3xf32>, got tensor<3x2xf32>"),
    (IrTrait.SAME_OPERANDS_SHAPE, ([], []), ([VectorType([F23, F32])], []),
     "operand 0: expected the shape of operand 0, tensor<2x3xf32>, got tensor<3x2xf32>"),
    (Trait.COMMUTATIVE, ([F23, F23], []), ([F23], []), "Commutative: expected at least two operands, got 1"),
    (Trait.INPLACE, ([F23], [F23]), ([F23], [I23]),
     "Inplace: result 0: expected the type of operand 0, over which it is written, tensor<2x3xf32>, got tensor<2x3xi6"),
])
def test_traits_are_checked(toy, trait, good, bad, message):
    @toy.op("any", trait)
    class Any:
        operands = ("*operands",)
        results = ("*results",)

    @toy.op("make")
    class Make:
        results = ("*results",)
    for (takes, gives), problem in ((good, None), (bad, message)):
        program = Program()
        build = Builder(program.global_block())
        build.build("toy.any", build.build("toy.make", result_types=takes).results(), {}, gives)
        if problem is None:
            verify(program)
        else:
            fails(program, f"toy.any .*: {problem}")


def test_a_trait_of_tensors_refuses_what_is_none(toy, program, build):
    toy.op("any", IrTrait.SAME_OPERANDS_SHAPE)(type("Any", (), {"operands": ("*operands",)}))
    build.build("toy.any", [build.build("cf.stack_create", (), {}, [op_info("cf.stack_create").types[e] for e in (
        "stack", "inlet", "outlet")]).result(0)])
    fails(program, "toy.any .*: operand 0: expected a tensor, got cf.stack")


def test_isolated_regions_read_nothing_from_around_them(toy, program, build, x):
    toy.op("island", IrTrait.ISOLATED_FROM_ABOVE)(type("Island", (), {"regions": ("body",)}))
    op = build.build("toy.island", num_regions=1)
    inside = Builder(op.regions[0].add_block())
    y, = inside.call(ROWS["tanh"], (inside.full((), 1.0, "float32"),), {})
    inside.build("cf.yield", [y])
    verify(program)
    y.get_defining_op().operand(0).set_source(x)
    y.set_type(x.type())
    fails(program, "toy.island .*: expected regions that read nothing from around them, got result 0 of pd_op.data")


def test_a_trait_of_ones_own(toy, program, build, x):
    @checked_trait("EvenRank")
    def even(op):
        """Every operand has an even number of dimensions."""
        for i, value in enumerate(op.operands_source()):
            if value.ndim % 2:
                raise ValueError(f"operand {i}: expected an even number of dimensions, got {value.type()}")
    toy.op("any", even)(type("Any", (), {"operands": ("x",)}))
    op = build.build("toy.any", [x])
    assert verify(program) and op.has_trait("EvenRank") and op.has_trait(even)
    assert even.doc == "Every operand has an even number of dimensions."
    op.operand(0).set_source(build.data("b", (3,), "float32"))
    op.move_after(program.global_block().back())
    fails(program, "toy.any .*: operand 0: expected an even number of dimensions, got tensor<3xf32>")
