"""Running programs: `Executor(program).run(feed, scope)`.

    executor       prepare once, run often
    instructions   operations with everything found that no run changes
    frame          the state of one run
    liveness       when a value may be let go of
    memory         what a run holds, measured
"""

from minipd.executor.executor import Executor, Scope
from minipd.executor.memory import Memory

__all__ = ["Executor", "Memory", "Scope"]
