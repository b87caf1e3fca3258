# Removes whatever has no users: an output and a write of state have none either, and are the point of the program.
def remove_dead_ops(program):
    before = program.num_ops()
    for op in reversed(list(program.walk())):
        if all(result.use_empty() for result in op.results()):
            op.erase()
    return before - program.num_ops()
