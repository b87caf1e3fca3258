"""No hidden globals (decision 8): what a module keeps that changes while the program runs is on this list.

Ranks share a process: whatever a rank may change must be in its `RankContext`.  What is left on module level is written
while modules are imported, or remembers answers that are the same for every rank.  A new entry needs such a reason.
"""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "minipd"

IMPORTED = "filled while modules are imported, then only read"
ANSWERS = "remembers answers of a pure function, the same for all ranks"
SWITCH = "says which rank is running here: a ContextVar, so each rank and thread has its own"

ALLOWED = {
    "as_paddle.py": {"_near": ANSWERS},
    "framework/rank.py": {"_current": SWITCH, "_root": "the context outside of any rank, set once"},
    "framework/context.py": {"_tape": IMPORTED, "_join": IMPORTED},
    "framework/mode.py": {"_switch": IMPORTED},
    "framework/row.py": {"ROWS": IMPORTED},
    "framework/philox.py": {"_compiled": ANSWERS},
    "framework/mersenne.py": {"_chunk": ANSWERS},
    "io/worker.py": {"_info": "what a worker process is; it has one rank, and one task, for all its life"},
    "ops/bins.py": {"sliding": ANSWERS, "padded_lengths": ANSWERS, "adaptive": ANSWERS, "fractional": ANSWERS,
                    "transposed": ANSWERS},
    "ops/holes.py": {"HOLES": IMPORTED},
    "ops/interpolate.py": {"taps": ANSWERS, "_runs": ANSWERS},
    "ops/stubs.py": {"_defined": ANSWERS},
    "autograd/tape.py": {"next_seq": "numbers nodes in the order of their making; only the order counts, and a rank "
                                      "sees its own in its order whatever others number in between"},
    "cinn/compile.py": {"_made": ANSWERS, "_MADE": ANSWERS},
    "cinn/frontend/graph.py": {"_ANSWERS": ANSWERS},
    "cinn/kernels.py": {"KERNELS": "kernels by what they compute, the same for all ranks"},
    "cinn/runtime/compiler.py": {
        "process_compiler": "machine code that this process has loaded; what a rank computes does not depend on it",
        "machine_key": ANSWERS, "_helpers": ANSWERS},
    "cinn/runtime/threads.py": {"task_driver": "the threads of the process"},
    "cinn/schedule/nests.py": {"_extent": ANSWERS},
    "decomposition/functions.py": {"FUNCTION_RULES": IMPORTED},
    "decomposition/table.py": {"SMALL": IMPORTED},
    "ir/attribute.py": {"KINDS": IMPORTED, "FROM_PYTHON": IMPORTED},
    "ir/interfaces.py": {"INTERFACES": IMPORTED},
    "ir/paddle/form.py": {"LOADS": IMPORTED, "SAVES": IMPORTED, "WHOLES": IMPORTED},
    "ir/paddle/signatures.py": {"signature": ANSWERS, "_lines": ANSWERS},
    "ir/types.py": {"TYPES": IMPORTED},
    "executor/device.py": {"STREAMS": IMPORTED},
    "executor/makers.py": {"MAKERS": IMPORTED},
    "executor/kernel/table.py": {"REGISTERED": IMPORTED, "TRANSFERS": IMPORTED},
    "executor/overwriting.py": {"_ALLOWED": IMPORTED},
    "jit/dy2static/calls.py": {"_ignored": "the modules that are libraries in this process, whichever rank calls them"},
    "jit/dy2static/rewrite.py": {"_cache": ANSWERS},
    "jit/dy2static/source.py": {"_definitions": ANSWERS},
    "jit/reads.py": {"_returns": ANSWERS},
    "jit/spread.py": {"SUPPLIED": IMPORTED},
    "jit/stages.py": {"STAGES": IMPORTED},
    "nn/tree.py": {"CHANGES": "counts; who remembers attributes of layers looks again when any rank's has changed"},
    "passes/formula.py": {"READER": SWITCH},
    "passes/reading.py": {"parameters": ANSWERS},
    "passes/pattern.py": {"RULES": IMPORTED, "_WATCH": SWITCH},
    "passes/table.py": {"MAKERS": IMPORTED},
    "dist/comm/connect.py": {"_OURS": "how this process is connected to others: MPI starts once, and the process is "
                                      "one rank for all its life"},
    "dist/spmd/table.py": {"RULES": IMPORTED},
    "dist/placements.py": {"_shard": ANSWERS, "_replicate": ANSWERS, "_partial": ANSWERS},
    "dist/reshard/plan.py": {"plan": ANSWERS},
    "dist/reshard/across.py": {"plan_across": ANSWERS, "exchanged": ANSWERS, "like_to_like": ANSWERS},
    "dist/reshard/between.py": {"plan_between": ANSWERS},
}

MUTATING = {"add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "popleft",
            "remove", "reset", "reverse", "set", "setdefault", "sort", "update"}
STATEFUL = {"ContextVar", "Counter", "Lock", "RLock", "WeakKeyDictionary", "WeakSet", "WeakValueDictionary", "count",
            "cycle", "defaultdict", "deque", "local"}


def test_every_changing_global_is_on_the_list():
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        names = changing_globals(ast.parse(path.read_text()))
        if names:
            found[path.relative_to(PACKAGE).as_posix()] = names
    assert found == {path: set(names) for path, names in ALLOWED.items()}


def changing_globals(module: ast.Module) -> set[str]:
    """Names on module level that functions of the module assign, store into or change by a method; objects that change
    by being used; functions that remember."""
    assigned = {target.id: node.value for node in module.body if isinstance(node, (ast.Assign, ast.AnnAssign))
                for top in (node.targets if isinstance(node, ast.Assign) else [node.target])
                for target in ast.walk(top) if isinstance(target, ast.Name)}
    found = {name for name, value in assigned.items() if value is not None and constructs_state(value)}
    for function in ast.walk(module):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if any("cache" in ast.unparse(d) and "cached_property" not in ast.unparse(d)
               for d in getattr(function, "decorator_list", ())):
            found.add(function.name)                                                    # type: ignore[union-attr]
        for node in ast.walk(function):
            match node:
                case ast.Global(names=names):
                    found.update(names)
                case (ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del())
                      | ast.Attribute(value=ast.Name(id=name), ctx=ast.Store() | ast.Del())):
                    found.update({name} & assigned.keys())
                case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if method in MUTATING:
                    found.update({name} & assigned.keys())
    return found


def constructs_state(value: ast.expr) -> bool:
    for node in ast.walk(value):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in STATEFUL:
                return True
    return False


def test_the_check_sees_what_it_should():
    source = """
A = {}; B = []; C = 1; D = {}; E = itertools.count().__next__; F: dict = {}; G = ContextVar("g"); H = {}; I = 0
def f(): A["x"] = 1
def g(): B.append(1); D.get(1)
def h():
    global C
    C += 1
@functools.cache
def k(): del F["x"]
class K:
    def m(self): self.H = 1; H.update(a=1); H = 5
"""
    assert changing_globals(ast.parse(source)) == {"A", "B", "C", "E", "F", "G", "H", "k"}


def test_no_class_keeps_a_mutable_default():
    """A list or dict in a class is shared by its instances: one parameter's `optimize_attr` must not be everyone's."""
    from minipd.framework.tensor import Parameter, Tensor
    for cls in (Tensor, Parameter):
        assert not [k for k, v in vars(cls).items() if isinstance(v, (list, dict, set)) and not k.startswith("__")]
