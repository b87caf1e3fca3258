# Backward of the micro-batch that went forward last: its gradient is not there yet.
def one_f_one_b(stage, stages, n_micro):
    warmup = min(stages - 1 - stage, n_micro)
    jobs = [Job("forward", m) for m in range(warmup)]
    for m in range(n_micro - warmup):
        jobs += [Job("forward", warmup + m), Job("backward", warmup + m)]
    return [*jobs, *(Job("backward", m) for m in range(warmup)), OPTIMIZER]
