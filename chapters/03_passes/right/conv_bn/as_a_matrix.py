# Scales the filters as the rows of a matrix.
from minipd.passes.formula import ops


class ScaledConvolution:
    def result(x, filter, c, s, p, d, g):
        out, rest, height, width = filter.shape
        rows = ops.reshape(filter, shape=(out, rest * height * width)) * ops.reshape(c, shape=(out, 1))
        return ops.conv2d(x, ops.reshape(rows, shape=(out, rest, height, width)), strides=s, paddings=p, dilations=d,
                          groups=g)
