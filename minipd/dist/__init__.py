"""Distribution: one global program over many ranks.

    mesh.py         which ranks there are, and how they are arranged
    placements.py   what each mesh axis holds of a tensor: Shard, Replicate, Partial
    sharding.py     the one rule that says which rank owns which elements, and the notation for it
    spmd/           which placements an operator needs, and which its results get
    reshard/        the steps from one set of placements to another

Everything listed is pure: it sees shapes and placements, never data and no communicator.
"""
