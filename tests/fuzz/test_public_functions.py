"""Every public function, called with random arguments: it answers, or it says in the user's terms what is wrong.

Only the documented types of exceptions come out, with messages about arguments, never about the inside; nothing crashes
and nothing hangs.
"""

import sys
import types

import pytest

import minipd as paddle
from tests.fuzz.arguments import Arguments, complaint, little_memory, shown

#: what is not called: it touches files or processes, switches something for all that follows, or waits for others
LEFT_OUT = set("""save load seed manual_seed set_flags set_default_dtype set_grad_enabled set_printoptions set_device
    install_as_paddle enable_static disable_static set_rng_state set_cuda_rng_state set_global_initializer
    disable_signal_handler LazyGuard summary flops enable_compat disable_compat""".split())

NAMESPACES = [paddle, paddle.nn.functional] + [
    sys.modules[name] for name in ("minipd.linalg", "minipd.fft", "minipd.signal") if name in sys.modules]


def public_functions():
    found = {}
    for module in NAMESPACES:
        for name in module.__all__:
            f = getattr(module, name)
            if isinstance(f, types.FunctionType) and name not in LEFT_OUT:
                found[f"{module.__name__.replace('minipd', 'paddle')}.{name}"] = f
    return found


FUNCTIONS = public_functions()


def complaints(name, seed, calls):
    found = []
    for n in range(calls):
        args, kwargs = Arguments(f"{name} {seed} {n}").draw(FUNCTIONS[name])
        with little_memory():
            _, wrong = complaint(FUNCTIONS[name], args, kwargs)
        if wrong:
            found.append(f"{name}({shown(args, kwargs)})\n    {wrong}")
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_random_arguments(name):
    found = complaints(name, 0, 25)
    assert not found, "\n".join(found[:3])


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_many_random_arguments(name):
    """About ten minutes in all."""
    found = complaints(name, 1, 1000)
    assert not found, "\n".join(found[:3])
