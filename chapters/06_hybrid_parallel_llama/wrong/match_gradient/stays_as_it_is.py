# Nothing is synchronised: each rank updates its copy with its own part, and the copies drift apart.
def match(call):
    gradient, like = call.placements
    return Inferred((gradient, like), (gradient,))
