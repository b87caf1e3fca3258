"""Which pipeline stage a parameter is on."""

import numpy as np

from minipd.framework.errors import InputError
from minipd.models.placements import stage_of
from tools.course.checking import check


def stages(layers, n):
    return [stage_of(f"llama.layers.{i}.mlp.up_proj.weight", layers, n) for i in range(layers)]


def on(layers, n):
    return f"the stage of each of {layers} layers on {n} stages"


def test_an_even_cut():
    check([0, 0, 1, 1], lambda: stages(4, 2), on(4, 2))


def test_five_layers_on_two_stages():
    check([0, 0, 0, 1, 1], lambda: stages(5, 2), on(5, 2))


def test_no_stage_is_empty():
    """Chunks of ceil(5 / 4) would be 2, 2, 1, 0: a whole stage of ranks with nothing to do."""
    check([0, 0, 1, 2, 3], lambda: stages(5, 4), on(5, 4))


def test_lengths_differ_by_one_at_most():
    check([0, 0, 0, 1, 1, 2, 2], lambda: stages(7, 3), on(7, 3))


def test_one_stage():
    check([0, 0, 0], lambda: stages(3, 1), on(3, 1))


def test_a_layer_on_each():
    check([0, 1, 2], lambda: stages(3, 3), on(3, 3))


def test_the_first_and_the_last_stage():
    for name, stage in (("llama.embed_tokens.weight", 0), ("llama.norm.weight", 2), ("lm_head.weight", 2)):
        check(stage, lambda name=name: stage_of(name, 6, 3), f"{name} of 6 layers on 3 stages")


def test_norms_inside_of_layers_stay_there():
    for name in ("input_layernorm.weight", "post_attention_layernorm.weight", "self_attn.q_proj.weight"):
        check(0, lambda name=name: stage_of(f"llama.layers.0.{name}", 6, 3),
              f"llama.layers.0.{name} of 6 layers on 3 stages")


def test_more_than_ten_layers():
    check(1, lambda: stage_of("llama.layers.10.mlp.up_proj.weight", 20, 2),
          "llama.layers.10... of 20 layers on 2 stages")
    check(0, lambda: stage_of("llama.layers.1.mlp.up_proj.weight", 20, 2), "llama.layers.1... of 20 layers on 2 stages")


def test_pieces_go_with_their_parameters():
    for name, stage in (("llama.embed_tokens", 0), ("llama.layers.4", 1), ("llama.norm", 1), ("lm_head", 1)):
        check(stage, lambda name=name: stage_of(name, 5, 2), f"the piece {name} of 5 layers on 2 stages")


def test_fewer_layers_than_stages():
    def refused():
        try:
            return stage_of("llama.layers.0.mlp.up_proj.weight", 2, 3)
        except InputError as error:
            named = "2" in str(error) and "3" in str(error)
            return "InputError" if named else f"InputError without the numbers: {error}"
    check("InputError", refused, "2 layers on 3 stages: InputError(expected, got, do), which names both numbers")


def test_every_cut_is_even_and_in_order():
    for layers in range(1, 14):
        for n in range(1, layers + 1):
            longer = [len(part) for part in np.array_split(np.arange(layers), n)]
            cut = [stage for stage, length in enumerate(longer) for _ in range(length)]
            check(cut, lambda layers=layers, n=n: stages(layers, n), on(layers, n))
