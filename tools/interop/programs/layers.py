"""What layers are made of, and their losses."""

from tools.interop.programs.registry import data, program


@program
def activations(p):
    F, x = p.nn.functional, data(p)
    return (F.relu(x) + F.sigmoid(x) + F.silu(x) + F.gelu(x)).sum()


@program
def softmaxes(p):
    F, x = p.nn.functional, data(p)
    return (F.softmax(x) * F.log_softmax(x)).sum()


@program
def softmax_first(p):
    return (p.nn.functional.softmax(data(p), axis=0) * data(p, "y")).sum()


@program
def linear(p):
    net = p.nn.Linear(6, 4)
    return net(data(p, shape=[-1, 6])).mean()


@program
def two_layers(p):
    net = p.nn.Sequential(p.nn.Linear(6, 4), p.nn.ReLU(), p.nn.Linear(4, 2))
    return net(data(p)).mean()


@program
def rms_norm(p):
    x, w = data(p, shape=[-1, 6]), p.create_parameter([6], "float32", name="scale")
    return (x * p.rsqrt(p.mean(x * x, axis=-1, keepdim=True) + 1e-6) * w).sum()


@program
def layer_norm(p):
    return (p.nn.LayerNorm(6)(data(p)) * data(p, "y")).sum()


@program
def cross_entropy(p):
    label = data(p, "label", [2, 1], "int64", stop=True)
    return p.nn.functional.cross_entropy(data(p), label)


@program
def cross_entropy_of_flat_labels(p):
    label = data(p, "label", [2], "int64", stop=True)
    return p.nn.functional.cross_entropy(data(p), label)


@program
def squared_error(p):
    return p.nn.functional.mse_loss(data(p), data(p, "y"))


@program
def embedding(p):
    ids = data(p, "ids", [2, 3], "int64", stop=True)
    return p.nn.Embedding(10, 4)(ids).sum()


@program
def convolved(p):
    x = data(p, shape=[2, 3, 8, 8])
    return p.nn.functional.avg_pool2d(p.nn.Conv2D(3, 4, 3, padding=1)(x), 2).mean()


@program
def depthwise(p):
    x, w = data(p, shape=[2, 3, 8, 8]), data(p, "w", [3, 1, 3, 3])
    return p.nn.functional.conv2d(x, w, groups=3, stride=2).sum()


@program
def max_pooled(p):
    return p.nn.functional.max_pool2d(data(p, shape=[2, 3, 8, 8]), 2).sum()


@program
def dropped(p):
    p.nn.functional.dropout(data(p), 0.3).sum()


@program
def attention(p):
    q, k, v = (data(p, name, [2, 3, 4]) for name in "qkv")
    weights = p.nn.functional.softmax(p.matmul(q, k, transpose_y=True) * 0.5)
    return p.matmul(weights, v).sum()


@program
def batch_norm(p):
    return (p.nn.BatchNorm2D(3)(data(p, shape=[2, 3, 4, 4])) * data(p, "y", [2, 3, 4, 4])).sum()


@program
def swiglu(p):
    return (p.nn.functional.silu(data(p)) * data(p, "y")).sum()


def activation(name, *args, **named):
    """A program of one activation."""
    def build(p):
        return (getattr(p.nn.functional, name)(data(p), *args, **named) * data(p, "y")).sum()
    build.__name__ = name
    program(build)


for _name in ("relu6", "elu", "selu", "celu", "leaky_relu", "hardswish", "hardsigmoid", "hardtanh", "hardshrink",
              "softshrink", "tanhshrink", "softplus", "softsign", "mish", "swish", "silu", "log_sigmoid", "tanh",
              "thresholded_relu"):
    activation(_name)


@program
def gelu_by_tanh(p):
    return p.nn.functional.gelu(data(p), approximate=True).sum()


@program
def glus(p):
    F, x = p.nn.functional, data(p)
    return F.glu(x, axis=-1).sum()


@program
def prelus(p):
    return p.nn.PReLU()(data(p)).sum()


@program
def maxouts(p):
    return p.nn.functional.maxout(data(p, shape=[2, 4, 3, 3]), 2).sum()


@program
def normalized(p):
    return (p.nn.functional.normalize(data(p)) * data(p, "y")).sum()


@program
def absolute_error(p):
    return p.nn.functional.l1_loss(data(p), data(p, "y"))


@program
def smooth_error(p):
    return p.nn.functional.smooth_l1_loss(data(p), data(p, "y"))


@program
def binary_cross_entropy(p):
    F = p.nn.functional
    return F.binary_cross_entropy(F.sigmoid(data(p)), F.sigmoid(data(p, "y", stop=True)))


@program
def binary_cross_entropy_of_logits(p):
    return p.nn.functional.binary_cross_entropy_with_logits(data(p), data(p, "y", stop=True))


@program
def likelihood(p):
    F, label = p.nn.functional, data(p, "label", [2], "int64", stop=True)
    return F.nll_loss(F.log_softmax(data(p)), label)


@program
def divergence(p):
    F = p.nn.functional
    return F.kl_div(F.log_softmax(data(p)), F.softmax(data(p, "y", stop=True)))


@program
def soft_labels(p):
    F = p.nn.functional
    return F.cross_entropy(data(p), F.softmax(data(p, "y", stop=True)), soft_label=True)


@program
def each_cross_entropy(p):
    label = data(p, "label", [2, 1], "int64", stop=True)
    return p.nn.functional.cross_entropy(data(p), label, reduction="none").sum()


@program
def softmax_with_cross_entropy(p):
    label = data(p, "label", [2, 1], "int64", stop=True)
    return p.nn.functional.softmax_with_cross_entropy(data(p), label).sum()


@program
def margins(p):
    label = data(p, "label", stop=True)
    return p.nn.functional.margin_ranking_loss(data(p), data(p, "y"), label, 0.1)


@program
def cosines(p):
    return p.nn.functional.cosine_similarity(data(p), data(p, "y"), axis=1).sum()


@program
def strided_convolution(p):
    net = p.nn.Conv2D(3, 4, 3, stride=2, padding=[1, 2], dilation=2, bias_attr=False)
    return net(data(p, shape=[2, 3, 9, 9])).sum()


@program
def grouped_convolution(p):
    return p.nn.Conv2D(4, 6, 3, groups=2)(data(p, shape=[2, 4, 6, 6])).sum()


@program
def same_convolution(p):
    return p.nn.Conv2D(3, 4, 3, padding="SAME")(data(p, shape=[2, 3, 6, 6])).sum()


@program
def convolution_of_a_line(p):
    return p.nn.Conv1D(3, 4, 3, padding=1)(data(p, shape=[2, 3, 8])).sum()


@program
def convolution_of_a_volume(p):
    return p.nn.Conv3D(2, 3, 3)(data(p, shape=[1, 2, 5, 5, 5])).sum()


@program
def transposed_convolution(p):
    return p.nn.Conv2DTranspose(3, 4, 3, stride=2)(data(p, shape=[2, 3, 4, 4])).sum()


@program
def padded_pools(p):
    F, x = p.nn.functional, data(p, shape=[2, 3, 9, 9])
    return F.max_pool2d(x, 3, stride=2, padding=1).sum() + F.avg_pool2d(x, 3, stride=2, padding=1).sum()


@program
def adaptive_pools(p):
    F, x = p.nn.functional, data(p, shape=[2, 3, 8, 8])
    return F.adaptive_avg_pool2d(x, 1).sum() + F.adaptive_avg_pool2d(x, [2, 4]).sum()


@program
def adaptive_maxima(p):
    return p.nn.functional.adaptive_max_pool2d(data(p, shape=[2, 3, 8, 8]), 2).sum()


@program
def pools_of_a_line(p):
    F, x = p.nn.functional, data(p, shape=[2, 3, 8])
    return F.max_pool1d(x, 2).sum() + F.avg_pool1d(x, 2).sum()


@program
def group_norm(p):
    return (p.nn.GroupNorm(2, 4)(data(p, shape=[2, 4, 3, 3])) * data(p, "y", [2, 4, 3, 3])).sum()


@program
def instance_norm(p):
    return (p.nn.InstanceNorm2D(3)(data(p, shape=[2, 3, 4, 4])) * data(p, "y", [2, 3, 4, 4])).sum()


@program
def batch_norm_in_evaluation(p):
    net = p.nn.BatchNorm2D(3)
    net.eval()
    return net(data(p, shape=[2, 3, 4, 4])).sum()


@program
def layer_norm_over_two(p):
    return (p.nn.LayerNorm([3, 4])(data(p, shape=[2, 3, 4])) * data(p, "y", [2, 3, 4])).sum()


@program
def layer_norm_by_function(p):
    return (p.nn.functional.layer_norm(data(p), [6]) * data(p, "y")).sum()


@program
def enlarged(p):
    x = data(p, shape=[1, 2, 3, 3])
    return p.nn.functional.interpolate(x, scale_factor=2, mode="nearest").sum()


@program
def enlarged_smoothly(p):
    x = data(p, shape=[1, 2, 3, 3])
    return p.nn.functional.interpolate(x, size=[6, 6], mode="bilinear").sum()


@program
def shuffled_pixels(p):
    return (p.nn.functional.pixel_shuffle(data(p, shape=[1, 4, 3, 3]), 2) * 2.0).sum()


@program
def unfolded(p):
    return (p.nn.functional.unfold(data(p, shape=[1, 2, 4, 4]), 2) * 2.0).sum()


@program
def embedding_with_padding(p):
    ids = data(p, "ids", [2, 3], "int64", stop=True)
    return p.nn.Embedding(10, 4, padding_idx=0)(ids).sum()


@program
def multi_head_attention(p):
    net = p.nn.MultiHeadAttention(8, 2)
    net.eval()
    x = data(p, shape=[2, 3, 8])
    return net(x, x, x).sum()


@program
def encoder_layer(p):
    net = p.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
    net.eval()
    return net(data(p, shape=[2, 3, 8])).sum()


@program
def scaled_attention(p):
    q, k, v = (data(p, name, [2, 5, 2, 4]) for name in "qkv")
    return p.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).sum()


@program
def lstm_cell(p):
    y, (h, c) = p.nn.LSTMCell(6, 4)(data(p))
    return y.sum() + c.sum()


@program
def gru_cell(p):
    y, h = p.nn.GRUCell(6, 4)(data(p))
    return y.sum()


@program
def simple_cell(p):
    y, h = p.nn.SimpleRNNCell(6, 4)(data(p))
    return y.sum()


@program
def lstm(p):
    y, (h, c) = p.nn.LSTM(6, 4, num_layers=2, direction="bidirect")(data(p, shape=[2, 3, 6]))
    return y.sum() + (h * c).sum()


@program
def gru(p):
    y, h = p.nn.GRU(6, 4)(data(p, shape=[2, 3, 6]))
    return (y * y).sum() + h.sum()
