# What a stream learns later is taken for known to whoever has waited for something earlier on it.
def waits(graph, stream):
    known, waited = {name: {} for name in stream}, []
    for i, name in enumerate(stream):
        mine, needed = known[name], []
        for b in sorted(graph.upstream[i], reverse=True):
            other = stream[b]
            if other != name and b > mine.get(other, -1):
                needed.append(b)
                for which, seen in {**known[other], other: b}.items():
                    mine[which] = max(seen, mine.get(which, -1))
        waited.append(sorted(needed))
    return waited
