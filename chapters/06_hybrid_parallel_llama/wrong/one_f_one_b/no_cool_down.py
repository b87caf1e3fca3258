# Forgets the backward jobs of the warm-up.
def one_f_one_b(stage, stages, n_micro):
    warmup = min(stages - 1 - stage, n_micro)
    jobs = [Job("forward", m) for m in range(warmup)]
    for m in range(n_micro - warmup):
        jobs += [Job("forward", warmup + m), Job("backward", m)]
    return [*jobs, OPTIMIZER]
