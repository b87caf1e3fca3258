"""Sizes that nobody can mean are refused at once, in words, and nothing of that size is allocated or counted up to."""

import pytest

import minipd as paddle
from minipd import nn
from minipd.nn import functional as F
from tests.fuzz.arguments import BOMBS, complaint, little_memory


def image():
    return paddle.ones([1, 2, 4, 4])


CALLS = {
    "zeros": lambda n: paddle.zeros([n, 2]),
    "eye": lambda n: paddle.eye(n),
    "arange": lambda n: paddle.arange(n),
    "linspace": lambda n: paddle.linspace(0, 1, n),
    "tile": lambda n: paddle.tile(paddle.ones([3]), [n]),
    "expand and compute": lambda n: paddle.ones([1, 3]).expand([n, 3]) * 2.0,
    "repeat_interleave": lambda n: paddle.repeat_interleave(paddle.ones([3]), n),
    "combinations": lambda n: paddle.combinations(paddle.arange(n // n * 200), 100),
    "one_hot": lambda n: F.one_hot(paddle.to_tensor([0, 1]), n),
    "pad": lambda n: F.pad(image(), [n, n, n, n]),
    "the padding of conv2d": lambda n: F.conv2d(image(), paddle.ones([1, 2, 3, 3]), padding=n),
    "the kernel of a Conv2D": lambda n: nn.Conv2D(2, 2, n),
    "the dilation of conv2d": lambda n: F.conv2d(image(), paddle.ones([1, 2, 3, 3]), dilation=n),
    "the stride of conv2d_transpose": lambda n: F.conv2d_transpose(image(), paddle.ones([2, 1, 3, 3]), stride=n),
    "the kernel of avg_pool2d": lambda n: F.avg_pool2d(image(), n),
    "adaptive_avg_pool2d": lambda n: F.adaptive_avg_pool2d(image(), n),
    "interpolate": lambda n: F.interpolate(image(), [n, n]),
    "bincount": lambda n: paddle.bincount(paddle.to_tensor([n])),
    "triu_indices": lambda n: paddle.triu_indices(n),
    "histogram": lambda n: paddle.histogram(paddle.ones([3]), bins=n),
    "sequence_mask": lambda n: F.sequence_mask(paddle.to_tensor([1]), maxlen=n),
    "diag": lambda n: paddle.diag(paddle.ones([2]), offset=n),
    "randn": lambda n: paddle.randn([n]),
    "randperm": lambda n: paddle.randperm(n),
    "fft": lambda n: paddle.fft.fft(paddle.ones([3]), n=n),
    "vander": lambda n: paddle.vander(paddle.ones([3]), n),
    "Linear": lambda n: nn.Linear(n, n),
    "Embedding": lambda n: nn.Embedding(n, 4),
    "the layers of an LSTM": lambda n: nn.LSTM(2, 2, num_layers=n),
    "the layers of a Transformer": lambda n: nn.TransformerEncoder(nn.TransformerEncoderLayer(2, 1, 2), n),
    "the iterations of svd_lowrank": lambda n: paddle.linalg.svd_lowrank(paddle.ones([3, 3]), q=1, niter=n),
    "multigammaln": lambda n: paddle.multigammaln(paddle.ones([3]), n),
    "scatter_nd": lambda n: paddle.scatter_nd(paddle.to_tensor([[0]]), paddle.ones([1]), [n]),
    "WeightedRandomSampler": lambda n: iter(paddle.io.WeightedRandomSampler([1.0, 2.0], n)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_a_size_that_nobody_can_mean(name):
    for size in BOMBS:
        with little_memory(1 << 28):
            _, wrong = complaint(lambda n=size: CALLS[name](n), (), {})
            assert wrong is None, (size, wrong)
            with pytest.raises((ValueError, MemoryError, TypeError), match="expected") as caught:
                CALLS[name](size)
        assert "do not go together" not in str(caught.value), (size, caught.value)
