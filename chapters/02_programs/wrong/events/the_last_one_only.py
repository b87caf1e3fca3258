# Waits for the latest of all that it depends on: those of other streams need not have ended by then.
def waits(graph, stream):
    waited = []
    for i, name in enumerate(stream):
        others = [b for b in graph.upstream[i] if stream[b] != name]
        waited.append(others and [max(others)])
    return waited
