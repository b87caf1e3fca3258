"""Errors that teach: what was expected, what came, and what to do."""


class InputError(ValueError):
    """What the user asked for cannot be done: a file, a configuration value or a command line is wrong.

    The command line prints it as one line and exits with status 2; nothing has been written by then.

    Args:
        expected: what would have been accepted.
        got: what came, named closely enough to find it.
        do: the way out.

    >>> raise InputError("a mesh of 4 ranks", "dp=2,tp=4 (8 ranks)", "make the sizes multiply to the number of ranks")
    Traceback (most recent call last):
    ...
    minipd.framework.errors.InputError: expected a mesh of 4 ranks, got dp=2,tp=4 (8 ranks): make the sizes multiply \
to the number of ranks
    """

    def __init__(self, expected: str, got: str, do: str) -> None:
        super().__init__(expected, got, do)  # the three as args, so that the error survives pickling between ranks
        self.expected = expected
        self.got = got
        self.do = do

    def __str__(self) -> str:
        return f"expected {self.expected}, got {self.got}: {self.do}"
