# Waits for what its own stream has run before it, which has ended anyway.
def waits(graph, stream):
    return [sorted(graph.upstream[i]) for i in range(len(stream))]
