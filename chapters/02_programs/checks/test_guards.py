"""Oracle: what is like what, written out by hand; and how often a function is traced."""

import math

import numpy as np

import minipd as paddle
from minipd.jit.guards import frozen
from tools.course.checking import check


def like(a, b):
    return lambda: bool(frozen(a) == frozen(b))


def test_numbers():
    check(True, like(3, 3), "is frozen(3) like frozen(3)?")
    check(False, like(3, 4), "is frozen(3) like frozen(4)?")
    check(True, like(None, None), "is frozen(None) like frozen(None)?")


def test_equal_is_not_alike():
    check(False, like(1, True), "is frozen(1) like frozen(True)?")
    check(False, like(1, 1.0), "is frozen(1) like frozen(1.0)?")
    check(False, like("1", 1), "is frozen('1') like frozen(1)?")
    check(False, like(b"a", "a"), "is frozen(b'a') like frozen('a')?")


def test_floats():
    check(True, like(0.5, 0.5), "is frozen(0.5) like frozen(0.5)?")
    check(True, like(math.nan, float("nan")), "is frozen(nan) like frozen(nan), another object?")
    check(False, like(0.0, -0.0), "is frozen(0.0) like frozen(-0.0)?")
    check(False, like(complex(0.0, 0.0), complex(0.0, -0.0)), "is frozen(0+0j) like frozen(0-0j)?")


def test_lists_count_by_what_they_hold():
    check(True, like([1, 2], [1, 2]), "is frozen([1, 2]) like frozen([1, 2]), another list?")
    check(False, like([1, 2], [1, 3]), "is frozen([1, 2]) like frozen([1, 3])?")
    check(False, like([1, 2], (1, 2)), "is frozen([1, 2]) like frozen((1, 2))?")
    check(False, like([1], [True]), "is frozen([1]) like frozen([True])?")
    check(True, like([[math.nan]], [[math.nan]]), "is frozen([[nan]]) like frozen([[nan]])?")


def test_what_is_kept_does_not_change():
    xs = [1, 2]
    before = frozen(xs)
    xs.append(3)
    check(False, lambda: before == frozen(xs), "xs = [1, 2]; before = frozen(xs); xs.append(3); is before like "
                                               "frozen(xs)?")
    nested = {"a": [1, {2}]}
    before = frozen(nested)
    nested["a"][1].add(3)
    check(False, lambda: before == frozen(nested), "d = {'a': [1, {2}]}; before = frozen(d); d['a'][1].add(3); is "
                                                   "before like frozen(d)?")


def test_dicts_and_sets():
    check(True, like({"a": 1}, {"a": 1}), "is frozen({'a': 1}) like frozen({'a': 1}), another dict?")
    check(False, like({"a": 1}, {"a": 2}), "is frozen({'a': 1}) like frozen({'a': 2})?")
    check(False, like({"a": 1, "b": 2}, {"b": 2, "a": 1}), "is a dict like one of another order? (A loop over it is "
                                                           "another)")
    check(True, like({1, 2}, {2, 1}), "is frozen({1, 2}) like frozen({2, 1})?")
    check(False, like({1, 2}, frozenset({1, 2})), "is a set like a frozenset?")


def test_arrays():
    a = np.array([1.0, 2.0])
    check(True, like(a, a.copy()), "is frozen(array([1, 2])) like that of a copy?")
    before = frozen(a)
    a[0] = 5.0
    check(False, lambda: bool(before == frozen(a)), "a = array([1., 2.]); before = frozen(a); a[0] = 5.; is before "
                                                    "like frozen(a)?")
    check(False, like(np.zeros((2, 3)), np.zeros((3, 2))), "is an array of zeros like one of another shape?")
    check(False, like(np.zeros(2, "int32"), np.zeros(2, "float32")), "is an array of zeros like one of another dtype?")


class Thing:
    """A user's own: equal to everything."""

    def __eq__(self, other):
        return True

    __hash__ = object.__hash__


def test_everything_else_is_itself():
    a, b = Thing(), Thing()
    check(True, like(a, a), "is an object like itself?")
    check(False, like(a, b), "is an object like another one, which says that it is equal?")
    check(False, like([a], [b]), "the same, each in a list")
    t = paddle.to_tensor([1.0])
    before = frozen(t)
    t.set_value(np.array([2.0], "float32"))
    check(True, lambda: before == frozen(t), "is a tensor like itself, after its values have changed?")


def test_it_can_be_hashed():
    for value in (3, [1, [2]], {"a": {1}}, np.zeros(2), (None, b"x"), Thing()):
        check(int, lambda value=value: type(hash(frozen(value))), f"the type of hash(frozen({type(value).__name__}))")


def test_what_may_change_in_place():
    for value, changes in (([1], True), ({"a": 1}, True), ({1}, True), (np.zeros(2), True), (3, False), ("in", False),
                           (Thing(), False)):
        def begins(value=value):
            found = frozen(value)
            return isinstance(found, tuple) and found[0] == "in"
        check(changes, begins, f"whether frozen({type(value).__name__}) is a tuple that begins with 'in'")


def test_containers_without_end():
    xs = [1]
    xs.append(xs)
    check(True, lambda: frozen(xs) == frozen(xs), "is frozen(xs) like itself, where xs = [1, xs] holds itself?")
    deep = [[[[[[1]]]]]]
    before = frozen(deep)
    check(True, lambda: before == frozen(deep), "six lists in one another: like itself?")
    check(False, like(deep, [[[[[[1]]]]]]), "six lists in one another, and six others: deeper than DEPTH, identity "
                                            "decides")
    first = frozen([1], 4)
    check(False, lambda: isinstance(first, tuple) and first[0] == "in", "does frozen([1], depth=4) begin with 'in'?")


def test_hooks():
    layer = paddle.nn.Linear(2, 2)
    layer.register_forward_pre_hook(lambda layer, x: None)
    hooks = layer._pre_hooks
    before = frozen(hooks)
    check(True, lambda: before == frozen(hooks), "are the hooks of a layer like themselves?")
    layer.register_forward_pre_hook(lambda layer, x: None)
    check(False, lambda: before == frozen(hooks), "are they, after one more was registered?")


SIZES = [2.0]


def test_a_function_is_traced_again_only_if_it_must():
    @paddle.jit.to_static
    def f(x):
        return x * SIZES[0]

    x = paddle.ones([1])
    SIZES[:] = [math.nan]
    f(x)
    check(1, lambda: len(paddle.jit.explain(f, x).traces), "how often f is traced: two calls, with the global "
                                                           "SIZES = [nan]")
    SIZES[:] = [3.0]
    check([3.0], lambda: f(x).tolist(), "f(1), which is x * SIZES[0], after SIZES[:] = [3.0]")
    SIZES.append(4.0)
    SIZES[0] = 5.0
    check([5.0], lambda: f(x).tolist(), "f(1) after SIZES[0] = 5.0")
