"""Networks that classify images."""

from __future__ import annotations

from minipd.framework.tensor import Tensor
from minipd.nn import Conv2D, Layer, Linear, MaxPool2D, ReLU, Sequential

__all__ = ["LeNet"]


class LeNet(Layer):
    """Two convolutions and three linear maps, for images of 28 x 28 in one channel.   (LeCun et al. 1998)

    num_classes: how many scores come out; 0 gives what the convolutions see, [N, 16, 5, 5].

    >>> from minipd.ops.creation import ones
    >>> LeNet()(ones([2, 1, 28, 28])).shape
    paddle.Size([2, 10])
    """

    def __init__(self, num_classes: int = 10):
        super().__init__()
        self.num_classes = num_classes
        self.features = Sequential(Conv2D(1, 6, 3, padding=1), ReLU(), MaxPool2D(2, 2),
                                   Conv2D(6, 16, 5), ReLU(), MaxPool2D(2, 2))
        if num_classes > 0:
            self.fc = Sequential(Linear(400, 120), Linear(120, 84), Linear(84, num_classes))

    def forward(self, inputs: Tensor) -> Tensor:
        x = self.features(inputs)
        return self.fc(x.flatten(1)) if self.num_classes > 0 else x
