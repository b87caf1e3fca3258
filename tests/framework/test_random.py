"""The keys of random draws: by name, not by order."""

import json

import pytest

from minipd.framework import context  # noqa: F401  (makes the root context)
from minipd.framework.philox import key_of
from minipd.framework.random import Generator, seed
from minipd.framework.rank import current


def test_a_draw_is_named_by_seed_step_micro_path_and_count():
    g = Generator(seed=11)
    g.set_step(5)
    g.set_micro(2)
    with g.scope("layers"), g.scope("3"):
        g.next_key()
        assert g.next_key().tolist() == key_of(11, "draw", 5, 2, "layers.3", 1).tolist()
    assert g.path == ""


def test_a_layer_draws_the_same_whatever_others_draw():
    def draws(order):
        g, keys = Generator(1), {}
        for name in order:
            with g.scope(name):
                keys.setdefault(name, []).append(g.next_key().tolist())
        return keys

    assert draws(["a", "a", "b"]) == draws(["a", "b", "a"])
    keys = draws(["a", "a", "b"])
    assert keys["a"][0] != keys["a"][1] and keys["a"][0] != keys["b"][0]


def test_steps_and_micro_batches_count_anew():
    g = Generator(1)
    first = g.next_key().tolist()
    second = g.next_key().tolist()
    g.set_micro(1)
    other = g.next_key().tolist()
    g.set_step(1)
    assert g.micro == 0
    later = g.next_key().tolist()
    assert len({tuple(k) for k in (first, second, other, later)}) == 4
    g.set_step(0)
    assert g.next_key().tolist() == first


def test_a_compiled_step_draws_by_recorded_path():
    eager, compiled = Generator(1), Generator(1)
    with eager.scope("drop"):
        keys = [eager.next_key().tolist() for _ in range(2)]
    assert [compiled.next_key("drop").tolist() for _ in range(2)] == keys
    assert compiled.key("drop", 0).tolist() == keys[0]


def test_parameters_in_creation_order():
    g = Generator(1)
    keys = [g.init_key().tolist() for _ in range(3)]
    assert keys == [key_of(1, "init", i).tolist() for i in range(3)]
    assert g.init_key("weight").tolist() == key_of(1, "init", "weight").tolist()
    g.seed(1)
    assert g.init_key().tolist() == keys[0]


def test_state_round_trips_through_json():
    g = Generator(3)
    g.set_step(4)
    g.push("a")
    g.next_key()
    g.init_key()
    state = json.loads(json.dumps(g.get_state()))
    expected = [g.next_key().tolist() for _ in range(2)]
    other = Generator()
    other.set_state(state)
    assert [other.next_key().tolist() for _ in range(2)] == expected
    assert other.path == "a" and other.created == 1
    with pytest.raises(ValueError, match="random state: expected the entries"):
        other.set_state({"seed": 1})


def test_recomputation_draws_again():
    g = Generator(3)
    with g.scope("block"):
        before = g.get_state()
        first = [g.next_key().tolist() for _ in range(3)]
        after = g.get_state()
        g.set_state(before)
        assert [g.next_key().tolist() for _ in range(3)] == first
        assert g.get_state() == after


def test_a_scope_is_left_when_it_raises():
    g = Generator()
    with pytest.raises(KeyError), g.scope("a"):
        raise KeyError
    assert g.path == ""


def test_seed_resets_this_ranks_generator():
    generator = seed(5)
    assert generator is current().rng and generator.initial_seed == 5
    first = generator.next_key().tolist()
    assert seed(5).next_key().tolist() == first
    assert seed(6).next_key().tolist() != first


def test_a_state_that_is_returned_to_makes_no_engine_anew():
    g = Generator(5).draw_as_paddle()
    state = g.get_state()
    first = g.next_key()
    for _ in range(3):
        g.set_state(state)
        assert (g.next_key() != first).any()            # a stream of its own: the first key still names its draw
    assert len({id(stream.engine) for stream in g.streams}) == 1
