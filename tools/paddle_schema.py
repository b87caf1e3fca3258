"""Asks the real Paddle for the signatures of its operators, and writes them as one line each.

    /path/to/python-with-paddle tools/paddle_schema.py minipd/ir/paddle/operators.txt

Three sources, none of them a text written by a person: the names of operands, attributes and results are what an
operation says of itself once it is loaded (from a program file that is made here); the kinds of the attributes, which
operands are vectors and which may be absent are what Paddle's verifier objects to, until it objects no longer; the
element types of arrays and the defaults are in the declarations of the builders, in the headers that are installed with
the package.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TENSOR = {"#": "0.t_dtensor", "D": [{"#": "0.t_f32"}, [2, 3], "NCHW", [], 0]}
VECTOR = {"#": "0.t_vec", "D": [TENSOR]}
#: our kind -> an attribute of it in a program file
SAMPLES: dict[str, Any] = {
    "str": {"#": "0.a_str", "D": "q"}, "bool": {"#": "0.a_bool", "D": False}, "i32": {"#": "0.a_i32", "D": 1},
    "i64": {"#": "0.a_i64", "D": 1}, "f32": {"#": "0.a_f32", "D": 1.0}, "f64": {"#": "0.a_f64", "D": 1.0},
    "array": {"#": "0.a_array", "D": []}, "ints": {"#": "1.a_intarray", "D": [1]},
    "dtype": {"#": "1.a_dtype", "D": "float32"}, "place": {"#": "1.a_place", "D": [0, 0, ""]},
    "scalar": {"#": "1.a_scalar", "D": ["float32", 1.0]},
}
#: what the verifier calls the class -> our kind
CLASSES = {"StrAttribute": "str", "BoolAttribute": "bool", "Int32Attribute": "i32", "Int64Attribute": "i64",
           "FloatAttribute": "f32", "DoubleAttribute": "f64", "ArrayAttribute": "array", "IntArrayAttribute": "ints",
           "DataTypeAttribute": "dtype", "PlaceAttribute": "place", "ScalarAttribute": "scalar"}
#: the C++ type of an argument of a builder -> our kind (of the elements, for a vector)
ARGUMENTS = {"bool": "bool", "int": "i32", "int64_t": "i64", "float": "f32", "double": "f64",
             "const std::string&": "str", "phi::DataType": "dtype", "const phi::Place&": "place",
             "const std::vector<int>&": "array<i32>", "const std::vector<int64_t>&": "array<i64>",
             "const std::vector<float>&": "array<f32>", "const std::vector<double>&": "array<f64>",
             "const std::vector<bool>&": "array<bool>", "const std::vector<std::string>&": "array<str>",
             "std::vector<phi::Scalar>": "array<scalar>", "const phi::Scalar&": "scalar"}
#: operators of other devices and of sparse tensors
LEFT_OUT = ("_xpu", "_sp", "_sp_", "_sr", "_sr_")
BUILDER = re.compile(r"static void Build\(pir::Builder &builder, pir::OperationArgument &argument(.*?)\);", re.S)


# ------------------------------------------------------------------------------------------------------ headers
def declared(headers: Path) -> dict[str, dict[str, tuple[str, str | None]]]:
    """operator -> argument of a builder -> (kind, default or None)."""
    found: dict[str, dict[str, tuple[str, str | None]]] = {}
    for path in sorted(headers.glob("*.h")):
        if "onednn" in path.name or "tensorrt" in path.name:
            continue
        for body in re.split(r"\nclass\s+(?=\w)", path.read_text())[1:]:
            name = re.search(r'name\(\) \{ return "pd_op\.([^"]+)"', body)
            if name is None:
                continue
            arguments = found.setdefault(name.group(1), {})
            for builder in BUILDER.findall(body):
                for kind, argument, default in map(argument_of, split(builder)):
                    if kind is not None and argument not in arguments:
                        arguments[argument] = kind, default
    return found


def split(text: str) -> list[str]:
    """The arguments of a declaration: commas inside of braces, angle brackets and quotes do not count."""
    parts, depth, quoted = [""], 0, False
    for c in text:
        quoted ^= c == '"'
        depth += not quoted and (c in "{<(")
        depth -= not quoted and (c in "}>)")
        if c == "," and not depth and not quoted:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts if p.strip()]


def argument_of(text: str) -> tuple[str | None, str, str | None]:
    text, _, default = text.partition("=")
    kind, _, name = text.strip().rpartition(" ")
    return ARGUMENTS.get(kind.strip()), name, spelled(default.strip()) if default else None


def spelled(default: str) -> str | None:
    """A default of C++ as our line has it."""
    if default.startswith("phi::DataType::"):
        return {"UNDEFINED": "Undefined"}.get(default[15:], default[15:].lower())
    if "Place" in default:
        return "cpu" if "CPU" in default else "undefined:0"
    default = default.replace("std::vector<float>", "").replace("std::vector<int64_t>", "")
    if re.fullmatch(r"[-+0-9.e]+[fL]", default):
        default = default[:-1]
    default = default.replace("{", "[").replace("}", "]").replace(" ", "")
    known = re.fullmatch(r'true|false|\w*"[^"]*"|-?[0-9.]+(e-?[0-9]+)?|\[[-0-9.,]*\]', default)
    return default if known else None               # arithmetic and names of C++: no default that a line could say


# ------------------------------------------------------------------------------------------------ asking Paddle
def load(ops: list[dict]) -> Any:
    import paddle
    program = {"base_code": {"magic": "pir", "trainable": True, "version": 4},
               "program": {"regions": [{"#": "region_0", "blocks": [{"#": "block_0", "args": [], "ops": ops}]}]}}
    path = Path(tempfile.gettempdir()) / f"schema_{os.getpid()}.json"
    path.write_text(json.dumps(program))
    loaded = paddle.static.Program()
    paddle.base.core.deserialize_pir_program(str(path), loaded, 4)
    path.unlink()
    return loaded


def objection(op: str, inputs: list[str], attrs: dict[str, str], outputs: list[str]) -> str:
    """What Paddle's verifier says of such an operation; "" if nothing."""
    import paddle
    data = {"#": "1.data", "A": [{"N": "name", "AT": {"#": "0.a_str", "D": "x"}},
                                 {"N": "shape", "AT": {"#": "1.a_intarray", "D": [2, 3]}},
                                 {"N": "dtype", "AT": SAMPLES["dtype"]}, {"N": "place", "AT": SAMPLES["place"]}],
            "I": [], "O": [{"%": 1, "TT": TENSOR}], "OA": []}
    combine = {"#": "0.combine", "A": [], "I": [{"%": 1}], "O": [{"%": 2, "TT": VECTOR}], "OA": []}
    asked = {"#": f"1.{op}", "A": [{"N": k, "AT": SAMPLES[v]} for k, v in attrs.items()],
             "I": [{"%": {"null": 0, "tensor": 1, "vector": 2}[i]} for i in inputs],
             "O": [{"%": 3 + i, "TT": TENSOR if k == "tensor" else VECTOR} for i, k in enumerate(outputs)], "OA": []}
    program = load([data, combine, asked])
    passes = paddle.base.libpaddle.pir.PassManager(2)
    passes.add_pass("common_subexpression_elimination_pass", {})
    try:
        passes.run(program)
    except (RuntimeError, ValueError, TypeError) as error:
        return str(error)
    return ""


def kind_of(op: str, inputs: list[str], attrs: dict[str, str], outputs: list[str], name: str, said: str) -> str:
    """The kind of the attribute `name` whose class the verifier calls `said`; where that is no class, such as "right",
    the first kind that it does not object to."""
    if said in CLASSES:
        return CLASSES[said]
    return next((k for k in SAMPLES if f"attribute: {name} " not in objection(op, inputs, {**attrs, name: k}, outputs)),
                "array")


def ask(op: str, care: int) -> tuple[list[tuple[str, bool, bool]], list[tuple[str, str]], list[tuple[str, bool]]]:
    """Operands (name, is a vector, may be absent), attributes (name, kind) and results (name, is a vector).

    care: 0 asks everything, 1 does not ask which operands may be absent, 2 asks for names only.
    """
    program = load([{"#": f"1.{op}", "A": [], "I": [], "O": [], "OA": []}])    # Paddle's operation dies with it
    one = program.global_block().ops[0]
    names, attr_names, outs = one.get_input_names(), one.get_attr_names(), one.get_output_names()
    inputs, outputs, attrs = ["tensor"] * len(names), ["tensor"] * len(outs), dict.fromkeys(attr_names, "str")
    for _ in range(len(names) + len(outs) + 2 * len(attrs) + 1 if care < 2 else 0):
        said = objection(op, inputs, attrs, outputs)
        wrong = re.search(r"attribute: (\w+) is not [\w:]*?(\w+)\.", said)
        place = re.search(r"failed for the (\d+)th (input|output)", said)
        kind = kind_of(op, inputs, attrs, outputs, *wrong.groups()) if wrong else None
        if wrong and attrs.get(wrong.group(1)) != kind:
            attrs[wrong.group(1)] = kind
        elif place:
            (inputs if place.group(2) == "input" else outputs)[int(place.group(1))] = "vector"
        else:
            break
    # of gradient operators it objects to nothing: then the declarations have to do
    checked = care < 2 and any(objection(op, [k] * len(names), dict.fromkeys(attrs, wrong), ["vector"] * len(outs))
                               for k, wrong in (("null", "str"), ("tensor", "bool")))
    if not checked:
        attrs = dict.fromkeys(attrs, "declared")
    without = [[*inputs[:i], "null", *inputs[i + 1:]] for i in range(len(names))]
    absent = [checked and care == 0 and "th input" not in objection(op, given, attrs, outputs) for given in without]
    return ([(n, i == "vector", a) for n, i, a in zip(names, inputs, absent, strict=True)],
            list(attrs.items()), [(n, o == "vector") for n, o in zip(outs, outputs, strict=True)])


def line(op: str, arguments: dict[str, tuple[str, str | None]], care: int) -> str:
    """`sum: x, axis=ints[]; dtype:dtype=Undefined, keepdim:bool=false -> out`."""
    inputs, attrs, outputs = ask(op, care)

    def operand(name: str, vector: bool, absent: bool) -> str:
        text = ("*" if vector else "") + name + ("?" if absent else "")
        if name in arguments:                   # an attribute that is an operand
            kind, default = arguments[name]
            kind = "ints" if kind == "array<i64>" else kind
            text = f"{name}:{kind}" + ("" if default is None else f"={default}")
        return text

    def attr(name: str, kind: str) -> str:
        declared_kind, default = arguments.get(name, (kind, None))
        if kind == "declared":
            kind = declared_kind
        elif kind == "str" and declared_kind in ("f32", "f64", "scalar"):       # it takes any number, and text
            kind = "scalar"
        kind = declared_kind if kind == "array" else kind
        default = "undefined:0" if (kind, default) == ("place", "[]") else default
        return f"{name}:{kind}" + ("" if default is None else f"={default}")

    return (f"{op}: {', '.join(operand(*i) for i in inputs)}; {', '.join(attr(*a) for a in attrs)} -> "
            + ", ".join(("*" if v else "") + n for n, v in outputs))


def answer() -> None:
    """Read lines `operator care` from standard input, and answer each with its line."""
    import paddle
    paddle.enable_static()
    known = declared(headers_of(paddle))
    for asked in sys.stdin:
        op, care = asked.split()
        try:
            print("=" + line(op, known[op], int(care)), flush=True)
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            print(f"!{op}: {str(error).splitlines()[0]}", flush=True)


def headers_of(paddle: Any) -> Path:
    return Path(paddle.__file__).parent / "include/paddle/fluid/pir/dialect/operator/ir"


class Worker:
    """A process that asks Paddle.  Some questions take it down, so it is started again, and asked with more care."""

    process: subprocess.Popen | None = None

    def ask(self, op: str) -> str:
        for care in range(3):
            if self.process is None:
                self.process = subprocess.Popen([sys.executable, __file__, "--answer"], stdin=subprocess.PIPE,
                                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            assert self.process.stdin is not None and self.process.stdout is not None
            self.process.stdin.write(f"{op} {care}\n")
            self.process.stdin.flush()
            for said in self.process.stdout:
                if said[0] in "=!":
                    return said
            self.process = None
        return f"!{op}: takes Paddle down"


def main() -> None:
    if sys.argv[1:] == ["--answer"]:
        return answer()
    import paddle
    target = Path(sys.argv[1])
    names = sys.argv[2:] or [op for op in sorted(declared(headers_of(paddle))) if not op.endswith(LEFT_OUT)]
    worker = Worker()
    lines = [worker.ask(op) for op in names]
    head = f"# Signatures of the operators of Paddle {paddle.__version__}, made by tools/paddle_schema.py.\n"
    target.write_text(head + "".join(text[1:] for text in lines if text[0] == "="))
    print("".join(text for text in lines if text[0] == "!"), len(names), "asked")
    return None


if __name__ == "__main__":
    main()
