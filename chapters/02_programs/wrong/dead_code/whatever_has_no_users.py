# Removes whatever has no users: an output and a write of state have none either, and are the point of the program.
def _remove(program):
    for op in reversed(list(program.walk())):
        if all(result.use_empty() for result in op.results()):
            op.erase()
