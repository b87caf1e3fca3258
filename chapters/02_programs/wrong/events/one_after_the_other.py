# Learns from the earliest it waits for first, and so waits for some that the later ones would have covered.
def waits(graph, stream):
    clocks, last, waited = [], {}, []
    for i, name in enumerate(stream):
        clock = dict(clocks[last[name]]) | {name: last[name]} if name in last else {}
        needed = []
        for b in sorted(graph.upstream[i]):
            if stream[b] != name and b > clock.get(stream[b], -1):
                needed.append(b)
                for which, seen in {**clocks[b], stream[b]: b}.items():
                    clock[which] = max(seen, clock.get(which, -1))
        waited.append(needed)
        clocks.append(clock)
        last[name] = i
    return waited
