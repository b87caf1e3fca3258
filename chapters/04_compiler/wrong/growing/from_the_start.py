# From the start of the program: what two operators read that become one pattern later stays alone.
from minipd.cinn.frontend.steps import _in_bulk


def growing(upstream, downstream):
    def run(graph, step):
        for op in graph.members:
            node = graph.node[op]
            if node.ops[-1] is not op or graph.kind(node) not in upstream or not _in_bulk(op):
                continue
            readers = graph.readers(node.ops)
            if len({graph.node[r] for r in readers}) == 1 and graph.kind(graph.node[readers[0]]) in downstream:
                graph.merge(step, op, readers[0])
    return run
