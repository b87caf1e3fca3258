"""Transformer layers against numpy, and decoding step by step against doing it at once."""

import numpy as np
import pytest

import minipd as paddle
from minipd import nn

rs = np.random.RandomState(3)


def tensor(*shape):
    return paddle.to_tensor(rs.randn(*shape).astype("float32"))


def linear(layer, x):
    return x @ layer.weight.numpy().astype("float64") + layer.bias.numpy()


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def norm(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def attention(layer, q, k, v, mask=0.0):
    """One head after the other; [S, E] of one sequence."""
    q, k, v = linear(layer.q_proj, q), linear(layer.k_proj, k), linear(layer.v_proj, v)
    d, heads, weights = layer.head_dim, [], []
    for h in range(layer.num_heads):
        part = slice(h * d, (h + 1) * d)
        weights.append(softmax(q[:, part] @ k[:, part].T / d ** 0.5 + mask))
        heads.append(weights[-1] @ v[:, part])
    return linear(layer.out_proj, np.concatenate(heads, -1)), np.stack(weights)


def test_multi_head_attention():
    layer = nn.MultiHeadAttention(6, 2, kdim=4, vdim=5, need_weights=True)
    q, k, v, mask = tensor(2, 3, 6), tensor(2, 4, 4), tensor(2, 4, 5), tensor(2, 1, 3, 4)
    out, weights = layer(q, k, v, mask)
    for b in range(2):
        want = attention(layer, q.numpy()[b], k.numpy()[b], v.numpy()[b], mask.numpy()[b, 0])
        np.testing.assert_allclose(out.numpy()[b], want[0], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(weights.numpy()[b], want[1], rtol=1e-4, atol=1e-6)


def test_masks_of_truth_values():
    layer = nn.MultiHeadAttention(6, 2)
    x = tensor(1, 3, 6)
    seen = np.tri(3, dtype=bool)
    want = attention(layer, *[x.numpy()[0]] * 3, np.where(seen, 0, -1e30))[0]
    for mask in (seen, seen.astype("int64")):
        np.testing.assert_allclose(layer(x, attn_mask=paddle.to_tensor(mask)).numpy()[0], want, rtol=1e-4, atol=1e-5)


def test_a_cache_grows_step_by_step():
    layer = nn.MultiHeadAttention(6, 2, need_weights=True)
    x = tensor(2, 4, 6)
    whole, _ = layer(x, attn_mask=paddle.to_tensor(np.tri(4, dtype=bool)))
    cache = layer.gen_cache(x)
    assert type(cache) is nn.MultiHeadAttention.Cache and cache.k.shape == [2, 2, 0, 3]
    for t in range(4):
        out, weights, cache = layer(x[:, t:t + 1], cache=cache)
        np.testing.assert_allclose(out.numpy(), whole.numpy()[:, t:t + 1], rtol=1e-4, atol=1e-5)
        assert weights.shape == [2, 2, 1, t + 1]
    static = layer.gen_cache(x, x, nn.MultiHeadAttention.StaticCache)
    out, _, same = layer(x, x, x, None, static)
    assert same is static
    np.testing.assert_allclose(out.numpy(), layer(x)[0].numpy(), rtol=1e-5)
    assert layer.gen_cache(cache.k, cache.v).v is cache.v


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_one_layer(kind, before):
    make = nn.TransformerEncoderLayer if kind == "encoder" else nn.TransformerDecoderLayer
    layer = make(6, 2, 8, dropout=0.0, normalize_before=before)
    x, memory = tensor(1, 3, 6), tensor(1, 4, 6)
    got = layer(x) if kind == "encoder" else layer(x, memory)

    parts = [lambda y: attention(layer.self_attn, y, y, y)[0],
             lambda y: linear(layer.linear2, np.maximum(linear(layer.linear1, y), 0))]
    if kind == "decoder":
        other = memory.numpy()[0]
        parts.insert(1, lambda y: attention(layer.cross_attn, y, other, other)[0])
    want = x.numpy()[0].astype("float64")
    for part in parts:
        want = want + part(norm(want)) if before else norm(want + part(want))
    np.testing.assert_allclose(got.numpy()[0], want, rtol=1e-4, atol=1e-5)


def test_the_whole_is_its_parts():
    model = nn.Transformer(6, 2, 2, 2, 8, dropout=0.0)
    src, tgt, mask = tensor(2, 4, 6), tensor(2, 3, 6), tensor(2, 1, 3, 4)
    memory = src
    for layer in model.encoder.layers:
        memory = layer(memory)
    out = tgt
    for layer in model.decoder.layers:
        out = layer(out, model.encoder.norm(memory), memory_mask=mask)
    np.testing.assert_allclose(model(src, tgt, memory_mask=mask).numpy(), model.decoder.norm(out).numpy(), rtol=1e-5)
    first, second = (layer.linear1.weight.numpy() for layer in model.encoder.layers)
    assert (first != second).all(), "each layer has first values of its own"


def test_decoding_with_caches():
    model = nn.Transformer(6, 2, 2, 2, 8, dropout=0.0)
    model.eval()
    x, memory = tensor(2, 4, 6), tensor(2, 3, 6)
    causal = model.generate_square_subsequent_mask(4)
    assert causal.tolist()[1] == [0, 0, -np.inf, -np.inf]
    want = model.decoder(x, memory, causal)
    cache, mine = model.decoder.gen_cache(memory), model.encoder.gen_cache(x)
    for t in range(4):
        out, cache = model.decoder(x[:, t:t + 1], memory, cache=cache)
        np.testing.assert_allclose(out.numpy(), want.numpy()[:, t:t + 1], rtol=1e-3, atol=1e-5)
        out, mine = model.encoder(x[:, t:t + 1], cache=mine)
        np.testing.assert_allclose(out.numpy(), model.encoder(x, causal).numpy()[:, t:t + 1], rtol=1e-3, atol=1e-5)
    own, others = model.decoder.gen_cache(memory, do_zip=True)
    assert own[0].k.shape == [2, 2, 0, 3] and others[1].v.shape == [2, 2, 3, 3]


def test_dropouts_have_their_own_rates():
    layer = nn.TransformerEncoderLayer(6, 2, 8, 0.3, attn_dropout=0.2, act_dropout=0.1)
    assert (layer.self_attn.dropout, layer.dropout.p, layer.dropout1.p, layer.dropout2.p) == (0.2, 0.1, 0.3, 0.3)
    x = tensor(1, 3, 6)
    assert (layer(x).numpy() != layer(x).numpy()).any()
    layer.eval()
    np.testing.assert_array_equal(layer(x).numpy(), layer(x).numpy())


def means(layer, *names):
    return [round(float(dict(layer.named_parameters())[f"{name}.weight"].numpy().mean()), 2) for name in names]


def test_attributes_of_each_part():
    """Two attributes are for attention and network; the three of a whole, for its two kinds of layers, in their way."""
    one, two, three = (nn.initializer.Constant(c) for c in (0.1, 0.2, 0.3))
    layer = nn.TransformerDecoderLayer(4, 2, 8, weight_attr=[one, two, three], bias_attr=[False, None, None])
    assert means(layer, "self_attn.q_proj", "cross_attn.q_proj", "linear2") == [0.1, 0.2, 0.3]
    assert layer.self_attn.q_proj.bias is None and layer.linear1.bias is not None
    names = ("encoder.layers.0.self_attn.k_proj", "encoder.layers.0.linear1", "decoder.layers.0.self_attn.k_proj",
             "decoder.layers.0.cross_attn.k_proj", "decoder.layers.0.linear1")
    for attrs, want in (([one, two], [0.1, 0.2, 0.1, 0.1, 0.2]), ([one, two, three], [0.1, 0.3, 0.1, 0.2, 0.3]),
                        ([two], [0.2] * 5), (three, [0.3] * 5)):
        assert means(nn.Transformer(4, 2, 1, 1, 8, weight_attr=attrs), *names) == want


def test_names_are_those_of_paddle():
    layer = nn.TransformerDecoderLayer(4, 2, 8)
    attentions = [f"{a}.{p}_proj.{w}" for a in ("self_attn", "cross_attn") for p in ("q", "k", "v", "out")
                  for w in ("weight", "bias")]
    rest = [f"{name}.{w}" for name in ("linear1", "linear2", "norm1", "norm2", "norm3") for w in ("weight", "bias")]
    assert list(layer.state_dict()) == attentions + rest
    assert list(nn.Transformer(4, 2, 1, 1, 8).state_dict())[-2:] == ["decoder.norm.weight", "decoder.norm.bias"]


class Plain(nn.Layer):
    pass


def test_what_does_not_fit():
    for call, message in (
            (lambda: nn.MultiHeadAttention(8, 3), "embed_dim to be a positive multiple of num_heads, got embed_dim=8"),
            (lambda: nn.TransformerEncoderLayer(8, 2, 0), "TransformerEncoderLayer: expected d_model, nhead and dim"),
            (lambda: nn.TransformerEncoderLayer(8, 2, 8, activation="no"), "name of a function of nn.functional"),
            (lambda: nn.TransformerEncoderLayer(8, 2, 8, weight_attr=[None] * 3), "or a list of 2, got 3"),
            (lambda: nn.Transformer(8, 2, 1, 1, 8, bias_attr=[None] * 4), "a list of 1 to 3, got 4"),
            (lambda: nn.TransformerEncoder(Plain(), 2), "keeps its arguments in _config, so that 1 more"),
            (lambda: nn.MultiHeadAttention(8, 2)(tensor(2, 3, 8), tensor(3, 3, 8)), "MultiHeadAttention: ")):
        with pytest.raises(ValueError, match=message):
            call()
    assert type(nn.Transformer(8, 2, 1, 1, 8, custom_encoder=Plain()).encoder) is Plain
