"""Rewriting: what it leaves alone, the user's lines, what is said where a tensor cannot decide (hard cases B1-B5)."""

import functools
import linecache
import math
import traceback
import types

import numpy as np
import pytest

import minipd as paddle
from minipd.jit import ignore_module, not_to_static, set_code_level, set_verbosity, to_static
from minipd.jit.dy2static import text_of, transformed


def tensor(x):
    return paddle.to_tensor(x)


def line_of(function, text):
    """The number of the line of a function's file, in the function, that has this text."""
    first = function.__code__.co_firstlineno
    lines = linecache.getlines(function.__code__.co_filename)
    return next(i for i in range(first, len(lines) + 1) if text in lines[i - 1])


# ------------------------------------------------------------------------------------ code without tensors is as it was
def events(log):
    def see(name, value):
        log.append(name)
        return value
    return see


def order(log, a, b, c):
    see = events(log)
    x = see("a", a) and see("b", b) or not see("c", c)
    y = see("p", 1) < see("q", a) < see("r", c)
    z = see("then", 1) if see("if", b) else see("else", 2)
    while see("w", a) > 0 and see("v", b):
        a -= 1
        if see("brk", c) == a:
            break
        for i in range(see("n", 3)):
            if i == c:
                continue
            see(i, None)
            if i > a:
                return x, y, z, "returned"
    else:
        see("else", None)
    try:
        if see("t", c) == 1:
            raise KeyError("one")
        return x, y, z
    except KeyError as error:
        return error.args
    finally:
        see("finally", None)


@pytest.mark.parametrize("a", [0, 1, 3])
@pytest.mark.parametrize("b", [0, [], "b"])
@pytest.mark.parametrize("c", [0, 1, 5])
def test_order_and_number_of_evaluations(a, b, c):
    logs = [], []
    assert order(logs[0], a, b, c) == transformed(order)(logs[1], a, b, c)
    assert logs[0] == logs[1]


def test_variables_stay_undefined():
    def f(flag):
        if flag:
            q = 1
        for i in range(0 if flag else 2):
            last = i
        del flag
        return [q] if "q" == "q" and i_is(lambda: q) else [last, i]       # noqa: PLR0133

    def i_is(get):
        try:
            get()
        except NameError:
            return False
        return True
    for g in (f, transformed(f)):
        assert g(True) == [1] and g(False) == [1, 1]

    def g(flag):
        if flag:
            q = 1
        return q
    for h in (g, transformed(g)):
        with pytest.raises(UnboundLocalError):
            h(False)


def test_closures_share_cells():
    def make():
        count = 0

        def step(n):
            nonlocal count
            for _ in range(n):
                if count < 5:
                    count += 1
            return count

        def read():
            return count
        return step, read
    step, read = make()
    again = transformed(step)
    assert again.__closure__[again.__code__.co_freevars.index("count")] is step.__closure__[0]
    assert again(3) == 3 and read() == 3 and step(1) == 4 and again(9) == 5 == read()


def test_what_a_function_is_stays():
    def f(x, y: int = 3, *args, k=4, **kw) -> int:
        """Words."""
        if x:
            return y, args, k, kw
        return lambda: x
    f.mark = "here"
    g = transformed(f)
    assert g is not f and g(1, 2, 3, k=5, z=6) == f(1, 2, 3, k=5, z=6) == (2, (3,), 5, {"z": 6})
    for name in ("__name__", "__qualname__", "__doc__", "__module__", "__defaults__", "__kwdefaults__",
                 "__annotations__", "mark", "__globals__"):
        assert getattr(g, name) == getattr(f, name)
    assert g.__code__.co_filename == f.__code__.co_filename
    assert g.__code__.co_firstlineno == f.__code__.co_firstlineno
    assert g(0).__qualname__ == f(0).__qualname__
    assert transformed(f).__code__ is g.__code__ and transformed(g) is g


class Base:
    scale = 2

    def apply(self, x):
        return x * self.scale


class Derived(Base):
    __secret = 3

    def __init__(self):
        self.__seen = []

    def apply(self, x):
        if x > 1:
            result = super().apply(x)
        else:
            result = __class__.__secret * x
        self.__seen.append(result)
        return result, len(self.__seen)

    @classmethod
    def made(cls, x):
        return cls.scale * x if x else cls

    @staticmethod
    def plain(x):
        while x < 10:
            x = x + 4
        return x

    def __call__(self, x):
        if x > 0:
            return x
        return -x


def test_methods():
    one, other = Derived(), Derived()
    assert [transformed(one.apply)(x) for x in (1, 2, 5)] == [other.apply(x) for x in (1, 2, 5)] == [
        (3, 1), (4, 2), (10, 3)]
    assert transformed(Derived.made)(3) == 6 and transformed(Derived.made)(0) is Derived
    assert transformed(one.plain)(1) == 13 and transformed(one)(-3) == 3
    for x in (1.0, 2.0):
        found, count = to_static(Derived().apply)(tensor(x))
        assert found.item() == Derived().apply(x)[0] and count == 1
        assert to_static(one)(tensor(-x)).item() == x
    assert to_static(Derived.plain)(tensor(1.0)).item() == 13


def test_decorators_and_partials():
    def twice(f):
        @functools.wraps(f)
        def wrapper(*args, **kwargs):
            return f(*args, **kwargs) + f(*args, **kwargs)
        return wrapper

    @twice
    def f(x, k=1.0):
        if x > 0:
            return x * k
        return x - k
    for x in (2.0, -2.0):
        assert to_static(f)(tensor(x), k=3.0).item() == f(x, k=3.0)
        assert to_static(functools.partial(f, k=3.0))(tensor(x)).item() == f(x, k=3.0)


def test_a_result_that_a_rule_of_the_user_has_made():
    class Tripled(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):
            return x * 3.0

        @staticmethod
        def backward(ctx, g):
            return g * 5.0
    x = paddle.to_tensor(2.0, stop_gradient=False)
    y = to_static(lambda x: Tripled.apply(x))(x)
    y.backward()
    assert (y.item(), x.grad.item()) == (6.0, 5.0)


def test_functions_that_the_library_calls():
    class Rule(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            if x.sum() > 0:
                return x * 2.0
            return x * 3.0

        @staticmethod
        def backward(ctx, g):
            x, = ctx.saved_tensor()
            if x.sum() > 0:
                return g * 5.0
            return g * 7.0

    def f(x):
        def block(t):
            if t.sum() > 3.0:
                return t * t
            return -t
        y = paddle.distributed.fleet.utils.recompute(block, Rule.apply(x))
        return paddle.static.nn.cond(y.sum() > 0.0, lambda: y * 2.0 if y.sum() > 10.0 else y, lambda: block(y))
    for value in ([1.0, 0.5], [3.0, 1.0], [-1.0, -2.0], [-0.25, 0.0]):
        grads = []
        for g in (f, to_static(f)):
            x = paddle.to_tensor(value, stop_gradient=False)
            y = g(x)
            y.sum().backward()
            grads.append((y.tolist(), x.grad.tolist()))
        assert grads[0] == grads[1]


def test_recursion_that_a_tensor_ends():
    def f(x):
        if x > 10:
            return x
        return f(x * x)
    with pytest.raises(RecursionError) as told:
        to_static(f)(tensor(2.0))
    assert f"(the condition at {__file__}:{line_of(f, 'if x > 10')})" in str(told.value)


def test_generators_and_frames_are_left_alone():
    def pairs(n):
        for i in range(n):
            if i % 2:
                yield i

    def names(a):
        if a:
            b = 2       # noqa: F841
        return sorted(locals())
    assert transformed(pairs) is pairs and transformed(names) is names
    assert to_static(lambda x: sum(x * i for i in pairs(4)))(tensor(2.0)).item() == 8.0


def test_library_code_is_left_alone():
    assert transformed(math.floor) is math.floor and transformed(textwrap_dedent()) is textwrap_dedent()
    assert transformed(paddle.nn.functional.relu) is paddle.nn.functional.relu
    assert transformed(np.sum) is np.sum and transformed(dict) is dict

    @not_to_static
    def f(x):
        return 1 if x else 2
    assert transformed(f) is f


def textwrap_dedent():
    import textwrap
    return textwrap.dedent


def test_ignored_modules():
    module = types.ModuleType("someones_code")

    def f(x):
        return 1 if x else 2
    f.__module__ = "someones_code"
    assert transformed(f) is not f
    ignore_module([module])
    assert transformed(f) is f


def test_lambdas_of_one_line():
    fs = [lambda x: x if x > 0 else 1, lambda x: -x if x > 0 else 2, lambda y: y]
    assert [transformed(f)(3) for f in fs] == [3, -3, 3] and [transformed(f)(-3) for f in fs] == [1, 2, -3]
    assert transformed(fs[0]) is not fs[0] and transformed(fs[1]) is not fs[1]
    assert to_static(fs[1])(tensor(3.0)).item() == -3.0


def test_shadowed_names_are_the_users():
    def f(x):
        len = lambda y: 7           # noqa: A001, E731
        if_true_0 = x
        if if_true_0 > 0:
            range = [len(x)]        # noqa: A001
        else:
            range = [if_true_0]     # noqa: A001
        return range
    assert transformed(f)(1) == f(1) == [7] and transformed(f)(-1) == [-1]


# -------------------------------------------------------------------------------------------------------------- lines
def test_tracebacks_show_the_users_lines():
    def f(x):
        y = x
        while y < 3:
            y = y + 1
            if y == 2:
                for k in [1, 0]:
                    y = (y //
                         k)
        return y
    for g in (f, transformed(f)):
        with pytest.raises(ZeroDivisionError) as told:
            g(0)
        last = traceback.extract_tb(told.value.__traceback__)[-1]
        assert (last.filename, last.lineno) == (__file__, line_of(f, "y = (y //"))
        lines = [t.lineno for t in traceback.extract_tb(told.value.__traceback__) if t.filename == __file__]
        assert set(lines[1:]) <= set(range(line_of(f, "def f"), line_of(f, "return y") + 1))
    rows = [t.lineno for t in traceback.extract_tb(told.value.__traceback__) if t.filename == __file__][1:]
    assert rows == [line_of(f, "while y"), line_of(f, "if y == 2"), line_of(f, "for k"), line_of(f, "y = (y //")]


def test_lines_of_a_decorated_function():
    def marked(function):
        return function

    @marked
    @marked
    def f(x):
        if x > 1:
            x = x + 1
        return x // 0

    g = transformed(f)
    assert g is not f and g.__code__.co_firstlineno == f.__code__.co_firstlineno == line_of(f, "@marked")
    with pytest.raises(ZeroDivisionError) as told:
        g(2)
    assert told.traceback[-1].lineno + 1 == line_of(f, "x // 0")


def test_operations_know_the_users_lines():
    def f(x):
        if x > 0:
            y = paddle.tanh(x)
        else:
            y = x * 3.0
        while y < 5.0:
            y = (paddle
                 .exp(y))
        return y
    g = to_static(f)
    g(tensor(1.0))
    where = {op.name(): op.attributes["op_callstack"].value[-1] for op in g.main_program.walk()
             if "op_callstack" in op.attributes}
    for name, text in (("pd_op.greater_than", "if x > 0"), ("pd_op.if", "if x > 0"), ("pd_op.tanh", "tanh"),
                       ("pd_op.while", "while y"), ("pd_op.exp", ".exp(y)"), ("pd_op.less_than", "while y")):
        assert where[name] == f"{__file__}:{line_of(f, text)}", name


def test_an_error_of_an_operator_names_the_users_line():
    def f(x):
        if x.sum() > 0:
            x = paddle.matmul(x, paddle.ones([7, 7]))
        return x
    with pytest.raises(ValueError) as told:
        to_static(f)(paddle.ones([2, 3]))
    notes = "\n".join(told.value.__notes__)
    assert f"{__file__}:{line_of(f, 'matmul')}" in notes
    assert f"while tracing a branch of the condition at {__file__}:{line_of(f, 'if x.sum')}" in notes


# ----------------------------------------------------------------------------------------------------------- hard cases
def test_b1_an_early_return_of_python():
    def inner(x):
        a = 2
        if a < 0:
            y = x + 1
            return y
        y = x * 2
        return y
    f = to_static(lambda x: paddle.reshape(inner(x), (2, 5)))
    assert f(paddle.ones([10])).tolist() == [[2.0] * 5] * 2
    assert "pd_op.if" not in [op.name() for op in f.main_program.walk()]


def different(x, flag):
    if flag:
        return x + 1, x + 2
    else:
        return x - 1


def test_b2_branches_of_different_structure():
    f = to_static(different)
    first, second = f(tensor(1.0), True)
    assert (first.item(), second.item(), f(tensor(1.0), False).item()) == (2.0, 3.0, 0.0)
    with pytest.raises(TypeError) as told:
        f(tensor(1.0), tensor(True))
    text = str(told.value)
    assert "(Tensor f32[], Tensor f32[]) when it is True" in text and "Tensor f32[] when it is False" in text
    for part in ("return x + 1, x + 2", "return x - 1"):
        assert f"(line {line_of(different, part)}: `{part}`)" in text
    assert f"{__file__}:{line_of(different, 'if flag')}" in text


@pytest.mark.parametrize("f, left, right", [
    (lambda x: [x] if x > 0 else (x,), r"\[Tensor f32\[\]\]", r"\(Tensor f32\[\],\)"),
    (lambda x: x if x > 0 else None, r"Tensor f32\[\]", "None"),
    (lambda x: {"a": x} if x > 0 else {"b": x}, r"\{'a': Tensor", "'b': Tensor"),
    (lambda x: x if x > 0 else x.reshape([1]), r"Tensor f32\[\]", r"Tensor f32\[1\]"),
    (lambda x: x if x > 0 else "no", r"Tensor f32\[\]", "'no'"),
])
def test_b2_what_else_differs(f, left, right):
    with pytest.raises(TypeError, match=f"got {left}.* when it is True.* and .*{right}.* when it is False"):
        to_static(f)(tensor(1.0))


def test_b2_none_on_one_side():
    def f(x):
        if x > 0:
            return x
    with pytest.raises(TypeError, match="None when it is False"):
        to_static(f)(tensor(1.0))

    def g(x):
        if x > 0:
            return None
        else:
            return None
    assert to_static(g)(tensor(1.0)) is None


def test_b3_break_and_continue_of_python():
    def f(x):
        for i in range(3):
            if i == 2:
                break
            x = x + 1
        n = 0
        while True:
            n += 1
            if n % 2:
                continue
            for _ in range(9):
                if n > 3:
                    break
                x = x + 10
                break
            if n == 6:
                break
        return x
    g = to_static(f)
    assert g(tensor(0.0)).item() == f(0.0) == 12.0
    assert not {"pd_op.if", "pd_op.while"} & {op.name() for op in g.main_program.walk()}


def test_b4_a_variable_of_one_branch():
    def f(x, training):
        if training:
            t = [1]
        y = x + 1
        if training:
            t.append(2)
        return y
    assert to_static(f)(tensor(1.0), False).item() == 2.0

    def g(x, use):
        if x > 0:
            q = x * 2
        if use:
            return q + 1
        return x
    compiled = to_static(g)
    assert compiled(tensor(3.0), False).item() == 3.0           # nobody looks at q
    with pytest.raises(NameError) as told:
        compiled(tensor(3.0), True)
    assert f"`q` is undefined when the condition is False (line {line_of(g, 'if x > 0')}:" in str(told.value)
    assert f"it is used at {__file__}:{line_of(g, 'return q + 1')}" in str(told.value)

    def h(x):
        if x > 0:
            pass
        else:
            q = x
        return q
    with pytest.raises(NameError, match="`q` is undefined when the condition is True"):
        to_static(h)(tensor(1.0))


def test_b4_a_variable_of_two_types():
    def f(x):
        if x > 0:
            q = x.reshape([1])
        else:
            q = x.astype("int64")
        r = x * 2
        return r + q
    with pytest.raises(TypeError) as told:
        to_static(f)(tensor(1.0))
    assert (f"`q` is Tensor f32[1] when the condition is True (line {line_of(f, 'reshape')}) and Tensor i64[] when it "
            f"is False (line {line_of(f, 'astype')})") in str(told.value)

    def g(x):
        if x > 0:
            name = "positive"
        else:
            name = "other"
        return x, name
    with pytest.raises(TypeError, match="`name` is 'positive' when the condition is True"):
        to_static(g)(tensor(1.0))


def test_b4_numbers_become_tensors_only_where_they_differ():
    def f(x):
        if x > 0:
            a, b, c, d = 1, 2.5, "same", x
        else:
            a, b, c, d = 1, 3.5, "same", 0
        return a, b, c, d
    for x in (2.0, -2.0):
        a, b, c, d = to_static(f)(tensor(x))
        assert (type(a), a, c) == (int, 1, "same")
        assert (b.item(), d.item()) == ((2.5, 2.0) if x > 0 else (3.5, 0.0)) and d.dtype == paddle.float32


def test_b4_in_loops():
    def f(x):
        while x < 10:
            x = x + 1
            last = x * 2
        return last
    assert to_static(f)(tensor(1.0)).item() == 20.0
    with pytest.raises(ValueError, match="`last` is undefined when the loop at .* runs no iteration"):
        to_static(f)(tensor(20.0))          # Python would stop there, too

    def sometimes(x, use):
        while x < 10:
            x = x + 1
            last = x * 2
        if use:
            x = last
        return x
    assert to_static(sometimes)(tensor(20.0), False).item() == 20.0
    with pytest.raises(NameError, match="`last` is undefined when the loop at .* runs no iteration"):
        to_static(sometimes)(tensor(1.0), True)

    def early(x):
        while x < 10:
            x = x + last        # noqa: F821
            last = x * 2
        return last
    with pytest.raises(NameError):
        to_static(early)(tensor(1.0))

    def in_a_branch(x):
        while x < 10:
            x = x + 1
            if x > 3:
                last = x
        return last
    with pytest.raises(NameError, match="`last` is undefined when the condition is False"):
        to_static(in_a_branch)(tensor(1.0))

    def grows(x):
        xs = []
        while x < 10:
            x = x + 1
            xs.append(x)
        return xs
    with pytest.raises(TypeError, match="A list cannot grow in a loop that the program counts"):
        to_static(grows)(tensor(1.0))

    def changes(x):
        y = x
        while x < 10:
            x = x + 1
            y = paddle.concat([y.reshape([-1]), x.reshape([1])])
        return y
    with pytest.raises(TypeError, match=r"`y` is Tensor f32\[\] before the loop .* and Tensor f32\[2\] after an"):
        to_static(changes)(tensor(1.0))

    def temporary(x):
        y = "words"
        while x < 10:
            y = x * 2
            x = x + y
        return x
    assert to_static(temporary)(tensor(1.0)).item() == temporary(1.0)


SOURCE = """
def decide(x):
    if x > 0:
        return x
    return -x
"""


def without_source(text, name):
    space = {}
    exec(compile(text, "<no file>", "exec"), space)
    return space[name]


@pytest.mark.parametrize("text", [
    SOURCE, "decide = lambda x: int(x)", "decide = lambda x: float(x)", "decide = lambda x: range(x)",
    "import numpy\ndecide = lambda x: numpy.asarray(x)", "decide = lambda x: not x",
])
def test_b5_without_source_the_error_teaches(text):
    with pytest.raises(TypeError) as told:
        to_static(without_source(text, "decide"))(tensor(1))
    message = str(told.value)
    assert "which is being traced" in message and "<no file>:" in message
    assert "paddle.static.nn.cond" in message and "paddle.where" in message


def test_b5_len_and_iteration():
    for text in ("decide = lambda x: len(x)", "decide = lambda x: list(x)", "decide = lambda x: [y for y in x]"):
        with pytest.raises(TypeError, match="0-D tensor"):
            to_static(without_source(text, "decide"))(tensor(1.0))
    with pytest.raises(TypeError, match="expected a loop whose number of iterations is known"):
        to_static(lambda n: [i for i in range(n)])(tensor(3))


def test_b5_the_line_is_quoted():
    def f(x):
        return np.asarray(x) + 1
    with pytest.raises(TypeError) as told:
        to_static(f)(tensor(1.0))
    assert f"{__file__}:{line_of(f, 'np.asarray')}: `return np.asarray(x) + 1`" in str(told.value)


# ------------------------------------------------------------------------------------------------------- looking at it
def test_code():
    def f(x):
        """Halves."""
        if x > 0:
            y = x
        else:
            y = -x
        return y
    text = to_static(f).code
    assert text == text_of(f) and text.startswith("def f(x):") and '"""Halves."""' in text
    assert "_jst.If(x > 0, if_true_0, if_false_0, ('y',))" in text
    with pytest.raises(ValueError, match="expected a function whose source can be read"):
        to_static(without_source(SOURCE, "decide")).code    # noqa: B018


def test_levels(capsys):
    set_code_level(100, also_to_stdout=True)
    set_verbosity(1)
    assert transformed(lambda x: x if x > 0 else -x)(-2) == 2
    out, err = capsys.readouterr()
    assert "_jst.IfExp(x > 0, lambda: x, lambda: -x)" in out and out in err
    assert f"({__file__}:" in err and "rewrote test_levels" in err
    set_code_level(0)
    set_verbosity(0)
    assert transformed(lambda x: x if x > 1 else -x)(-2) == 2
    assert capsys.readouterr() == ("", "")
    for setting in (set_code_level, set_verbosity):
        with pytest.raises(TypeError, match=f"{setting.__name__}: expected level to be an int"):
            setting("high")


def test_rewriting_costs_one_parse():
    def f(x):
        return x if x > 0 else -x
    before = transformed(f).__code__
    assert all(transformed(f).__code__ is before for _ in range(3))


class Named:
    """A method may name its class, which is a global."""

    factor = 2.0

    @staticmethod
    def scaled(v):
        return v * Named.factor if v.sum() > 0 else v - Named.factor


def test_a_method_that_names_its_class():
    compiled = to_static(lambda v: Named.scaled(v))
    assert compiled(paddle.to_tensor([1.0, 10.0])).tolist() == [2.0, 20.0]
    assert compiled(-paddle.to_tensor([1.0, 10.0])).tolist() == [-3.0, -12.0]
