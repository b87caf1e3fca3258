"""Distributed programs.

    marks.py        what shard_tensor left in a program becomes types
    evaluation.py   the dist interpreter over programs: values of one program may be on several meshes
    passes.py       from a marked program to the programs of the ranks, in stages that print and draw
    explicit.py     the reshards that operations need, written out; rank_program.py: a program as one rank runs it
    compiled.py     functions of distributed tensors that `paddle.jit.to_static` compiles
    step.py         a layer, its loss and its optimizer as one global program
    batch.py        what a step is given
    strategy.py     Paddle's `Strategy`;  dist_model.py: `dist.to_static`
"""
