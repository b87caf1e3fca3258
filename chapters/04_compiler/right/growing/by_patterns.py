# The same, said otherwise: from the last operator to the first, by the patterns of the readers.
from minipd.ir.schema import result_values


def growing(upstream, downstream):
    def run(graph, step):
        for op in graph.members[::-1]:
            node = graph.node[op]
            last = node.ops[len(node.ops) - 1]
            if last is op and graph.kind(node) in upstream and any(v.shape for v in result_values(op)):
                around = [graph.node[r] for r in graph.readers(node.ops)]
                if around and all(x is around[0] for x in around) and graph.kind(around[0]) in downstream:
                    graph.merge(step, op, around[0].ops[0])
    return run
