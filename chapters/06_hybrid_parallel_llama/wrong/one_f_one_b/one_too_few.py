# A warm-up of one job less: the stage waits in every round.
def one_f_one_b(stage, stages, n_micro):
    warmup = min(max(stages - 2 - stage, 0), n_micro)
    jobs = [Job("forward", m) for m in range(warmup)]
    for m in range(n_micro - warmup):
        jobs += [Job("forward", warmup + m), Job("backward", m)]
    return [*jobs, *(Job("backward", m) for m in range(n_micro - warmup, n_micro)), OPTIMIZER]
