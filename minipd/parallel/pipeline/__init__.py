"""Pipeline parallelism: the model cut into stages, each on ranks of its own, and micro-batches that flow through them.

    schedule.py      which job a stage does when: data
    stage.py         what a stage is to the engine
"""
