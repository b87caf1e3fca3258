# An event for each dependency between two streams, be it known already or not.
def waits(graph, stream):
    return [sorted(b for b in graph.upstream[i] if stream[b] != name) for i, name in enumerate(stream)]
