"""Training in parallel: the step as one global program, pipelines of such programs, and checkpoints.

    step.py           what every way to run a step shares, and the eager way
    program.py        the step as one global program
    static_step.py    run as this rank's part of it (dist/static/rank_program.py)
    pipeline/         the model in stages
    checkpoint.py     what is trained, in a folder that any mesh reads (stored.py)
"""
