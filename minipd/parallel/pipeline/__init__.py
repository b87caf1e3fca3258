"""Pipeline parallelism: the model cut into stages, each on ranks of its own, and micro-batches that flow through them.

    schedule.py      which job a stage does when: data
    check.py         what a schedule means, what is wrong with it, how long it waits
    stage.py         what a stage is to the engine
    model_slice.py   what a stage has of the model
    eager_stage.py   a stage run operator by operator
    static_stage.py  a stage run as programs
    cut.py           the programs of all stages, of that of the model
    programs.py      the gradient of a stage's program, and how it runs apart
    transfer.py      how a value crosses between stages
    engine.py        a rank does its jobs
    inference.py     the forward pass alone, for generation
    clip.py          the norm of the gradients of all stages
    tied.py          parameters that two stages use
"""
