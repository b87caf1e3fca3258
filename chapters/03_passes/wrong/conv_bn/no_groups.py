# Forgets the groups.
from minipd.passes.formula import ops


class ScaledConvolution:
    def result(x, filter, c, s, p, d, g):
        scaled = filter * ops.reshape(c, shape=(filter.shape[0], 1, 1, 1))
        return ops.conv2d(x, scaled, strides=s, paddings=p, dilations=d, groups=1)
