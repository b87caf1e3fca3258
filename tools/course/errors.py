"""The one error of these tools.  (minipd's own would import minipd, which the overlay must precede.)"""


class CourseError(Exception):
    """What was asked for cannot be done.

    Args:
        where: the file, and the place in it.
        expected: what would have been accepted.
        got: what is there.
        do: the way out.
    """

    def __init__(self, where: str, expected: str, got: str, do: str = "") -> None:
        super().__init__(where, expected, got, do)
        self.where = where
        self.expected = expected
        self.got = got
        self.do = do

    def __str__(self) -> str:
        return f"{self.where}: expected {self.expected}, got {self.got}" + (f"; {self.do}" if self.do else "")
