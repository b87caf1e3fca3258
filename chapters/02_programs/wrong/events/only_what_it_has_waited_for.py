# Knows what its own stream has waited for, and not what those streams have waited for themselves.
def waits(graph, stream):
    known, waited = {}, []
    for i, name in enumerate(stream):
        latest, mine = {}, known.setdefault(name, {})
        for b in graph.upstream[i]:
            if stream[b] != name and b > mine.get(stream[b], -1):
                latest[stream[b]] = max(b, latest.get(stream[b], -1))
        mine.update(latest)
        waited.append(sorted(latest.values()))
    return waited
