"""Every method and operator of Tensor, and `x[...]` and `x[...] = v`, with random arguments."""

import operator
import types

import pytest

import minipd as paddle
from tests.fuzz.arguments import Arguments, complaint, little_memory, shown

LEFT_OUT = {"set_value", "retain_grads", "register_hook", "cuda", "pin_memory"}
METHODS = {name: f for name, f in sorted(vars(paddle.Tensor).items())
           if isinstance(f, types.FunctionType) and not name.startswith("_") and name not in LEFT_OUT}
OPERATORS = {name: getattr(operator, name) for name in
             "add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift eq ne lt le gt ge".split()}
INPLACE = {name: getattr(operator, name) for name in
           "iadd isub imul itruediv ifloordiv imod ipow imatmul iand ior ixor".split()}
UNARY = {"neg": operator.neg, "pos": operator.pos, "invert": operator.invert, "abs": abs, "bool": bool, "int": int,
         "float": float, "complex": complex, "len": len, "list": list, "repr": repr, "format": "{:.2f}".format,
         "index": operator.index, "hash": hash, "round": round}


def of_method(name):
    def draw(a):
        args, kwargs = a.draw(METHODS[name], skip=1)
        return METHODS[name], [a.tensor(), *args], kwargs
    return draw


def of_operator(function):
    def draw(a):
        pair = [a.tensor(), a.rng.choice((a.tensor(), a.tensor(), a.whole(), 0.5, a.anything()))]
        a.rng.shuffle(pair)
        return function, pair if function in OPERATORS.values() else sorted(pair, key=lambda x: not isinstance(
            x, paddle.Tensor)), {}
    return draw


def of_unary(function):
    return lambda a: (function, [a.tensor()], {})


def reading(a):
    return operator.getitem, [a.tensor(), a.index()], {}


def writing(a):
    x = a.tensor()
    x.stop_gradient = True
    return operator.setitem, [x, a.index(), a.rng.choice((a.tensor(), a.whole(), 0.5, a.anything()))], {}


CALLS = {f"Tensor.{name}": of_method(name) for name in METHODS}
CALLS |= {name: of_operator(f) for name, f in (OPERATORS | INPLACE).items()}
CALLS |= {name: of_unary(f) for name, f in UNARY.items()}
MANY = {"x[...]": reading, "x[...] = v": writing}


def complaints(name, draw, seed, calls):
    found = []
    for n in range(calls):
        function, args, kwargs = draw(Arguments(f"{name} {seed} {n}"))
        with little_memory():
            _, wrong = complaint(function, args, kwargs)
        if wrong:
            found.append(f"{name}({shown(args, kwargs)})\n    {wrong}")
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*CALLS, *MANY])
def test_random_arguments(name):
    found = complaints(name, (CALLS | MANY)[name], 0, 300 if name in MANY else 8)
    assert not found, "\n".join(found[:3])


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*CALLS, *MANY])
def test_many_random_arguments(name):
    """Some minutes in all."""
    found = complaints(name, (CALLS | MANY)[name], 1, 20_000 if name in MANY else 300)
    assert not found, "\n".join(found[:3])
