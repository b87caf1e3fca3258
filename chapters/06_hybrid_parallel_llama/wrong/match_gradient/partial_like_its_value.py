# Where the value is Partial, so is the gradient: each operator further back has to add up its parts anew.
def match(call):
    like = call.placements[1]
    return Inferred((like, like), (like,))
