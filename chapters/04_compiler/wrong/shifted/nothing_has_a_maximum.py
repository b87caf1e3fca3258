# Of no numbers there is no maximum: the kernel raises.
from minipd.ops.reduce import Max


def shifted(x, axis):
    return x - Max(x, axis=(axis,), keepdim=True)
