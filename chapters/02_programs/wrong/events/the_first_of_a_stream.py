# Of several on one stream it waits for the first, and not for the last.
def waits(graph, stream):
    waited = []
    for i, name in enumerate(stream):
        first = {}
        for b in sorted(graph.upstream[i]):
            if stream[b] != name:
                first.setdefault(stream[b], b)
        waited.append(sorted(first.values()))
    return waited
