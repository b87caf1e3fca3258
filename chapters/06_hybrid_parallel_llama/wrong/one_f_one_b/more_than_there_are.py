# Warms up with micro-batches that do not exist, if there are fewer of them than stages.
def one_f_one_b(stage, stages, n_micro):
    warmup = stages - 1 - stage
    jobs = [Job("forward", m) for m in range(warmup)]
    for m in range(max(n_micro - warmup, 0)):
        jobs += [Job("forward", warmup + m), Job("backward", m)]
    return [*jobs, *(Job("backward", m) for m in range(max(n_micro - warmup, 0), n_micro)), OPTIMIZER]
