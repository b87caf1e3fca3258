"""full_graph=True: what is read by a name that only the trace knows, of classes, modules and the environment, is
guarded; what no guard can see is said."""

import datetime
import os
import random
import sys
import time
import types
import uuid
import warnings

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.jit import explain, to_static

G = 2.0
MODULE = types.ModuleType("a_module_of_the_user")
PLAIN = types.SimpleNamespace()


class Width:
    pass


class Slots:
    __slots__ = ("k", "late")


class Bag:
    """Its attributes are made by each test."""

    @classmethod
    def by_class(cls, v):
        return v * cls.factor

    @staticmethod
    def by_name(v):
        return v * Bag.factor

    def by_type(self, v):
        return v * type(self).factor

    def by_dunder(self, v):
        return v * self.__class__.factor


THING, SLOTS, LAYER = Bag(), Slots(), nn.Layer()


def by_default(v, acc=[1.0]):       # noqa: B006
    return v * len(acc)


def by_keyword(v, *, acc={"a": 1.0}, k=2.0):        # noqa: B006
    return v * acc["a"] * k


def maybe():
    try:
        return LATE                 # noqa: F821
    except NameError:
        return 1.0


def x():
    return paddle.to_tensor([1.0, 10.0], dtype="float64")


@pytest.fixture(autouse=True)
def fresh():
    """Every test finds the same things."""
    names = {k: v for k, v in globals().items()}
    MODULE.__dict__.update(a=2.0), PLAIN.__dict__.update(a=2.0), THING.__dict__.update(a=2.0)
    Width.a, Bag.factor, SLOTS.k, LAYER.a = 2.0, 2.0, 2.0, 2.0
    os.environ["MINIPD_TEST"] = "2.0"
    by_default.__defaults__, by_keyword.__kwdefaults__ = ([1.0],), {"acc": {"a": 1.0}, "k": 2.0}
    yield
    for k in [k for k in globals() if k not in names]:
        del globals()[k]
    globals().update(names)
    for owner in (MODULE, PLAIN, THING, Width, Bag, LAYER, SLOTS):
        for name in ("a", "late", "factor", "k"):
            if name in vars(owner) if hasattr(owner, "__dict__") else hasattr(owner, name):
                delattr(owner, name)
    for name in ("MINIPD_TEST", "MINIPD_LATE"):
        os.environ.pop(name, None)


def put(owner, name):
    return lambda: setattr(owner, name, 3.0)


def item(owner, key, value=3.0):
    return lambda: owner.__setitem__(key, value)


READS = {
    "a default": (by_default, lambda: by_default.__defaults__[0].append(1.0)),
    "a default by keyword": (by_keyword, lambda: item(by_keyword.__kwdefaults__["acc"], "a")()),
    "a default of a helper": (lambda v: by_default(v), lambda: by_default.__defaults__[0].append(1.0)),
    "other defaults": (lambda v: by_keyword(v), lambda: item(by_keyword.__kwdefaults__, "k")()),
    "a class": (lambda v: v * Width.a, put(Width, "a")),
    "hasattr of a class": (lambda v: v * (5.0 if hasattr(Width, "late") else 2.0), put(Width, "late")),
    "getattr of a class": (lambda v: v * getattr(Width, "late", 1.0), put(Width, "late")),
    "vars of a class": (lambda v: v * vars(Width)["a"], put(Width, "a")),
    "a class method": (lambda v: Bag.by_class(v), put(Bag, "factor")),
    "a static method": (lambda v: Bag.by_name(v), put(Bag, "factor")),
    "type": (lambda v: THING.by_type(v), put(Bag, "factor")),
    "__class__": (lambda v: THING.by_dunder(v), put(Bag, "factor")),
    "getattr of an object": (lambda v: v * getattr(THING, "a"), put(THING, "a")),            # noqa: B009
    "vars of an object": (lambda v: v * vars(THING)["a"], put(THING, "a")),
    "vars().get": (lambda v: v * vars(THING).get("late", 1.0), put(THING, "late")),
    "in vars": (lambda v: v * (5.0 if "late" in vars(THING) else 1.0), put(THING, "late")),
    "not in __dict__": (lambda v: v * (5.0 if "late" not in THING.__dict__ else 1.0), put(THING, "late")),
    "__dict__": (lambda v: v * THING.__dict__["a"], put(THING, "a")),
    "vars().items": (lambda v: v * sum(n for n in vars(THING).values()), put(THING, "late")),
    "dir": (lambda v: v * (5.0 if "late" in dir(THING) else 1.0), put(THING, "late")),
    "a namespace": (lambda v: v * getattr(PLAIN, "a"), put(PLAIN, "a")),                     # noqa: B009
    "hasattr of a namespace": (lambda v: v * (5.0 if hasattr(PLAIN, "late") else 2.0), put(PLAIN, "late")),
    "slots": (lambda v: v * getattr(SLOTS, "k"), put(SLOTS, "k")),                           # noqa: B009
    "an empty slot": (lambda v: v * getattr(SLOTS, "late", 1.0), put(SLOTS, "late")),
    "vars of a layer": (lambda v: v * vars(LAYER)["a"], put(LAYER, "a")),
    "a module": (lambda v: v * MODULE.a, put(MODULE, "a")),
    "getattr of a module": (lambda v: v * getattr(MODULE, "late", 1.0), put(MODULE, "late")),
    "hasattr of a module": (lambda v: v * (5.0 if hasattr(MODULE, "late") else 1.0), put(MODULE, "late")),
    "vars of a module": (lambda v: v * vars(MODULE)["a"], put(MODULE, "a")),
    "globals": (lambda v: v * globals()["G"], item(globals(), "G")),
    "globals().get": (lambda v: v * globals().get("LATE", 1.0), item(globals(), "LATE")),
    "in globals": (lambda v: v * (5.0 if "LATE" in globals() else 1.0), item(globals(), "LATE")),
    "a global that comes later": (lambda v: v * maybe(), item(globals(), "LATE")),
    "os.environ": (lambda v: v * float(os.environ["MINIPD_TEST"]), item(os.environ, "MINIPD_TEST", "3.0")),
    "os.environ.get": (lambda v: v * float(os.environ.get("MINIPD_LATE", 1)), item(os.environ, "MINIPD_LATE", "3.0")),
    "os.getenv": (lambda v: v * float(os.getenv("MINIPD_LATE", "1")), item(os.environ, "MINIPD_LATE", "3.0")),
    "in os.environ": (lambda v: v * (5.0 if "MINIPD_LATE" in os.environ else 1), item(os.environ, "MINIPD_LATE", "3")),
}


@pytest.mark.parametrize("what", READS)
def test_what_is_read_is_guarded(what):
    f, change = READS[what]
    compiled = to_static(f)
    for _ in range(2):
        assert compiled(x()).tolist() == f(x()).tolist()
    assert compiled.get_traced_count() == 1
    before = f(x()).tolist()
    change()
    for _ in range(2):
        assert compiled(x()).tolist() == f(x()).tolist() != before
    assert compiled.get_traced_count() == 2, compiled.traces


def test_guards_are_told_by_name():
    def f(v):
        return v * float(os.environ["MINIPD_TEST"]) * vars(THING)["a"] * Width.a
    told = explain(to_static(f), x()).guards
    assert {"environment variable MINIPD_TEST", "item 'a'", "attribute Width.a"} <= set(told)


def test_what_a_function_makes_and_changes_itself_is_no_guard():
    def f(v, log=[]):       # noqa: B006
        made = types.SimpleNamespace(k=1.0)
        first = getattr(made, "k")          # noqa: B009
        made.k = 2.0
        own = Bag()
        own.n = vars(own).get("n", 4.0)
        own.n += 1.0
        log.append("called")
        return v * first * made.k * own.n
    compiled = to_static(f)
    for _ in range(3):
        assert compiled(x()).tolist() == [10.0, 100.0]
    assert compiled.get_traced_count() == 1 and f.__defaults__[0] == 3 * ["called"]


class Computed:
    """Every read of an attribute gives another object."""

    @property
    def listed(self):
        return [THING.a]

    def __getattr__(self, name):
        if name != "lazy":
            raise AttributeError(name)
        return [THING.a]


@pytest.mark.parametrize("f", [
    lambda v, o: v * getattr(o, "listed")[0], lambda v, o: v * getattr(o, "lazy")[0],       # noqa: B009
    lambda v, o: v * (1.0 if hasattr(o, "other") else THING.a), lambda v, o: v * getattr(Bag, "by_class")(o.lazy[0])])  # noqa: B009
def test_what_is_computed_is_read_by_what_it_reads(f):
    compiled, computed = to_static(f), Computed()
    for _ in range(2):
        assert compiled(x(), computed).tolist() == f(x(), computed).tolist()
    assert compiled.get_traced_count() == 1


def test_a_default_that_the_function_reads_and_changes():
    def counted(v, n=[0.0]):        # noqa: B006
        n[0] += 1.0
        return v * n[0]
    compiled = to_static(counted)
    assert [compiled(x()).tolist()[0] for _ in range(3)] == [1.0, 2.0, 3.0]


def test_the_environment_as_the_library_reads_it_is_no_guard():
    def f(v):
        os.path.expanduser("~/x")
        return v + 1.0
    assert not [g for g in explain(to_static(f), x()).guards if "environment" in g]


@pytest.mark.parametrize("f, name", [
    (lambda v: v * time.time(), "time"), (lambda v: v * time.perf_counter(), "perf_counter"),
    (lambda v: v * datetime.datetime.now().year, "now"), (lambda v: v * os.urandom(1)[0], "urandom"),
    (lambda v: v * (uuid.uuid4().int % 7), "uuid4"), (lambda v: v * np.random.default_rng().random(), "default_rng"),
    (lambda v: v * random.Random().random(), "Random"), (lambda v: v * len(open(__file__).read()), "open")])
def test_what_is_called_in_the_trace_only_is_said_once(f, name):
    compiled = to_static(f)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        globals().pop("__warningregistry__", None)
        first = compiled(x())
        compiled(x())
        compiled(paddle.concat([x(), x()]))             # traced again
    said = [w for w in caught if f"{name}() is called when the function is traced" in str(w.message)]
    assert len(said) == 1 and said[0].filename == __file__ and said[0].lineno == f.__code__.co_firstlineno
    assert compiled(x()).tolist() == first.tolist()


def test_clocks_are_nobodys_affair_elsewhere():
    def f(v):
        return v * (time.time() > 0), np.random.default_rng(7).random()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        to_static(f, full_graph=False)(x())
        to_static(lambda v: v * np.random.default_rng(7).random())(x())


@pytest.mark.parametrize("f", [lambda v: v * random.random(), lambda v: v * np.random.rand(),
                               lambda v: v * np.random.uniform()])
def test_random_numbers_from_around_are_refused(f):
    with pytest.raises(TypeError, match=r"test_reads.py:\d+: expected state that can be put back.*paddle.rand"):
        to_static(f)(x())


def test_nothing_watches_after_a_trace():
    kind, before = type(os.environ), type(os.environ).__getitem__
    with pytest.raises(ZeroDivisionError):
        to_static(lambda v: v * (1 / 0))(x())
    to_static(lambda v: v + sys.maxsize)(x())
    assert kind.__getitem__ is before and "dy2static_readers" not in paddle.framework.rank.current().flags
