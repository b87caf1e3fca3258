"""Where the Llama's parameters live: on which stage."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minipd.framework.errors import InputError
from minipd.models.llama import LlamaForCausalLM
from minipd.models.placements import copies_on_stages, stage_of
from tests.models.llamas import SMALL, TIED


@given(st.integers(1, 12), st.integers(0, 11))
def test_stages_are_consecutive_layers_and_differ_by_one_at_most(stages, more):
    layers = stages + more
    found = [stage_of(f"llama.layers.{i}.mlp.up_proj.weight", layers, stages) for i in range(layers)]
    sizes = [len(list(group)) for _, group in itertools.groupby(found)]
    assert found == sorted(found) and len(sizes) == stages
    assert sizes == sorted(sizes, reverse=True) and sizes[0] - sizes[-1] <= 1


def test_more_stages_than_layers_are_refused():
    """Hard case E11: no stage without a layer."""
    with pytest.raises(InputError) as caught:
        stage_of("llama.layers.0.mlp.up_proj.weight", 3, 4)
    assert str(caught.value) == ("expected at least one layer on each of pp = 4 stages, got model.layers = 3: raise "
                                 "model.layers or lower pp in dist.mesh")


@pytest.mark.parametrize("config", [SMALL, TIED])
def test_every_parameter_belongs_to_the_stage_of_the_piece_that_uses_it(config):
    """The pieces' names are the beginnings of their parameters' names."""
    model = LlamaForCausalLM(config)
    pieces = [name for name, _ in model.pieces(4)]
    assert [stage_of(name, 2, 2) for name in pieces] == [0, 0, 1, 1, 1]
    for name, _ in model.named_parameters():
        owner, = (piece for piece in pieces if name.startswith(piece + "."))
        assert stage_of(name, 2, 2) == stage_of(owner, 2, 2)


def test_tied_to_the_embedding_the_output_layer_has_a_copy_on_the_last_stage():
    assert copies_on_stages(True, 3) == {"llama.embed_tokens.weight": 2}
    assert copies_on_stages(False, 3) == {}
