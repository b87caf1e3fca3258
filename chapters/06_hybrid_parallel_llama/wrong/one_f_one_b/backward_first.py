# In each round backward before forward: a stage without warm-up has nothing to go back from.
def one_f_one_b(stage, stages, n_micro):
    warmup = min(stages - 1 - stage, n_micro)
    jobs = [Job("forward", m) for m in range(warmup)]
    for m in range(n_micro - warmup):
        jobs += [Job("backward", m), Job("forward", warmup + m)]
    return [*jobs, *(Job("backward", m) for m in range(n_micro - warmup, n_micro)), OPTIMIZER]
