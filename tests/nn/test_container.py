"""Sequential and LayerList."""

import pytest

import minipd as paddle
from minipd import nn
from minipd.framework.rank import current


class Add(nn.Layer):
    def __init__(self, n):
        super().__init__()
        self.n = n

    def forward(self, x):
        return x * 10 + self.n


def test_sequential_runs_in_order():
    model = nn.Sequential(Add(1), Add(2), Add(3))
    assert model(0) == 123
    assert model[:2](0) == 12 and type(model[1:]) is nn.Sequential
    model.insert(0, Add(7))
    assert model(0) == 7123
    del model[1]
    assert model(0) == 723 and len(model) == 3
    model[-1] = Add(9)
    assert model(0) == 729
    model.append(Add(4)).extend([Add(5)])
    assert model(0) == 72945
    assert list(model._sub_layers) == ["0", "1", "2", "3", "4"]


def test_sequential_takes_names_lists_and_dicts():
    assert list(nn.Sequential(("a", Add(1)), ("b", Add(2)))._sub_layers) == ["a", "b"]
    assert nn.Sequential([Add(1), Add(2)])(0) == 12
    model = nn.Sequential({"x": Add(1), "y": Add(2)})
    assert model["y"] is model.y is model[1]


def test_numbers_out_of_range():
    model = nn.Sequential(Add(1))
    with pytest.raises(IndexError, match="Sequential: index 1 is out of range for 1 layers"):
        model[1]
    with pytest.raises(IndexError, match="LayerList.insert: index 2 is out of range for 1 layers"):
        nn.LayerList([Add(1)]).insert(2, Add(2))
    with pytest.raises(TypeError, match="expected a Layer, got int"):
        model.append(3)


def test_a_layer_list_is_a_list():
    blocks = nn.LayerList([Add(i) for i in range(4)])
    assert [b.n for b in blocks] == [0, 1, 2, 3] and [b.n for b in blocks[1:3]] == [1, 2]
    assert type(blocks[1:3]) is nn.LayerList
    with pytest.raises(NotImplementedError, match="a LayerList is not called"):
        blocks(1)


def test_slices_of_a_layer_list():
    blocks = nn.LayerList([Add(i) for i in range(5)])
    assert blocks.pop(1).n == 1 and [b.n for b in blocks.pop(slice(0, 2))] == [0, 2]
    assert [b.n for b in blocks] == [3, 4] and list(blocks._sub_layers) == ["0", "1"]
    blocks[0:1] = [Add(7), Add(8)]
    assert [b.n for b in blocks] == [7, 8, 4]
    assert [b.n for b in blocks.insert(3, Add(9))] == [7, 8, 4, 9]


def test_a_layer_dict_is_a_dict():
    d = nn.LayerDict([("a", Add(1)), ["b", Add(2)]])
    assert "a" in d and list(d) == list(d.keys()) == ["a", "b"] and [b.n for b in d.values()] == [1, 2]
    d.update(nn.LayerDict({"z": Add(3), "b": Add(4)}))
    assert [(k, v.n) for k, v in d.items()] == [("a", 1), ("b", 4), ("z", 3)] and d.pop("a").n == 1
    d["c"] = Add(5)
    del d["b"]
    assert [name for name, _ in d.named_sublayers()] == ["z", "c"] and d["c"] is d.c
    d.clear()
    assert len(d) == 0 and repr(d) == "LayerDict()"
    with pytest.raises(KeyError, match=r"LayerDict: expected one of \[\], got 'q'"):
        d["q"]
    with pytest.raises(TypeError, match="LayerDict: expected a dict or .key, entry. pairs, got int"):
        d.update(3)
    with pytest.raises(TypeError, match="expected a .key, entry. pair at position 0, got .'a', 1, 2."):
        nn.LayerDict([("a", 1, 2)])


def test_parameters_by_number_and_by_key():
    ps = [paddle.create_parameter([i + 1]) for i in range(3)]
    some = nn.ParameterList(ps[:2])
    assert some.append(ps[2]) is some and list(some) == ps and some[-1] is ps[2] and list(some[1:]) == ps[1:]
    some[0] = ps[2]
    assert [name for name, _ in some.named_parameters()] == ["0", "1"] and list(some.state_dict()) == ["0", "1", "2"]
    with pytest.raises(IndexError, match="ParameterList: index 3 is out of range for 3 parameters"):
        some[3] = ps[0]
    by_key = nn.ParameterDict({"w": ps[0]})
    by_key.update([("v", ps[1])])
    by_key["w"] = ps[2]
    assert list(by_key) == ["w", "v"] and by_key["w"] is ps[2] and repr(by_key) == "ParameterDict()"
    with pytest.raises(TypeError, match="expected a Parameter, got Tensor"):
        by_key["u"] = paddle.ones([1])


class Path(nn.Layer):
    def forward(self):
        return current().rng.path


def test_the_path_of_random_draws_is_the_name_in_the_model():
    class Block(nn.Layer):
        def __init__(self):
            super().__init__()
            self.inner = Path()

        def forward(self):
            return self.inner()

    class Model(nn.Layer):
        def __init__(self):
            super().__init__()
            self.blocks = nn.LayerList([Block()])
            self.blocks.append(Block())                 # before the list has a name ...
            self.groups = nn.LayerList([nn.LayerList([Path()])])

        def forward(self):
            return [b() for b in self.blocks] + [self.groups[0][0]()]
    model = Model()
    model.blocks.append(Block())                        # ... and after
    assert model() == ["blocks.0.inner", "blocks.1.inner", "blocks.2.inner", "groups.0.0"]
    assert current().rng.path == ""


def test_the_path_is_left_when_forward_raises():
    model = nn.Sequential(nn.Linear(2, 2))
    with pytest.raises(ValueError):
        model(paddle.ones([3, 3]))
    assert current().rng.path == ""
