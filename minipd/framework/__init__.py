"""The ground floor: tensors, rows, the context of a rank, and the stack of interpreters behind every operator call."""
