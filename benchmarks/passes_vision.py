"""Models that see, as their authors write them: convolutions with and without bias, normalisations, blocks with a way
around.  Architectures are the published ones, with fewer and narrower blocks so that a run takes some milliseconds."""

from __future__ import annotations

import importlib
import os

paddle = importlib.import_module(os.environ.get("FRAMEWORK", "minipd"))
nn, F = paddle.nn, paddle.nn.functional


class LeNet(nn.Layer):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2D(1, 6, 3, stride=1, padding=1), nn.ReLU(), nn.MaxPool2D(2, 2),
            nn.Conv2D(6, 16, 5, stride=1, padding=0), nn.ReLU(), nn.MaxPool2D(2, 2))
        self.fc = nn.Sequential(nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10))

    def forward(self, inputs):
        x = self.features(inputs)
        return self.fc(paddle.flatten(x, 1))


class VGG(nn.Layer):
    """Configuration A with a quarter of the channels."""

    def __init__(self):
        super().__init__()
        layers, channels = [], 3
        for v in (16, "M", 32, "M", 64, 64, "M", 128, 128, "M", 128, 128, "M"):
            if v == "M":
                layers.append(nn.MaxPool2D(kernel_size=2, stride=2))
            else:
                layers += [nn.Conv2D(channels, v, kernel_size=3, padding=1), nn.ReLU()]
                channels = v
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Linear(128 * 9, 512), nn.ReLU(), nn.Dropout(), nn.Linear(512, 512),
                                        nn.ReLU(), nn.Dropout(), nn.Linear(512, 100))

    def forward(self, x):
        return self.classifier(paddle.flatten(self.features(x), 1))


class BasicBlock(nn.Layer):
    expansion = 1

    def __init__(self, inplanes, planes, stride=1, downsample=None):
        super().__init__()
        self.conv1 = nn.Conv2D(inplanes, planes, 3, padding=1, stride=stride, bias_attr=False)
        self.bn1 = nn.BatchNorm2D(planes)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2D(planes, planes, 3, padding=1, bias_attr=False)
        self.bn2 = nn.BatchNorm2D(planes)
        self.downsample = downsample

    def forward(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class BottleneckBlock(nn.Layer):
    expansion = 4

    def __init__(self, inplanes, planes, stride=1, downsample=None):
        super().__init__()
        self.conv1 = nn.Conv2D(inplanes, planes, 1, bias_attr=False)
        self.bn1 = nn.BatchNorm2D(planes)
        self.conv2 = nn.Conv2D(planes, planes, 3, padding=1, stride=stride, bias_attr=False)
        self.bn2 = nn.BatchNorm2D(planes)
        self.conv3 = nn.Conv2D(planes, planes * 4, 1, bias_attr=False)
        self.bn3 = nn.BatchNorm2D(planes * 4)
        self.relu = nn.ReLU()
        self.downsample = downsample

    def forward(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class ResNet(nn.Layer):
    def __init__(self, block, depth, width=32):
        super().__init__()
        self.inplanes = width
        self.conv1 = nn.Conv2D(3, width, kernel_size=7, stride=2, padding=3, bias_attr=False)
        self.bn1 = nn.BatchNorm2D(width)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2D(kernel_size=3, stride=2, padding=1)
        self.layers = nn.Sequential(*(
            self._layer(block, width << i, n, 1 if i == 0 else 2) for i, n in enumerate(depth)))
        self.avgpool = nn.AdaptiveAvgPool2D((1, 1))
        self.fc = nn.Linear((width << len(depth) - 1) * block.expansion, 100)

    def _layer(self, block, planes, blocks, stride):
        downsample = None
        if stride != 1 or self.inplanes != planes * block.expansion:
            downsample = nn.Sequential(
                nn.Conv2D(self.inplanes, planes * block.expansion, 1, stride=stride, bias_attr=False),
                nn.BatchNorm2D(planes * block.expansion))
        layers = [block(self.inplanes, planes, stride, downsample)]
        self.inplanes = planes * block.expansion
        layers += [block(self.inplanes, planes) for _ in range(1, blocks)]
        return nn.Sequential(*layers)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.avgpool(self.layers(x))
        return self.fc(paddle.flatten(x, 1))


def conv_bn(inp, oup, kernel, stride=1, groups=1, act=nn.ReLU6):
    layers = [nn.Conv2D(inp, oup, kernel, stride, (kernel - 1) // 2, groups=groups, bias_attr=False),
              nn.BatchNorm2D(oup)]
    return nn.Sequential(*layers, *([act()] if act is not None else []))


class InvertedResidual(nn.Layer):
    def __init__(self, inp, oup, stride, expand_ratio):
        super().__init__()
        hidden = int(round(inp * expand_ratio))
        self.use_res_connect = stride == 1 and inp == oup
        self.conv = nn.Sequential(conv_bn(inp, hidden, 1), conv_bn(hidden, hidden, 3, stride, groups=hidden),
                                  nn.Conv2D(hidden, oup, 1, 1, 0, bias_attr=False), nn.BatchNorm2D(oup))

    def forward(self, x):
        if self.use_res_connect:
            return x + self.conv(x)
        return self.conv(x)


class MobileNetV2(nn.Layer):
    """A quarter of the blocks."""

    def __init__(self):
        super().__init__()
        blocks = [(32, 16, 1, 1), (16, 24, 2, 6), (24, 24, 1, 6), (24, 32, 2, 6), (32, 32, 1, 6)]
        self.features = nn.Sequential(conv_bn(3, 32, 3, 2), *(InvertedResidual(*b) for b in blocks),
                                      conv_bn(32, 320, 1))
        self.pool2d_avg = nn.AdaptiveAvgPool2D(1)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(320, 100))

    def forward(self, x):
        x = self.pool2d_avg(self.features(x))
        return self.classifier(paddle.flatten(x, 1))


class Swish(nn.Layer):
    def forward(self, x):
        return x * F.sigmoid(x)


class MBConv(nn.Layer):
    """EfficientNet's block: expansion, depthwise convolution, squeeze and excitation, projection."""

    def __init__(self, inp, oup, stride, ratio):
        super().__init__()
        hidden, squeezed = inp * ratio, max(1, inp // 4)
        self.residual = stride == 1 and inp == oup
        self.expand = conv_bn(inp, hidden, 1, act=Swish)
        self.depthwise = conv_bn(hidden, hidden, 3, stride, groups=hidden, act=Swish)
        self.pool = nn.AdaptiveAvgPool2D(1)
        self.reduce, self.swish = nn.Conv2D(hidden, squeezed, 1), Swish()
        self.widen = nn.Conv2D(squeezed, hidden, 1)
        self.project = conv_bn(hidden, oup, 1, act=None)

    def forward(self, x):
        out = self.depthwise(self.expand(x))
        scale = F.sigmoid(self.widen(self.swish(self.reduce(self.pool(out)))))
        out = self.project(out * scale)
        return out + x if self.residual else out


class EfficientNet(nn.Layer):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(conv_bn(3, 16, 3, 2, act=Swish), MBConv(16, 24, 2, 4), MBConv(24, 24, 1, 4),
                                    MBConv(24, 40, 2, 4), MBConv(40, 40, 1, 4))
        self.head = nn.Linear(40, 100)

    def forward(self, x):
        return self.head(self.blocks(x).mean([2, 3]))


class DenseLayer(nn.Layer):
    def __init__(self, num_input, growth_rate, bn_size=4):
        super().__init__()
        self.norm1, self.relu1 = nn.BatchNorm2D(num_input), nn.ReLU()
        self.conv1 = nn.Conv2D(num_input, bn_size * growth_rate, 1, bias_attr=False)
        self.norm2, self.relu2 = nn.BatchNorm2D(bn_size * growth_rate), nn.ReLU()
        self.conv2 = nn.Conv2D(bn_size * growth_rate, growth_rate, 3, padding=1, bias_attr=False)

    def forward(self, x):
        out = self.conv1(self.relu1(self.norm1(x)))
        out = self.conv2(self.relu2(self.norm2(out)))
        return paddle.concat([x, out], axis=1)


class DenseNet(nn.Layer):
    """Two dense blocks with a transition."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2D(3, 32, 7, 2, 3, bias_attr=False), nn.BatchNorm2D(32), nn.ReLU(),
                                  nn.MaxPool2D(3, 2, 1))
        self.block1 = nn.Sequential(*(DenseLayer(32 + 16 * i, 16) for i in range(4)))
        self.transition = nn.Sequential(nn.BatchNorm2D(96), nn.ReLU(), nn.Conv2D(96, 48, 1, bias_attr=False),
                                        nn.AvgPool2D(2, 2))
        self.block2 = nn.Sequential(*(DenseLayer(48 + 16 * i, 16) for i in range(4)))
        self.norm, self.fc = nn.BatchNorm2D(112), nn.Linear(112, 100)

    def forward(self, x):
        x = self.block2(self.transition(self.block1(self.stem(x))))
        x = F.adaptive_avg_pool2d(F.relu(self.norm(x)), 1)
        return self.fc(paddle.flatten(x, 1))


def channel_shuffle(x, groups):
    n, c, h, w = x.shape
    x = paddle.reshape(x, [-1, groups, c // groups, h, w])
    x = paddle.transpose(x, [0, 2, 1, 3, 4])
    return paddle.reshape(x, [-1, c, h, w])


class ShuffleUnit(nn.Layer):
    """ShuffleNetV2's unit of stride 1."""

    def __init__(self, channels):
        super().__init__()
        half = channels // 2
        self.branch = nn.Sequential(conv_bn(half, half, 1, act=nn.ReLU), conv_bn(half, half, 3, groups=half, act=None),
                                    conv_bn(half, half, 1, act=nn.ReLU))

    def forward(self, x):
        x1, x2 = paddle.split(x, 2, axis=1)
        return channel_shuffle(paddle.concat([x1, self.branch(x2)], axis=1), 2)


class ShuffleNetV2(nn.Layer):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(conv_bn(3, 24, 3, 2, act=nn.ReLU), nn.MaxPool2D(3, 2, 1),
                                  conv_bn(24, 116, 1, act=nn.ReLU))
        self.units = nn.Sequential(*(ShuffleUnit(116) for _ in range(4)))
        self.fc = nn.Linear(116, 100)

    def forward(self, x):
        x = self.units(self.stem(x))
        return self.fc(x.mean([2, 3]))


class DoubleConv(nn.Layer):
    def __init__(self, inp, oup):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2D(inp, oup, 3, padding=1, bias_attr=False), nn.BatchNorm2D(oup), nn.ReLU(),
            nn.Conv2D(oup, oup, 3, padding=1, bias_attr=False), nn.BatchNorm2D(oup), nn.ReLU())

    def forward(self, x):
        return self.double_conv(x)


class UNet(nn.Layer):
    """Two steps down and up."""

    def __init__(self):
        super().__init__()
        self.inc, self.down1, self.down2 = DoubleConv(3, 16), DoubleConv(16, 32), DoubleConv(32, 64)
        self.pool = nn.MaxPool2D(2)
        self.up1, self.conv1 = nn.Conv2DTranspose(64, 32, 2, stride=2), DoubleConv(64, 32)
        self.up2, self.conv2 = nn.Conv2DTranspose(32, 16, 2, stride=2), DoubleConv(32, 16)
        self.outc = nn.Conv2D(16, 2, 1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(self.pool(x1))
        x = self.down2(self.pool(x2))
        x = self.conv1(paddle.concat([x2, self.up1(x)], axis=1))
        x = self.conv2(paddle.concat([x1, self.up2(x)], axis=1))
        return self.outc(x)


class DiffusionBlock(nn.Layer):
    """The residual block of a diffusion model's UNet: GroupNorm, SiLU, the embedding of the time step."""

    def __init__(self, channels=64, time_dim=128):
        super().__init__()
        self.time1, self.time2 = nn.Linear(channels, time_dim), nn.Linear(time_dim, time_dim)
        self.conv_in = nn.Conv2D(3, channels, 3, padding=1)
        self.norm1, self.conv1 = nn.GroupNorm(32, channels), nn.Conv2D(channels, channels, 3, padding=1)
        self.time_emb_proj = nn.Linear(time_dim, channels)
        self.norm2, self.conv2 = nn.GroupNorm(32, channels), nn.Conv2D(channels, channels, 3, padding=1)
        self.conv_out = nn.Conv2D(channels, 3, 3, padding=1)

    def forward(self, sample, step):
        temb = self.time2(F.silu(self.time1(step)))
        x = self.conv_in(sample)
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.time_emb_proj(F.silu(temb)).unsqueeze(-1).unsqueeze(-1)
        h = self.conv2(F.silu(self.norm2(h)))
        return self.conv_out(x + h)


class Generator(nn.Layer):
    """DCGAN's."""

    def __init__(self, nz=100, ngf=16):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2DTranspose(nz, ngf * 8, 4, 1, 0, bias_attr=False), nn.BatchNorm2D(ngf * 8), nn.ReLU(),
            nn.Conv2DTranspose(ngf * 8, ngf * 4, 4, 2, 1, bias_attr=False), nn.BatchNorm2D(ngf * 4), nn.ReLU(),
            nn.Conv2DTranspose(ngf * 4, ngf * 2, 4, 2, 1, bias_attr=False), nn.BatchNorm2D(ngf * 2), nn.ReLU(),
            nn.Conv2DTranspose(ngf * 2, 3, 4, 2, 1, bias_attr=False), nn.Tanh())

    def forward(self, noise):
        return self.main(noise)


class ConvNeXtBlock(nn.Layer):
    """Depthwise convolution; then channels last, LayerNorm, two linear layers."""

    def __init__(self, dim):
        super().__init__()
        self.dwconv = nn.Conv2D(dim, dim, kernel_size=7, padding=3, groups=dim)
        self.norm = nn.LayerNorm(dim, epsilon=1e-6)
        self.pwconv1, self.act, self.pwconv2 = nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim)
        self.gamma = self.create_parameter([dim], default_initializer=nn.initializer.Uniform(0.1, 1.0))

    def forward(self, x):
        inputs = x
        x = self.dwconv(x)
        x = x.transpose([0, 2, 3, 1])
        x = self.pwconv2(self.act(self.pwconv1(self.norm(x))))
        x = self.gamma * x
        x = x.transpose([0, 3, 1, 2])
        return inputs + x


class ConvNeXt(nn.Layer):
    def __init__(self, dim=48):
        super().__init__()
        self.stem = nn.Conv2D(3, dim, kernel_size=4, stride=4)
        self.blocks = nn.Sequential(*(ConvNeXtBlock(dim) for _ in range(3)))
        self.norm, self.head = nn.LayerNorm(dim, epsilon=1e-6), nn.Linear(dim, 100)

    def forward(self, x):
        x = self.blocks(self.stem(x))
        return self.head(self.norm(x.mean([-2, -1])))


def normal(*shape):
    return shape, "float32", None


#: name -> (what makes the layer, its inputs: shape, dtype, for integers the number that they are below)
MODELS = {
    "LeNet": (LeNet, [normal(64, 1, 28, 28)]),
    "VGG-11, a quarter as wide": (VGG, [normal(2, 3, 96, 96)]),
    "ResNet-18, half as wide": (lambda: ResNet(BasicBlock, (2, 2, 2, 2)), [normal(1, 3, 128, 128)]),
    "ResNet-50, half as wide": (lambda: ResNet(BottleneckBlock, (3, 4, 6, 3), 32), [normal(1, 3, 96, 96)]),
    "MobileNetV2, 5 blocks": (MobileNetV2, [normal(1, 3, 128, 128)]),
    "EfficientNet, 4 blocks": (EfficientNet, [normal(1, 3, 128, 128)]),
    "DenseNet, 2 blocks": (DenseNet, [normal(1, 3, 96, 96)]),
    "ShuffleNetV2, 4 units": (ShuffleNetV2, [normal(1, 3, 128, 128)]),
    "UNet, 2 steps": (UNet, [normal(1, 3, 64, 64)]),
    "diffusion residual block": (DiffusionBlock, [normal(2, 3, 32, 32), normal(2, 64)]),
    "DCGAN generator": (Generator, [normal(16, 100, 1, 1)]),
    "ConvNeXt, 3 blocks": (ConvNeXt, [normal(1, 3, 96, 96)]),
}
