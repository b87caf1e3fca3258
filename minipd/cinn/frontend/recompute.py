def split_recompute(graph, step):
    pass
