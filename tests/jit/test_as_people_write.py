"""Programs as people write them: eager, in segments, and as one program, they do the same, to Python's state too.

With full_graph=True a program may be refused, with words that say why; it may never give another answer.
"""

import functools

import pytest

from minipd.jit import to_static
from tests.jit import people_language, people_models, people_state
from tests.jit.people import CASES

__all__ = ["people_language", "people_models", "people_state"]


#: what is refused as one program, and what is said
REFUSED = {
    "generator_result": "got a generator, which runs its code later",
    "exec_branch": "which is being traced",
    "helper_in_branch": "`s.last` is Tensor f32.1. when the condition is True .* and None when it is False",
    "append_in_tensor_branch": "`log` is .1. when the condition is True .* and .. when it is False",
    "iterator_state": "expected state that can be put back after a trace, got list_iterator",
    "py_random": "expected state that can be put back after a trace, got Random",
    "optimizer_inside": "must exist before the step is traced",
    "item_branch": "expected a tensor with values, got result 0 of pd_op.sum",
    "return_closure": "got the function .*lambda>, which holds a tensor that exists only when the program runs",
}
#: a number that the program chooses is a tensor
TENSORS = {"mask_early_exit"}


def as_numbers(x):
    if isinstance(x, tuple) and len(x) == 4 and x[1] == []:
        return x[3]
    return type(x)(map(as_numbers, x)) if isinstance(x, (list, tuple)) else x


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", CASES)
def test_as_people_write(name):
    eager = CASES[name](lambda f: f)
    assert CASES[name](functools.partial(to_static, full_graph=False)) == eager
    if name in REFUSED:
        with pytest.raises((TypeError, RuntimeError), match=REFUSED[name]):
            CASES[name](to_static)
    elif name in TENSORS:
        assert as_numbers(CASES[name](to_static)) == eager
    else:
        assert CASES[name](to_static) == eager
