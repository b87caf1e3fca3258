# Multiplied as it is, c lies along the dimension of the channels that go in.
from minipd.passes.formula import ops


class ScaledConvolution:
    def result(x, filter, c, s, p, d, g):
        scaled = filter * c
        return ops.conv2d(x, scaled, strides=s, paddings=p, dilations=d, groups=g)
