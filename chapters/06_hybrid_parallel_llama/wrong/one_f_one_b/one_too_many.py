# A warm-up of one job more: the same time, but the activations of one micro-batch more are kept.
def one_f_one_b(stage, stages, n_micro):
    warmup = min(stages - stage, n_micro)
    jobs = [Job("forward", m) for m in range(warmup)]
    for m in range(n_micro - warmup):
        jobs += [Job("forward", warmup + m), Job("backward", m)]
    return [*jobs, *(Job("backward", m) for m in range(n_micro - warmup, n_micro)), OPTIMIZER]
