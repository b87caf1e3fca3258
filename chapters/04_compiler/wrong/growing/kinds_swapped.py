# The kinds are the wrong way round.
from minipd.cinn.frontend.steps import _in_bulk


def growing(upstream, downstream):
    def run(graph, step):
        for op in reversed(graph.members):
            node = graph.node[op]
            if node.ops[-1] is not op or graph.kind(node) not in downstream or not _in_bulk(op):
                continue
            readers = graph.readers(node.ops)
            if len({graph.node[r] for r in readers}) == 1 and graph.kind(graph.node[readers[0]]) in upstream:
                graph.merge(step, op, readers[0])
    return run
