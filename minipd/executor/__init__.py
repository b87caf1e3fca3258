"""Running programs: `Executor(program).run(feed, scope)`.

    executor       prepare once, bind once per size, run often
    kernel/        the pass to the kernel dialect: each operation with its kernel, each value with its place
    calls          what each operation calls; makers, of operations of floors above
    overwriting    which operands a kernel may write over
    preparation    what no size changes: items, static and dynamic values, state that is written over
    layout         how values lie in memory for given sizes: views, lifetimes, buffers that become one
    plan           where buffers lie in the arena
    binding        the functions that a run calls, their arrays bound
    ahead          what calls will be given, known before a run
    control        what operations that are no calls do
    late, direct   calls of which operands come late; calls of numpy's own functions
    schedule/      what depends on what, streams and events, the simulated clock
    overlap        collectives in a thread beside computation
    device         a schedule on a device's own streams
    watching       looking on: for a profiler, and for NaN
    frame          the state of one run
    scope          program state by name, in arrays or in tensors
    memory, liveness     what a run holds, measured; what any run must hold
"""

from minipd.executor.ahead import calls_ahead
from minipd.executor.calls import Call
from minipd.executor.executor import Executor
from minipd.executor.makers import register_maker
from minipd.executor.memory import Memory
from minipd.executor.scope import Scope, TensorScope

__all__ = ["Call", "Executor", "Memory", "Scope", "TensorScope", "calls_ahead", "register_maker"]
