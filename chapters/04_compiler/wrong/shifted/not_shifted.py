# The textbook's formula: e^1000 is inf, and inf / inf is no number.
def shifted(x, axis):
    return x
