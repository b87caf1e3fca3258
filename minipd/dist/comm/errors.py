"""What goes wrong between ranks.  Each message names the ranks, what each called, and where."""

__all__ = ["CommError", "DeadlockError", "MismatchError", "RankDiedError"]


class CommError(RuntimeError):
    """Communication failed; the ranks can no longer be trusted to be in step."""


class MismatchError(CommError):
    """Members of one group made different calls, where all must make the same."""


class DeadlockError(CommError):
    """No rank can run: each that is left waits for another."""


class RankDiedError(CommError):
    """A rank is gone: it ended without an error that the others could be told."""


class RankStopped(BaseException):
    """Raised inside a simulated rank to end it, because another rank failed.

    Not an Exception: `except Exception` in the rank's code must not swallow it.
    """
