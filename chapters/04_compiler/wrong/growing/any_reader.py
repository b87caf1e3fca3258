# Joins the first that reads it, also where others do.
from minipd.cinn.frontend.steps import _in_bulk


def growing(upstream, downstream):
    def run(graph, step):
        for op in reversed(graph.members):
            node = graph.node[op]
            if graph.kind(node) in upstream and _in_bulk(op):
                for reader in graph.readers(node.ops)[:1]:
                    if graph.kind(graph.node[reader]) in downstream:
                        graph.merge(step, op, reader)
    return run
