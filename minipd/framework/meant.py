"""What a parameter of a name is meant to be, the same in all of Paddle's functions: to tell what a wrong argument is.

Only where a call has failed, and its error is about the inside, is anything looked up here (`boundary`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipd.framework.tensor import Tensor

__all__: list[str] = []


def whole(v: Any) -> bool:
    """An int, or what stands for one: a tensor or array of one element."""
    if hasattr(v, "dtype") and hasattr(v, "shape"):
        return hasattr(v, "payload") or v.size == 1
    return hasattr(v, "__index__")


def wholes(v: Any) -> bool:
    """An int, or ints in a list (nested, if need be), tensor or array."""
    if isinstance(v, (list, tuple)):
        return all(map(wholes, v))
    return hasattr(v, "__index__") or hasattr(v, "dtype") and hasattr(v, "shape")


def several(v: Any) -> bool:
    """A list of ints."""
    return wholes(v) and (isinstance(v, (list, tuple)) or hasattr(v, "shape") and len(v.shape) == 1)


def number(v: Any) -> bool:
    """A number, or a tensor of some."""
    return isinstance(v, (int, float, complex, Tensor)) or hasattr(v, "dtype") and hasattr(v, "shape")


def numbers(v: Any) -> bool:
    """Numbers, one or in lists."""
    return all(map(numbers, v)) if isinstance(v, (list, tuple)) else number(v)


def tensor(v: Any) -> bool:
    return isinstance(v, Tensor) or hasattr(v, "dtype") and hasattr(v, "shape")


def tensors(v: Any) -> bool:
    """Tensors in a list."""
    return isinstance(v, (list, tuple)) and all(map(tensor, v))


def tensor_or_tensors(v: Any) -> bool:
    return tensor(v) or tensors(v)


#: what is meant, in words, and the parameters that mean it (of whatever function)
MEANINGS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "an int": (whole, "k num num_rows num_columns n start_axis stop_axis num_classes groups offset diagonal n_fft"),
    "an int or a list of ints": (wholes, """axis axes dim dims shape size repeat_times num_or_sections repeats shifts
        num_or_indices split_size_or_sections split_sizes indices_or_sections kernel_size stride kernel_sizes
        output_size dilation dilations strides sections minlength s"""),
    "a list of ints": (several, "perm starts ends cutoffs x_shape y_shape"),
    "a number or a tensor": (number, """start stop end step base low high mean std probs min max fill_value value y
        other lambd alpha exponent"""),
    "a list of tensors": (tensors, "input_list tensors"),
    "a tensor": (tensor, "out target label weight index mask"),
    "a tensor or a list of tensors": (tensor_or_tensors, "outputs inputs grad_outputs"),
}
BY_NAME = {name: (words, fits) for words, (fits, names) in MEANINGS.items() for name in names.split()}

#: annotations of lists
BY_ANNOTATION: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "Sequence[Tensor]": ("a list of tensors", tensors),
    "Sequence[int]": ("a list of ints", several),
    "Sequence[Sequence[Tensor]]": ("a list of lists of tensors",
                                   lambda v: isinstance(v, (list, tuple)) and all(map(tensors, v))),
}


def expected(name: str, annotation: Any, value: Any) -> str | None:
    """What is expected where `value` is given for a parameter; None if it fits, or nothing is known.

    >>> expected("perm", "Any", 1.5), expected("perm", "Any", [1, 0])
    ('a list of ints', None)
    """
    words, fits = BY_ANNOTATION.get(annotation) or BY_NAME.get(name) or ("", lambda v: True)
    return None if fits(value) else words
