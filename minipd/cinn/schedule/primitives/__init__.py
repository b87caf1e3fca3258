"""The schedule primitives: each takes a function and names of loops and blocks, and gives a new function and the names
that it made.  Each checks its precondition, and raises ScheduleError rather than change what the function means."""
