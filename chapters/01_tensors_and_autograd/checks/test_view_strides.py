"""Oracle: number the cells that the tensor reads, reshape the numbers, and see whether the steps from the first element
to its neighbours lead to all the others."""

import numpy as np

from minipd.framework.layout import view_strides
from tools.course.checking import check


def called(shape, strides, target):
    return lambda: None if (found := view_strides(shape, strides, target)) is None else tuple(found)


def at(shape, strides, target):
    return f"view_strides({shape}, {strides}, {target})"


def cells(shape, strides):
    """The number of the cell in memory of each element; the first element's is 0."""
    places = np.zeros(shape, int)
    for axis, (n, s) in enumerate(zip(shape, strides, strict=True)):
        places += (np.arange(n) * s).reshape([-1] + [1] * (len(shape) - axis - 1))
    return places


def oracle(shape, strides, target):
    """Strides of a view, None if there is none."""
    numbers = cells(shape, strides).reshape(target)
    first = (0,) * len(target)
    steps = tuple(int(numbers[first[:i] + (1,) + first[i + 1:]]) if n > 1 else 0 for i, n in enumerate(target))
    return steps if (cells(target, steps) == numbers).all() else None


def test_a_row_major_matrix():
    check((1,), called((2, 3), (3, 1), (6,)), "view_strides((2, 3), (3, 1), (6,)): rows behind each other, read flat")
    check((2, 1), called((2, 3), (3, 1), (3, 2)), at((2, 3), (3, 1), (3, 2)))
    check((3, 1), called((6,), (1,), (2, 3)), at((6,), (1,), (2, 3)))


def test_a_transposed_matrix_is_not_flat():
    check(None, called((3, 2), (1, 3), (6,)),
          "view_strides((3, 2), (1, 3), (6,)): the elements stand in the cells 0, 3, 1, 4, 2, 5")


def test_a_dimension_of_a_transposed_matrix_can_be_split():
    check((2, 1, 4), called((4, 2), (1, 4), (2, 2, 2)),
          "view_strides((4, 2), (1, 4), (2, 2, 2)): the dimension of size 4, in steps of 1, as 2 times 2")


def test_some_columns():
    check(None, called((2, 2), (3, 1), (4,)),
          "view_strides((2, 2), (3, 1), (4,)): two of three columns, the cells 0, 1, 3, 4")


def test_every_other_element():
    check((4, 2), called((4,), (2,), (2, 2)), "view_strides((4,), (2,), (2, 2)): the cells 0, 2, 4, 6")
    check((2,), called((2, 2), (4, 2), (4,)), "view_strides((2, 2), (4, 2), (4,)): the cells 0, 2, 4, 6")


def test_backwards():
    check((-3, -1), called((6,), (-1,), (2, 3)), "view_strides((6,), (-1,), (2, 3)): from the end to the beginning")


def test_expanded():
    check(None, called((2, 3), (1, 0), (6,)), "view_strides((2, 3), (1, 0), (6,)): the cells 0, 0, 0, 1, 1, 1")
    check((0,), called((2, 3), (0, 0), (6,)), "view_strides((2, 3), (0, 0), (6,)): six times cell 0")


def test_dimensions_of_size_one_do_not_count():
    check((1,), called((1, 3), (99, 1), (3,)), at((1, 3), (99, 1), (3,)))
    check((1,), called((2, 1, 3), (3, 77, 1), (6,)), at((2, 1, 3), (3, 77, 1), (6,)))
    _agree((6,), (1,), (2, 1, 3))
    _agree((2, 3), (3, 1), (1, 3, 2, 1))
    _agree((2, 3), (1, 2), (2, 1, 3))


def test_one_element_and_none():
    for shape, target in (((), (1,)), ((1, 1), ()), ((), ()), ((0, 3), (3, 0)), ((2, 0), (0,))):
        strides = tuple(range(len(shape)))
        check(len(target), lambda s=shape, d=strides, t=target: len(view_strides(s, d, t)),
              f"the number of strides of {at(shape, strides, target)}: with so few elements every reshape is a view")


def _agree(shape, strides, target):
    """Along dimensions of size 1 any stride will do, so what is compared is the cells that are read."""
    want = oracle(shape, strides, target)

    def run():
        found = view_strides(shape, strides, target)
        return found if found is None else cells(target, tuple(found))
    check(None if want is None else cells(target, want), run, f"the cells read by {at(shape, strides, target)}")


def test_views_at_random():
    rng = np.random.default_rng(0)
    for _ in range(400):
        x = np.zeros(rng.integers(1, 5, rng.integers(1, 4)), np.int8)
        steps = rng.choice([1, 1, 2, -1], x.ndim)
        x = x.transpose(rng.permutation(x.ndim))[tuple(slice(None, None, int(step)) for step in steps)]
        if rng.random() < 0.3:
            x = np.broadcast_to(x[..., None], (*x.shape, int(rng.integers(1, 4))))
        target, left = [], x.size
        while left > 1 and len(target) < 4:
            target.append(int(rng.choice([n for n in range(1, left + 1) if left % n == 0])))
            left //= target[-1]
        _agree(x.shape, x.strides, tuple(map(int, rng.permutation([*target, left]))))
