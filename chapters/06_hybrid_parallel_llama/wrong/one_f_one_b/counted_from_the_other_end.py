# The warm-up grows towards the end: the first stage wants a gradient before the last one has begun. They wait for ever.
def one_f_one_b(stage, stages, n_micro):
    warmup = min(stage, n_micro)
    jobs = [Job("forward", m) for m in range(warmup)]
    for m in range(n_micro - warmup):
        jobs += [Job("forward", warmup + m), Job("backward", m)]
    return [*jobs, *(Job("backward", m) for m in range(n_micro - warmup, n_micro)), OPTIMIZER]
