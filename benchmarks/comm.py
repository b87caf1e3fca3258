"""What a collective costs.

    python benchmarks/comm.py                       simulated ranks, beside the bare numpy and greenlet work in it
    minipd launch -n 4 benchmarks/comm.py --mpi     MPI ranks, beside MPI's own Allreduce (--pairs: in groups of two)
    minipd launch -n 2 benchmarks/comm.py --large   the same for large arrays, as a ratio of bandwidths

Simulated: microseconds for a whole collective, all ranks together.  MPI: microseconds that a rank waits for it.  Each
is the best of several rounds, or (--large) their median, and the compared ones take turns.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time

import greenlet
import numpy as np

from minipd.dist.comm.sim import World

ROUNDS = 7


def best(work, repeats):
    """Microseconds per repeat of `work(repeats)`, once."""
    start = time.perf_counter()
    work(repeats)
    return (time.perf_counter() - start) / repeats * 1e6


def least(works, repeats):
    """For each of the works, the least microseconds over the rounds."""
    return [min(times) for times in zip(*([best(w, repeats) for w in works] for _ in range(ROUNDS)), strict=True)]


def simulated(ranks, elements=16, repeats=3000):
    """(all-reduce, the numpy calls in it, as many bare greenlet switches), in microseconds."""
    group, x = tuple(range(ranks)), np.ones(elements, np.float32)

    def all_reduce(repeats):
        def run(comm):
            for _ in range(repeats):
                comm.all_reduce(x, group)
        World(ranks).run(run)

    def arithmetic(repeats):
        for _ in range(repeats):
            total = x.copy()
            for _ in range(ranks - 1):
                np.add(total, x, out=total)
            for _ in range(ranks - 1):
                total.copy()

    def switches(repeats):
        def back_and_forth():
            while True:
                hub.switch()
        hub = greenlet.getcurrent()
        other = greenlet.greenlet(back_and_forth)
        for _ in range(repeats * ranks // 2):
            other.switch()
    return least([all_reduce, arithmetic, switches], repeats)


def mpi(pairs):
    """A table of all-reduce times over sizes, printed by rank 0."""
    from mpi4py import MPI

    from minipd.dist.comm.connect import connect
    with connect() as comm:
        first = comm.rank // 2 * 2
        group = tuple(r for r in (first, first + 1) if r < comm.size) if pairs else tuple(range(comm.size))
        theirs = MPI.COMM_WORLD.Create_group(MPI.COMM_WORLD.Get_group().Incl(group))
        if comm.rank == 0:
            print(f"{comm.size} ranks, groups of {len(group)}; us")
            print(f"{'bytes':>10} {'all_reduce':>12} {'Allreduce':>12}")
        for elements in (16, 1024, 16384, 131072, 1 << 20):
            x = np.ones(elements, np.float32)
            out = np.empty_like(x)

            def ours(repeats, x=x):
                for _ in range(repeats):
                    comm.all_reduce(x, group)
                comm.barrier()

            def library(repeats, x=x, out=out):
                for _ in range(repeats):
                    theirs.Allreduce(x, out)
                comm.barrier()
            times = least([ours, library], max(3, min(300, 20_000_000 // (x.nbytes + 20_000))))
            if comm.rank == 0:
                print(f"{x.nbytes:>10} {times[0]:>12.1f} {times[1]:>12.1f}", flush=True)


def large(comm, sizes=(1 << 20, 1 << 22, 1 << 24, 1 << 26), rounds=31):
    """For each size in bytes: (bytes, seconds of our all_reduce, seconds of mpi4py's Allreduce), on every rank.

    Medians over rounds in which the two take turns; both give their result in a new array.
    """
    from mpi4py import MPI

    group = tuple(range(comm.size))
    table = []
    for size in sizes:
        x = np.random.default_rng(comm.rank).standard_normal(size // 4).astype(np.float32)

        def library(x=x):
            MPI.COMM_WORLD.Allreduce(x, out := np.empty_like(x))
            return out

        def ours(x=x):
            return comm.all_reduce(x, group)
        seconds = {library: [], ours: []}
        for _ in range(rounds + 1):
            for work, times in seconds.items():
                MPI.COMM_WORLD.Barrier()
                start = time.perf_counter()
                work()
                MPI.COMM_WORLD.Barrier()
                times.append(time.perf_counter() - start)
        table.append((size, *(statistics.median(seconds[work][1:]) for work in (ours, library))))
    return table


def measured(ranks=2):
    """What `large` gives on so many MPI ranks, started from here: a list of [bytes, ours, Allreduce's]."""
    done = subprocess.run([sys.executable, "-m", "minipd", "launch", "-n", str(ranks), __file__, "--large", "--json"],
                          stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpi", action="store_true")
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.large:
        from minipd.dist.comm.connect import connect
        with connect() as comm:
            table = large(comm)
        if comm.rank == 0 and options.json:
            print(json.dumps(table))
        elif comm.rank == 0:
            print(f"{comm.size} ranks\n{'bytes':>10} {'all_reduce':>12} {'Allreduce':>12}  our share of its bandwidth")
            for size, ours, theirs in table:
                print(f"{size:>10} {ours * 1e6:>9.0f} us {theirs * 1e6:>9.0f} us  {theirs / ours:.2f}")
    elif options.mpi:
        mpi(options.pairs)
    else:
        print(f"{'ranks':>5} {'all_reduce':>12} {'its numpy':>12} {'its switches':>12}  (us, 16 floats)")
        for ranks in (2, 4, 8):
            print(f"{ranks:>5} {''.join(f'{t:>13.2f}' for t in simulated(ranks))}")
