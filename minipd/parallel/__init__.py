"""Training in parallel: the step as one global program, its engine, and checkpoints."""
