"""Programs as Paddle's JSON: files written by hand in the real format, round trips, and what damaged files say."""

import json
import random

import numpy as np
import pytest

from minipd.framework.errors import InputError
from minipd.ir.attributes import DoubleAttribute, FloatAttribute, IntArrayAttribute, attribute
from minipd.ir.operation import Operation
from minipd.ir.parser import parse
from minipd.ir.program import Program
from minipd.ir.serialize import program_json, read_program
from minipd.ir.serialize.opaque import OpaqueAttribute, OpaqueTensorType, OpaqueType
from minipd.ir.types import NULL_TYPE, DenseTensorType, VectorType


def tensor(shape, element="f32", *rest):
    return {"#": "0.t_dtensor", "D": [{"#": f"0.t_{element}"}, shape, *(rest or ("NCHW", [], 0))]}


def result(number, type):
    return {"%": number, "TT": type}


def named(**attributes):
    return [{"AT": {"#": code, "D": data}, "N": name} for name, (code, data) in attributes.items()]


def flags(*values):
    return named(stop_gradient=("0.a_array", [{"#": "0.a_bool", "D": v} for v in values]))


def data(number, shape, name="x", stop=True):
    return {"#": "1.data", "A": named(name=("0.a_str", name), shape=("1.a_intarray", shape),
                                      dtype=("1.a_dtype", "float32"), place=("1.a_place", [0, 0, ""])),
            "I": [], "O": [result(number, tensor(shape))], "OA": flags(stop)}


def op(code, operands, results, regions=None, **attributes):
    found = {"#": code, "A": named(**attributes), "I": [{"%": n} for n in operands], "O": results,
             "OA": flags(*[True] * len(results)) if results else []}
    return found if regions is None else {**found, "regions": regions}


def parameter(number, name, shape, trainable=True):
    return {"#": "p", "A": [0, 1, 1, name], "DA": [], "O": result(number, tensor(shape)),
            "OA": [1, int(not trainable), int(trainable)], "QA": []}


def block(ops, args=(), number=0):
    return {"#": f"block_{number}", "args": list(args), "ops": ops}


def region(ops, args=(), number=0):
    return {"#": f"region_{number}", "blocks": [block(ops, args, number)]}


def whole(ops, **head):
    return {"base_code": {"magic": "pir", "trainable": True, "version": 4, **head},
            "program": {"regions": [region(ops)]}}


def compact(document):
    return json.dumps(document, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def linear():
    return whole([parameter(1, "fc.b_0", [3]), parameter(2, "fc.w_0", [4, 3]), data(3, [-1, 4]),
                  op("1.matmul", [3, 2], [result(4, tensor([-1, 3]))], transpose_x=("0.a_bool", False),
                     transpose_y=("0.a_bool", False)),
                  op("1.add", [4, 1], [result(5, tensor([-1, 3]))])])


def loop():
    """i = 0; while i < 3: i, x = i + 1, tanh(x); an if whose branches read from around it."""
    integer, real = tensor([], "i64"), tensor([2])
    number = dict(shape=("1.a_intarray", []), value=("0.a_f64", 3.0), dtype=("1.a_dtype", "int64"),
                  place=("1.a_place", [0, 0, ""]))
    body = [op("1.tanh", [-2], [result(6, real)]),
            op("1.add", [-1, 2], [result(7, integer)]),
            op("1.less_than", [7, 2], [result(8, tensor([], "bool"))]),
            op("2.yield", [8, 7, 6], [])]
    return whole([data(1, [2]), op("1.full", [], [result(2, integer)], **number),
                  op("1.less_than", [2, 2], [result(3, tensor([], "bool"))]),
                  op("1.while", [3, 2, 1], [result(4, integer), result(5, real)], [
                      region(body, [{"#": -1, "TT": integer}, {"#": -2, "TT": real}], 1)]),
                  op("1.if", [3], [result(9, real)], [
                      region([op("2.yield", [5], [])], (), 2), region([op("2.yield", [1], [])], (), 3)])])


def test_a_hand_written_layer_is_read_and_written_to_the_byte():
    text = compact(linear())
    found = read_program(text)
    assert found.trainable and found.program.form == "paddle"
    assert [o.name() for o in found.program.global_block()] == [
        "builtin.parameter", "builtin.parameter", "pd_op.data", "pd_op.matmul", "pd_op.add"]
    weight = found.program.parameters()["fc.w_0"]
    assert (weight.shape, weight.dtype, weight.persistable, weight.stop_gradient) == ((4, 3), np.float32, True, False)
    add = found.program.global_block().back()
    assert add.operand_source(1) is found.program.parameters()["fc.b_0"]
    assert str(add.result(0).type().text(exact=False)) == "tensor<-1x3xf32>"
    assert program_json(found.program) == text


def test_regions_block_arguments_and_their_negative_numbers():
    text = compact(loop())
    program = read_program(text).program
    loop_op = next(o for o in program.walk() if o.name() == "pd_op.while")
    body = loop_op.regions[0].front()
    assert [a.type() for a in body.args()] == [r.type() for r in loop_op.results()]
    assert body.front().operand_source(0) is body.args()[1]
    assert body.back().name() == "cf.yield" and body.back().num_operands() == 3
    assert program_json(program) == text


def test_operands_left_out_and_results_that_nobody_wants():
    text = compact(whole([data(1, [2, 3]), op("1.layer_norm", [1, 0, 0], [
        result(2, tensor([2, 3])), result(3, {"#": "NULL"})], epsilon=("0.a_f32", 9.999999747378752e-06))]))
    program = read_program(text).program
    norm = program.global_block().back()
    assert norm.operand_source(1) is None and norm.operand_source(2) is None
    assert norm.result(1).type() is NULL_TYPE
    assert norm.attributes["epsilon"] == FloatAttribute(1e-5)
    assert program_json(program) == text


def test_vectors_arrays_places_and_element_types():
    elements = ["bool", "i8", "ui8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "c64", "c128"]
    vector = {"#": "0.t_vec", "D": [tensor([1], e) for e in elements]}
    text = compact(whole([op("1.thing", [], [result(1, vector)], a=("0.a_array", [
        {"#": "0.a_i32", "D": -2}, {"#": "0.a_i64", "D": 1 << 40}, {"#": "0.a_array", "D": []}]),
        b=("1.a_place", [2, 1, ""]), c=("1.a_place", [1, 0, ""]), d=("0.a_str", 'ü"\n'),
        e=("1.a_dtype", "bfloat16"), f=("1.a_intarray", [-1, 7]))]))
    made = read_program(text).program.global_block().front()
    assert isinstance(made.result(0).type(), VectorType)
    assert [t.dtype.name for t in made.result(0).type().types] == [
        "bool", "int8", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
        "complex128"]
    assert made.attrs()["a"] == (-2, 1 << 40, ()) and made.attrs()["b"] == "gpu:1" and made.attrs()["c"] == "cpu"
    assert made.attributes["f"] == IntArrayAttribute((-1, 7))
    assert program_json(read_program(text).program) == text


def test_what_minipd_does_not_know_is_kept_as_it_came():
    sparse = {"#": "1.t_sparse_coo_tensor", "D": [{"#": "0.t_f32"}, [4], [], "NCHW"]}
    text = compact(whole([op("my_new.op", [], [
        result(1, sparse), result(2, tensor([2, -1], "f32", "NHWC", [], 0)), result(3, tensor([2], "pstring"))],
        a=("1.a_dtype", "pstring"), b=("1.a_scalar", ["float32", 1.5]), c=("1.a_place", [9, 2, "npu"]))]))
    program = read_program(text).program
    made = program.global_block().front()
    assert not made.info.registered and made.name() == "my_new.op"
    assert [type(r.type()) for r in made.results()] == [OpaqueType, OpaqueTensorType, OpaqueType]
    assert all(isinstance(made.attributes[n], OpaqueAttribute) for n in "abc")
    assert program_json(program) == text
    again = parse(program.to_string("exact"))
    assert again.global_block().front().attributes == made.attributes
    assert [r.type() for r in again.global_block().front().results()] == [r.type() for r in made.results()]


@pytest.mark.parametrize("value,text", [
    (0.1, '"D":0.1'), (1e15, '"D":1e+15'), (1234567890123456.2, '"D":1.2345678901234562e+15'),
    (123456789012345.0, '"D":123456789012345.0'), (1e16, '"D":1e+16'), (5e-324, '"D":5e-324'), (-0.0, '"D":-0.0'),
    (1e-4, '"D":0.0001'), (1e-5, '"D":1e-05'), (float("inf"), '"VD":"INF"'), (float("-inf"), '"VD":"-INF"'),
    (float("nan"), '"VD":"NaN"'), (-1e15, '"D":-1e+15')])
def test_floats_as_paddle_spells_them(value, text):
    program = Program()
    program.form = "paddle"
    program.global_block().append(Operation("pd_op.full", (), {"value": value}))
    assert text in program_json(program)
    again = read_program(program_json(program)).program.global_block().front()
    assert again.attributes["value"] == DoubleAttribute(value)


@pytest.mark.parametrize("value", [complex(0, float("inf")), complex(float("nan"), 1)])
def test_complex_numbers_that_json_cannot_hold_are_refused(value):
    program = Program()
    program.form = "paddle"
    program.global_block().append(Operation("pd_op.full", (), {"value": value}))
    with pytest.raises(InputError, match="expected finite complex numbers"):
        program_json(program)


def test_flags_of_results_are_left_out_of_a_program_that_is_not_to_be_trained():
    program = read_program(compact(linear())).program
    text = program_json(program, trainable=False)
    assert '"OA"' not in text and '"trainable":false' in text
    again = read_program(text)
    assert not again.trainable and program_json(again.program, trainable=False) == text


def test_deeply_nested_regions_cost_no_frames():
    program = Program()
    program.form = "paddle"
    block = program.global_block()
    for _ in range(3000):
        made = block.append(Operation("pd_op.pylayer", num_regions=1))
        block = made.regions[0].add_block()
        block.append(Operation("cf.yield"))
        block = made.regions[0].front()
        block.back().erase()
    block.append(Operation("cf.yield"))
    assert program_json(program).count('"regions"') == 3001


def test_only_programs_in_paddles_form_are_written():
    with pytest.raises(ValueError, match="expected a program in Paddle's form"):
        program_json(Program())
    program = Program()
    program.form = "paddle"
    program.global_block().append(Operation("pd_op.x", (), {"d": attribute("xpu:0", "Place")}))
    with pytest.raises(InputError, match="attribute 'd' of pd_op.x"):
        program_json(program)


# ------------------------------------------------------------------------------------------------- damaged files
def broken(change):
    document = linear()
    change(document, document["program"]["regions"][0]["blocks"][0]["ops"])
    return compact(document)


@pytest.mark.parametrize("text,message", [
    ("", "cut short at line 1, column 1"),
    (compact(linear())[:400], "cut short at line 1"),
    ("[" * 100_000, "nested without end"),
    ('{"base_code": {"magic": NaN}}', "the constant NaN"),
    ("[1]", "expected an object, got a list"),
    (b"\xff\xfe", "no UTF-8"),
    (broken(lambda d, ops: d["base_code"].update(magic="pid")),
     "expected the magic word 'pir', got \"pid\" at base_code.magic"),
    (broken(lambda d, ops: d["base_code"].update(version=3)), "expected version 4 of the format, got version 3"),
    (broken(lambda d, ops: d["base_code"].update(version="4")), "expected a whole number"),
    (broken(lambda d, ops: d.pop("program")), "the entry 'program'"),
    (broken(lambda d, ops: d["program"]["regions"].append(region([]))), "a list of 1 entries"),
    (broken(lambda d, ops: ops[3]["I"][1].update({"%": 9})),
     r"a value that an earlier operation has made, got value 9 at program.regions\[0\].blocks\[0\].ops\[3\].I\[1\].%"),
    (broken(lambda d, ops: ops[3]["I"][1].update({"%": 5})), "an earlier operation has made, got value 5"),
    (broken(lambda d, ops: ops[3]["O"][0].update({"%": 3})), "a number that no other value has, got value 3"),
    (broken(lambda d, ops: ops[3]["O"][0].update({"%": 0})), "0, which means no value"),
    (broken(lambda d, ops: ops[3]["O"][0].update({"%": True})), "a whole number"),
    (broken(lambda d, ops: ops[3].update({"#": "9.matmul"})), "the code of an operation"),
    (broken(lambda d, ops: ops[3]["A"].append(ops[3]["A"][0])), "each attribute once"),
    (broken(lambda d, ops: ops[3]["OA"].clear() or ops[3].update(OA=flags(True, True))), "one entry of stop_gradient"),
    (broken(lambda d, ops: ops[3]["O"][0].update(TT=tensor([-2, 3]))), "a size of at least 0"),
    (broken(lambda d, ops: ops[3]["O"][0].update(TT=tensor([1 << 63, 3]))), "a whole number of 64 bits"),
    (broken(lambda d, ops: ops[0].update(A=[0, 1, 2, "b"])), r"a flag, 0 or 1, got 2 at .*ops\[0\].A\[2\]"),
    (broken(lambda d, ops: ops[0].update(A=[0, 1])), "a list of 4 entries"),
    (broken(lambda d, ops: ops[2]["A"][1].update(AT={"#": "1.a_intarray", "D": [1.5]})), "a whole number of 64 bits"),
    (broken(lambda d, ops: ops[2]["A"][1].update(AT={"#": "0.a_i32", "D": 1 << 31})), "a whole number of 32 bits"),
    (broken(lambda d, ops: ops[2]["A"][1].update(AT={"#": "0.a_f64", "VD": "MAX"})), "one of NaN, INF, -INF"),
])
def test_damaged_files_say_what_is_wrong_and_where(text, message):
    with pytest.raises(InputError, match=message) as error:
        read_program(text, "net.json")
    assert "net.json" in str(error.value)


def test_values_are_seen_only_where_they_are_in_scope():
    document = loop()
    ops = document["program"]["regions"][0]["blocks"][0]["ops"]
    ops[4]["regions"][1]["blocks"][0]["ops"][0]["I"] = [{"%": 6}]        # a value of the loop's body, in the if
    with pytest.raises(InputError, match="values are seen where they are used"):
        read_program(compact(document))


def test_arrays_in_arrays_without_end():
    deep = {"#": "0.a_bool", "D": True}
    for _ in range(200):
        deep = {"#": "0.a_array", "D": [deep]}
    text = compact(whole([op("1.x", [], [], a=(deep["#"], deep["D"]))]))
    with pytest.raises(InputError, match="at most 32 levels"):
        read_program(text)


def mutated(rng, text):
    """The text with a few of its parts changed, dropped or doubled."""
    for _ in range(rng.choice((1, 1, 2, 5))):
        i, n = rng.randrange(len(text)), rng.choice((1, 1, 2, 8, 60))
        piece = rng.choice(("", "", text[i:i + n] * 2, "-1", "[]", "{}", "null", '"', "9" * 30, "1e999", "true", "0",
                            text[(j := rng.randrange(len(text))):j + n]))
        text = text[:i] + piece + text[i + n:]
    return text


def mended(rng, node):
    """The document with one of its values replaced by another kind."""
    keys = list(node) if isinstance(node, dict) else list(range(len(node))) if isinstance(node, list) else []
    if not keys:
        return node
    key = rng.choice(keys)
    if isinstance(node[key], (dict, list)) and node[key] and rng.random() < 0.85:
        node[key] = mended(rng, node[key])
    else:
        node[key] = rng.choice((None, True, -1, 0, 7, 1 << 62, 1 << 70, 1.5, "", "x", [], {}, [[]], {"#": "p"}))
    return node


@pytest.mark.parametrize("seed", range(2))
def test_no_damage_leads_to_anything_but_an_error_that_names_the_file(seed):
    rng, refused = random.Random(seed), 0
    documents = [linear(), loop()]
    for i in range(600):
        chosen = json.loads(compact(rng.choice(documents)))
        text = mutated(rng, compact(chosen)) if i % 2 else compact(mended(rng, chosen))
        try:
            program = read_program(text, "net.json").program
        except InputError as error:
            assert "net.json" in str(error)
            refused += 1
        else:
            assert read_program(program_json(program)).program.num_ops() == program.num_ops()
    assert refused > 300


def test_types_are_read_as_the_same_objects():
    program = read_program(compact(whole([data(1, [2, 3]), op("1.relu", [1], [result(2, tensor([2, 3]))])]))).program
    assert program.global_block().back().result(0).type() == DenseTensorType((2, 3), "float32")
