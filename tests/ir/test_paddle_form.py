"""Paddle's form and back: every row has a form or a reason, and no number changes on the way."""

import numpy as np
import pytest

from minipd.framework import dtype as dtypes
from minipd.framework.context import using
from minipd.framework.errors import InputError
from minipd.framework.meta import Meta
from minipd.framework.row import ROWS
from minipd.framework.tensor import Tensor
from minipd.ir.evaluate import evaluate
from minipd.ir.paddle import from_paddle, to_paddle
from minipd.ir.paddle.form import LOADS, SAVES
from minipd.ir.paddle.reasons import REASONS
from minipd.ir.paddle.save import KEYS, problem
from minipd.ir.parser import parse
from minipd.ir.program import Program
from minipd.ir.trace import Trace
from minipd.ir.verify import verify
from minipd.jit.api import to_static
from minipd.ops.reshape import flatten
from minipd.static.input import InputSpec
from tests.ops.all_cases import CASES

#: written with other operators of Paddle's, or read as arithmetic: the tolerance
NEARLY = {"standardize": 1e-12, "gammainc": 1e-15, "p_norm": 1e-15, "layer_norm": 1e-14, "adamw": 1e-6,
          "momentum": 1e-6}


def program_of(name, case):
    """The program of one call, and what its inputs are fed."""
    row = ROWS[name]
    tracer = Trace(Program())
    feeds, payloads = {}, []
    with using(ground=tracer, middle=None, grad=False), tracer.program.constraints.collect():
        for i, x in enumerate(case.inputs):
            if isinstance(x, np.ndarray):
                feeds[f"x{i}"] = x
                payloads.append(Tensor(tracer.input(f"x{i}", Meta(x.shape, x.dtype))))
            else:
                payloads.append(x)
        out = row(*payloads, **case.attrs)
        for i, o in enumerate(out if row.multi else (out,)):
            tracer.build.output(f"out{i}", o.payload)
    return tracer.program, feeds


def run(program, feeds):
    """The outputs; a random draw's key, whatever its name, is the one that `feeds` has for it."""
    outputs = {}
    keys = iter([v for v in feeds.values() if v.shape == (2,) and v.dtype == np.int64])

    def read(op):
        name = op.attributes["name"].value
        return feeds[name] if name in feeds else next(keys)

    def compute(row, payloads, attrs):
        return row.kernels[dtypes.CODE_OF_NUM[payloads[row.key].dtype.num]](*payloads, **attrs) if (
            len(payloads) > row.key and isinstance(payloads[row.key], np.ndarray)) else row.kernel(*payloads, **attrs)
    evaluate(program, compute, read, lambda op, x: outputs.__setitem__(op.attributes["output_name"].value, x))
    return outputs


def test_every_row_has_a_form_or_a_reason():
    for name, row in ROWS.items():
        if row.dialect != "pd_op" or not row.infer_meta.__module__.startswith("minipd."):
            continue
        assert (problem(row) is None or name in SAVES) != (name in REASONS), (name, problem(row))
    assert REASONS.keys() <= ROWS.keys() and SAVES.keys() <= ROWS.keys()
    assert all(LOADS[name] for name in ("layer_norm", "batch_norm_", "adamw_", "set_value_"))


def check(name, case):
    program, feeds = program_of(name, case)
    want = run(program, feeds)
    if (case.attrs.get("window") is not None or case.attrs.get("pooling_type") == "sum") and name not in REASONS:
        with pytest.raises(InputError, match="since Paddle's operator has no such attribute"):
            to_paddle(program)
        return
    theirs = to_paddle(program)
    assert theirs.form == "paddle" and to_paddle(theirs) is theirs
    back = from_paddle(theirs)
    verify(back)
    got = run(back, feeds)
    for key, value in want.items():
        assert got[key].dtype == value.dtype and got[key].shape == value.shape, key
        if name in NEARLY:
            np.testing.assert_allclose(got[key], value, rtol=NEARLY[name], atol=NEARLY[name])
        else:
            np.testing.assert_array_equal(got[key], value)


def every_case():
    for name in sorted(CASES):
        yield from ((name, case) for case in CASES[name])


@pytest.mark.parametrize("name", sorted(CASES))
def test_numbers_stay_on_the_way_to_paddles_form_and_back(name):
    check(name, CASES[name][0])


@pytest.mark.long
@pytest.mark.parametrize(("name", "case"), [pytest.param(n, c, id=f"{n}-{c.label}") for n, c in every_case()])
def test_numbers_stay_in_every_case(name, case):
    check(name, case)


def test_keys_are_no_inputs_of_paddles():
    """What Paddle has nothing for stays as it is, and so does its key."""
    assert set(KEYS) == {n for n, r in ROWS.items() if "key" in r.inputs and n not in REASONS}


@pytest.mark.parametrize("note", ['"fl[atten", i64(1), i64(2)', '"flatten", "x", i64(2)', '"flatten", i64(1)'])
def test_a_note_of_how_it_was_written_that_makes_no_sense_says_nothing(note):
    flat = to_static(lambda x: flatten(x, 1), input_spec=[InputSpec([2, 3, 4])])
    text = flat.main_program.to_string("exact")
    written = '"flatten", i64(1), i64(2)'
    assert text.count(written) == 1 and '"pd_op.flatten"' in parse(text).to_string("paddle")
    assert '"pd_op.reshape"' in parse(text.replace(written, note)).to_string("paddle")
