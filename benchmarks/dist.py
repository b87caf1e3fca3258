"""What distribution costs: the interpreter's time per operator, and the bytes that go over the wires.

    python benchmarks/dist.py            microseconds, bytes against theory; exit status 1 if a figure is not as stated
    python benchmarks/dist.py --mpi      also: the bandwidth of all_reduce over MPI beside MPI's own (`comm.py --mpi`)

Time: an operator on a shard, through the dist interpreter with its placements known (a cache hit), less the same
operator on an ordinary tensor of the shard's size.  Both in turns, medians of rounds.

Bytes are counted, not timed: every collective that the ranks call is noted with its arguments, and a rank gives away
what a ring gives (see `sent`).  Theory is written down beside it, as formulas of the sizes.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import itertools
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import minipd as paddle
from minipd.autograd.engine import grad
from minipd.dist.api import reshard, shard_tensor
from minipd.dist.mesh import ProcessMesh, parse_mesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.reshard.plan import bytes_sent, plan
from minipd.dist.sharding import ceil_chunk
from minipd.dist.simulate import simulate
from minipd.framework.rank import current
from minipd.nn import functional as F

BUDGET = 30.0           # microseconds that an operator may take longer
ROUNDS, REPEATS = 15, 200
R, P, S0, S1, S2 = Replicate(), Partial(), Shard(0), Shard(1), Shard(2)


# ------------------------------------------------------------------------------------------------------- time
def operators(x: Any, y: Any, w: Any, rows: int) -> dict[str, Callable[[], Any]]:
    """Calls that are one operator each.  rows: of x, as the caller sees it."""
    return {
        "add": lambda: x + y, "times a number": lambda: x * 2.0, "tanh": lambda: paddle.tanh(x),
        "matmul": lambda: paddle.matmul(x, w), "add_n of 8": lambda: paddle.add_n([x, y] * 4),
        "concat of 8": lambda: paddle.concat([x, y] * 4, axis=1),
        "softmax": lambda: F.softmax(x, axis=-1), "sum": lambda: paddle.sum(x, axis=1, keepdim=True),
        "reshape": lambda: paddle.reshape(x, [rows, 2, 4]), "transpose": lambda: paddle.transpose(x, [1, 0]),
        "split": lambda: paddle.split(x, 2, axis=1),
    }


def microseconds(function: Callable[[], Any]) -> float:
    """Of the time that this process had a core."""
    start = time.process_time()
    for _ in range(REPEATS):
        function()
    return (time.process_time() - start) / REPEATS * 1e6


def measured(mesh: ProcessMesh) -> list[tuple[str, bool, float, float]]:
    """(operator, with gradient, distributed, ordinary) of rank 0; no operator communicates."""
    found: list[tuple[str, bool, float, float]] = []
    if current().rank:
        return found
    rng = np.random.default_rng(0)
    whole = [rng.normal(size=s).astype("float32") for s in ((8, 8), (8, 8), (8, 8))]
    for wanted in (False, True):
        spread = [shard_tensor(a, mesh, [p], stop_gradient=not wanted) for a, p in zip(whole, (S0, S0, R), strict=True)]
        alone = [paddle.to_tensor(t._local_value().numpy().copy(), stop_gradient=not wanted) for t in spread]
        there, here = operators(*spread, rows=8), operators(*alone, rows=8 // mesh.size)
        for name, function in there.items():
            function(), here[name]()
            rounds = [(microseconds(function), microseconds(here[name])) for _ in range(ROUNDS)]
            found.append((name, wanted, *map(statistics.median, zip(*rounds, strict=True))))
    return found


def show_times() -> bool:
    """Print the table; whether all are within the budget."""
    gc.disable()
    try:
        rows = simulate("x=2", measured)[0]
    finally:
        gc.enable()
    print(f"\nMicroseconds per operator on a shard of 4 x 8 (target: at most {BUDGET:.0f} added)\n")
    print("| operator        | gradient | distributed | ordinary | added |")
    print("| --------------- | -------- | ----------: | -------: | ----: |")
    for name, wanted, there, here in rows:
        print(f"| {name:<15} | {'yes' if wanted else 'no':<8} | {there:11.2f} | {here:8.2f} | {there - here:5.2f} |")
    return all(there - here < BUDGET for _, _, there, here in rows)


# ------------------------------------------------------------------------------------------------------- bytes
class Counting:
    """A communicator that notes, by kind, the bytes that this rank gives to others."""

    def __init__(self, comm: Any):
        self.comm, self.sent = comm, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.comm, name)

    def _note(self, elements: int, x: np.ndarray) -> None:
        self.sent += elements * x.itemsize

    def all_reduce(self, x: np.ndarray, group: tuple, op: str = "sum", **more: Any) -> Any:
        """A reduce-scatter and an all-gather of chunks of the elements in a row."""
        own = ceil_chunk(x.size, len(group), group.index(self.comm.rank))[0]
        self._note(x.size - own + (len(group) - 1) * own if len(group) > 1 else 0, x)
        return self.comm.all_reduce(x, group, op, **more)

    def all_gather(self, x: np.ndarray, group: tuple, *arguments: Any, **more: Any) -> Any:
        self._note((len(group) - 1) * x.size, x)
        return self.comm.all_gather(x, group, *arguments, **more)

    def reduce_scatter(self, x: np.ndarray, group: tuple, *arguments: Any, **more: Any) -> Any:
        out = self.comm.reduce_scatter(x, group, *arguments, **more)
        self._note(x.size - out.size, x)
        return out

    def all_to_all(self, x: np.ndarray, group: tuple, split_axis: int, concat_axis: int, split_sizes: tuple,
                   *arguments: Any, **more: Any) -> Any:
        kept = split_sizes[group.index(self.comm.rank)]
        self._note(x.size // x.shape[split_axis] * (x.shape[split_axis] - kept) if x.size else 0, x)
        return self.comm.all_to_all(x, group, split_axis, concat_axis, split_sizes, *arguments, **more)

    def send(self, x: np.ndarray, *arguments: Any, **more: Any) -> Any:
        self._note(np.size(x), np.asarray(x))
        return self.comm.send(x, *arguments, **more)

    def broadcast(self, x: Any, root: int, group: tuple, *arguments: Any, **more: Any) -> Any:
        """Down a tree or along a ring, everybody but the root gets it once: counted at the root."""
        if root == self.comm.rank:
            self._note((len(group) - 1) * np.size(x), np.asarray(x))
        return self.comm.broadcast(x, root, group, *arguments, **more)


def counted(function: Callable[[], Any]) -> int:
    """The bytes that this rank gives away during `function()`."""
    context = current()
    comm, context.comm = context.comm, Counting(context.comm)
    try:
        function()
        return context.comm.sent
    finally:
        context.comm = comm


B, SEQ, H, HEADS, VOCABULARY = 4, 8, 16, 4, 24


def mlp(x: Any, weights: list) -> Any:
    return F.gelu(x @ weights[0]) @ weights[1]


def attention(x: Any, weights: list) -> Any:
    q, k, v = ((x @ w).reshape([B, SEQ, HEADS, H // HEADS]) for w in weights[:3])
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).reshape([B, SEQ, H]) @ weights[3]


def megatron(mesh: ProcessMesh, block: Callable, inner: int, sequence: bool) -> tuple[int, int]:
    """Bytes that a rank sends in forward and backward of a block of a transformer.  With sequence parallelism the
    activations between blocks are split along the sequence."""
    rng = np.random.default_rng(0)
    shapes = [(H, inner), (inner, H)] if block is mlp else [(H, H)] * 4
    weights = [shard_tensor(rng.normal(size=s), mesh, [S1 if s is not shapes[-1] or i < len(shapes) - 1 else S0],
                            stop_gradient=False) for i, s in enumerate(shapes)]
    leaf = shard_tensor(rng.normal(size=(B, SEQ, H)), mesh, [S1 if sequence else R], stop_gradient=False)
    x = leaf * 1.0
    outs: list = []

    def forward() -> None:
        y = block(reshard(x, mesh, [R]), weights)
        outs.append(reshard(y, mesh, [S1 if sequence else R]))
    there = counted(forward)
    return there, counted(lambda: grad([outs[0]], [leaf, *weights],
                                       [shard_tensor(np.ones((B, SEQ, H)), mesh, [S1 if sequence else R])]))


def vocabulary(mesh: ProcessMesh) -> tuple[int, int]:
    """Embedding, forward and backward, with the table split by rows."""
    ids = shard_tensor(np.random.default_rng(0).integers(0, VOCABULARY, (B, SEQ)), mesh, [R])
    table = shard_tensor(np.ones((VOCABULARY, H)), mesh, [S0], stop_gradient=False)
    outs: list = []
    there = counted(lambda: outs.append(reshard(F.embedding(ids, table), mesh, [R])))
    return there, counted(lambda: grad([outs[0]], [table], [shard_tensor(np.ones((B, SEQ, H)), mesh, [R])]))


def cross_entropy(mesh: ProcessMesh) -> tuple[int, int]:
    rng = np.random.default_rng(0)
    logits = shard_tensor(rng.normal(size=(B * SEQ, VOCABULARY)), mesh, [S1], stop_gradient=False)
    labels = shard_tensor(rng.integers(0, VOCABULARY, (B * SEQ,)), mesh, [R])
    outs: list = []
    there = counted(lambda: outs.append(F.cross_entropy(logits, labels, reduction="none") * 1.0))
    return there, counted(lambda: grad([outs[0]], [logits], [shard_tensor(np.ones((B * SEQ,)), mesh, [R])]))


def data_parallel(mesh: ProcessMesh) -> tuple[int, int]:
    """A linear layer, its batch split: the gradient of the weight is reduced once, after the backward pass."""
    w = shard_tensor(np.ones((H, H)), mesh, [R], stop_gradient=False)
    x = shard_tensor(np.ones((B, SEQ, H)), mesh, [S0])
    outs: list = []
    there = counted(lambda: outs.append(x @ w))

    def backward() -> None:
        g, = grad([outs[0]], [w], [shard_tensor(np.ones((B, SEQ, H)), mesh, [S0])])
        reshard(g, mesh, [R])
    return there, counted(backward)


def parallel_layers(ways: int) -> Iterator[tuple[str, tuple[int, int], tuple[int, int]]]:
    """(what, bytes sent forward and backward, the same in theory)."""
    activation, item = B * SEQ * H, 8
    once = item * activation * (ways - 1) // ways           # a reduce-scatter, or an all-gather
    small = item * 2 * (ways - 1) * B * SEQ // ways         # an all-reduce of a number for every token
    weight = item * 2 * (ways - 1) * H * H // ways
    for what, run, theory in [
            ("MLP", lambda m: megatron(m, mlp, 4 * H, False), (2 * once, 2 * once)),
            ("MLP, sequence parallel", lambda m: megatron(m, mlp, 4 * H, True), (2 * once, 2 * once)),
            ("attention", lambda m: megatron(m, attention, H, False), (2 * once, 2 * once)),
            ("attention, sequence parallel", lambda m: megatron(m, attention, H, True), (2 * once, 2 * once)),
            ("embedding, by vocabulary", vocabulary, (2 * once, 0)),
            ("cross entropy, by vocabulary", cross_entropy, (3 * small, 0)),
            ("linear, data parallel", data_parallel, (0, weight))]:
        for found in simulate(f"tp={ways}", run):
            yield what, found, theory


def show_layers() -> bool:
    print(f"\nBytes that each of n ranks sends: activations of {B} x {SEQ} x {H}, float64.  In theory an all-reduce\n"
          "of N bytes is 2 (n - 1) / n N, an all-gather or reduce-scatter of a whole of N bytes half of that.\n")
    print("| layer                        | n | forward | theory | backward | theory |")
    print("| ---------------------------- | - | ------: | -----: | -------: | -----: |")
    right = True
    for ways in (2, 4):
        for what, rows in itertools.groupby(parallel_layers(ways), key=lambda row: row[0]):
            found = [(sent, theory) for _, sent, theory in rows]
            (forward, backward), theory = found[0]
            right &= all(tuple(sent) == tuple(want) for sent, want in found)
            print(f"| {what:<28} | {ways} | {forward:7} | {theory[0]:6} | {backward:8} | {theory[1]:6} |")
    return right


def on_one_axis(src: Any, dst: Any, whole: int, n: int) -> int:
    """What a rank sends at least, of a tensor of `whole` bytes that n ranks split evenly."""
    kinds = tuple("R" if p.is_replicated() else "P" if p.is_partial() else "S" for p in (src, dst))
    return {("S", "R"): (n - 1) * whole // n, ("P", "R"): 2 * (n - 1) * whole // n, ("P", "S"): (n - 1) * whole // n,
            ("S", "S"): (n - 1) * whole // n ** 2 if src != dst else 0}.get(kinds, 0)


def resharded(mesh: ProcessMesh, pairs: list, shape: tuple[int, ...]) -> list[int]:
    """The bytes that this rank sends for every pair of placements."""
    x = np.arange(math.prod(shape), dtype=np.float64).reshape(shape)
    found = []
    for src, dst in pairs:
        t = shard_tensor(x, mesh, src)
        out: list = []
        found.append(counted(lambda t=t, dst=dst, out=out: out.append(reshard(t, mesh, dst))))
        np.testing.assert_array_equal(out[0].numpy(), x)
    return found


def show_reshards() -> bool:
    right = True
    kinds = [R, S0, S1, P]
    n, shape = 4, (8, 12)
    whole = math.prod(shape) * 8
    pairs = [([a], [b]) for a in kinds for b in kinds]
    counts = simulate(f"x={n}", lambda mesh: resharded(mesh, pairs, shape))
    print(f"\nBytes that each of {n} ranks sends to reshard {shape[0]} x {shape[1]} float64, and the least possible\n")
    print("| from | " + " | ".join(f"to {label(b):<9}" for b in kinds) + " |")
    print("| ---- |" + " -----------: |" * len(kinds))
    for i, a in enumerate(kinds):
        cells = []
        for j, b in enumerate(kinds):
            sent = {c[i * len(kinds) + j] for c in counts}
            least = on_one_axis(a, b, whole, n)
            right &= sent == {least}
            cells.append(f"{'/'.join(map(str, sorted(sent))):>4} ({least:>4}) ")
        print(f"| {label(a):<4} | " + "| ".join(f"{c:<13}" for c in cells) + "|")
    print("\nAll pairs, each rank's bytes as sent and as the plan counts them:\n")
    print("| mesh      | tensor | pairs | sent in all | as planned |")
    print("| --------- | ------ | ----: | ----------: | ---------: |")
    even, uneven = (8, 12), (5, 7)
    for text, shape in (("x=4", even), ("x=4", uneven), ("x=2,y=2", even), ("x=2,y=2", uneven), ("x=2,y=3", uneven)):
        mesh = parse_mesh(text)
        places = list(itertools.product([*kinds, Partial("max")] if mesh.ndim == 1 else kinds, repeat=mesh.ndim))
        pairs = [(a, b) for a in places for b in places]
        counts = simulate(text, lambda grid, pairs=pairs, shape=shape: resharded(grid, pairs, shape))
        planned = [[bytes_sent(plan(tuple(a), tuple(b), mesh, len(shape), shape), shape, np.dtype("float64"), rank)
                    for a, b in pairs] for rank in range(mesh.size)]
        wrong = [(pairs[i], rank, c, planned[rank][i]) for rank, found in enumerate(counts)
                 for i, c in enumerate(found) if c != planned[rank][i]]
        print(f"| {text:<9} | {shape[0]} x {shape[1]:<2} | {len(pairs):5} | {sum(map(sum, counts)):11} | "
              f"{sum(map(sum, planned)):10} |")
        for pair, rank, c, want in wrong[:5]:
            print(f"  {pair}: rank {rank} sent {c}, the plan says {want}")
        right &= not wrong
    return right


def show_bandwidth() -> bool:
    """Of an all-reduce over MPI, beside mpi4py's own (`comm.py`)."""
    spec = importlib.util.spec_from_file_location("comm", Path(__file__).with_name("comm.py"))
    assert spec is not None and spec.loader is not None
    comm = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(comm)
    print("\nAll-reduce on 2 MPI ranks (target: at least 95 % of the bandwidth of mpi4py's Allreduce)\n")
    print("|    bytes | ours, ms | Allreduce, ms | of its bandwidth |")
    print("| -------: | -------: | ------------: | ---------------: |")
    rows = comm.measured(2)
    for size, ours, theirs in rows:
        print(f"| {size:8} | {ours * 1e3:8.2f} | {theirs * 1e3:13.2f} | {theirs / ours:15.0%}  |")
    return all(theirs / ours >= 0.95 for _, ours, theirs in rows)


def label(p: Any) -> str:
    return f"S({p.dim})" if p.is_shard() else "P" if p.is_partial() else "R"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpi", action="store_true", help="also the bandwidth over MPI, on 2 ranks")
    options = parser.parse_args()
    right = [show_times(), show_layers(), show_reshards()]
    if options.mpi:
        right.append(show_bandwidth())
    print("\n" + ("all as stated" if all(right) else "NOT as stated: see above"))
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
