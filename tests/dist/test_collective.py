"""Paddle's collectives on ordinary tensors, on simulated ranks and on MPI ranks."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import minipd as paddle
import minipd.distributed as dist
from minipd.dist.api import shard_tensor
from minipd.dist.comm.errors import MismatchError
from minipd.dist.launch import environment
from minipd.dist.mesh import parse_mesh
from minipd.dist.placements import Replicate
from minipd.framework.context import RankContext
from minipd.framework.rank import current, enter, leave
from tests.dist.collective_functions import check_functions
from tests.dist.ranks import on_mesh

ROOT = Path(__file__).resolve().parents[2]


def on_ranks(function, ranks=3):
    """What `function(rank)` returns on each rank that has called init_parallel_env."""
    def run(mesh):
        dist.init_parallel_env()
        return function(dist.get_rank())
    return on_mesh(f"x={ranks}", run)


def mine(rank, shape=(2,), dtype="float32"):
    return paddle.to_tensor((np.arange(np.prod(shape)).reshape(shape) + 10 * rank).astype(dtype))


# ---------------------------------------------------------------------------------------------------- collectives
@pytest.mark.parametrize(("op", "want"), [
    (dist.ReduceOp.SUM, [30, 33]), (dist.ReduceOp.MAX, [20, 21]), (dist.ReduceOp.MIN, [0, 1]),
    (dist.ReduceOp.PROD, [0, 231]), (dist.ReduceOp.AVG, [10, 11])])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_all_reduce(op, want, dtype):
    if op == dist.ReduceOp.AVG and dtype == "int64":
        with pytest.raises(TypeError, match=r"all_reduce: expected floats for ReduceOp.AVG, got i64\[2\]; use SUM"):
            on_ranks(lambda r: dist.all_reduce(mine(r, dtype=dtype), op))
        return

    def run(rank):
        x = mine(rank, dtype=dtype)
        task = dist.all_reduce(x, op)
        return x.tolist(), x.dtype.name, task.wait(), task.is_completed()
    assert on_ranks(run) == [(want, dtype, True, True)] * 3


def test_all_gather_in_its_three_forms():
    def run(rank):
        into, given, whole = [], [paddle.zeros([2]) for _ in range(3)], paddle.zeros([6])
        handles = list(given)
        x = mine(rank)
        for target in (into, given, whole):
            dist.all_gather(target, x)
        zero_d = []
        dist.all_gather(zero_d, paddle.to_tensor(float(rank)))
        x.fill_(-1.0)                                   # what was gathered is nobody else's memory
        return ([t.tolist() for t in into], [t.tolist() for t in given],
                all(a is b for a, b in zip(given, handles, strict=True)), whole.tolist(), [t.item() for t in zero_d])
    rows = [[0, 1], [10, 11], [20, 21]]
    assert on_ranks(run) == [(rows, rows, True, [0, 1, 10, 11, 20, 21], [0, 1, 2])] * 3


@pytest.mark.parametrize("src", [0, 2])
def test_broadcast(src):
    def run(rank):
        x = mine(rank)
        dist.broadcast(x, src)
        return x.tolist()
    assert on_ranks(run) == [[10 * src, 10 * src + 1]] * 3


def test_reduce_scatter():
    """Rank i gets the sum of what everybody has for i; as a list, and as one tensor."""
    def run(rank):
        parts = [paddle.to_tensor([[100.0 * rank + i]]) for i in range(3)]
        out, whole, best = paddle.zeros([1, 1]), paddle.zeros([1, 1]), paddle.zeros([1, 1])
        dist.reduce_scatter(out, parts)
        dist.reduce_scatter(whole, paddle.concat(parts, axis=0))
        dist.reduce_scatter(best, parts, op=dist.ReduceOp.MAX)
        return out.tolist(), whole.tolist(), best.item(), [p.item() for p in parts]
    for rank, got in enumerate(on_ranks(run)):
        total = [[300.0 + 3 * rank]]
        assert got == (total, total, 200.0 + rank, [100.0 * rank + i for i in range(3)])


def test_alltoall():
    """What rank r has for i comes to i, from r; also with tensors of other shapes, and as one tensor."""
    def run(rank):
        out = []
        dist.alltoall(out, [mine(rank) + i for i in range(3)])
        uneven = [paddle.zeros([rank + 1]) for _ in range(3)]
        dist.alltoall(uneven, [paddle.full([i + 1], 10.0 * rank + i) for i in range(3)])
        whole = paddle.zeros([6], "int64")
        dist.alltoall(whole, paddle.arange(6) + 100 * rank)
        return [t.tolist() for t in out], [t.tolist() for t in uneven], whole.tolist()
    for rank, got in enumerate(on_ranks(run)):
        assert got == ([[10 * r + rank, 10 * r + rank + 1] for r in range(3)],
                       [[10.0 * r + rank] * (rank + 1) for r in range(3)],
                       [100 * r + 2 * rank + i for r in range(3) for i in range(2)])


def test_send_and_recv_in_a_ring():
    def run(rank):
        x, y = mine(rank), paddle.zeros([2])
        dist.send(x, dst=(rank + 1) % 3)
        x.fill_(0.0)                                    # send has taken a copy
        dist.recv(y, src=(rank - 1) % 3)
        return y.tolist()
    assert on_ranks(run) == [[20, 21], [0, 1], [10, 11]]


def test_objects_and_barrier():
    def run(rank):
        found = ["mine"]
        dist.all_gather_object(found, {"rank": rank})
        dist.barrier()
        return found
    assert on_ranks(run) == [["mine", {"rank": 0}, {"rank": 1}, {"rank": 2}]] * 3


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_every_function_against_numpy(ranks):
    """Random groups, dtypes and shapes, calls that are over when they return and calls that are not."""
    assert min(on_mesh(f"x={ranks}", lambda mesh: check_functions(range(100 * ranks, 100 * ranks + 25)))) > 200


# ------------------------------------------------------------------------------------ calls that take their time
def test_what_was_begun_is_there_after_wait():
    def run(rank):
        x, y = mine(rank), mine(rank)
        task = dist.all_reduce(x, sync_op=False)
        other = dist.broadcast(y, 1, sync_op=False)
        before = x.tolist(), task.is_sync(), len(current().tasks)
        dist.wait(y)                                    # in another order than they were begun
        between = y.tolist(), other.is_completed(), len(current().tasks)
        task.synchronize()
        return before, between, x.tolist(), task.is_completed(), task.wait(), len(current().tasks)
    assert on_ranks(run) == [(([10 * r, 10 * r + 1], False, 2), ([10, 11], True, 1), [30, 33], True, True, 0)
                             for r in range(3)]


def test_irecv_before_the_message_is_sent():
    def run(rank):
        x, y = mine(rank), paddle.zeros([2])
        task = dist.irecv(y, (rank - 1) % 3)
        done = task.is_completed()
        dist.barrier()
        dist.isend(x, (rank + 1) % 3)
        return done, task.wait(), y.tolist()
    assert on_ranks(run) == [(False, True, [10 * r, 10 * r + 1]) for r in (2, 0, 1)]


def test_all_gather_into_an_empty_list_has_its_tensors_at_once():
    def run(rank):
        into = []
        task = dist.all_gather(into, mine(rank), sync_op=False)
        handles = list(into)
        task.wait()
        return all(a is b for a, b in zip(into, handles, strict=True)), [t.tolist() for t in into]
    assert on_ranks(run) == [(True, [[0, 1], [10, 11], [20, 21]])] * 3


def test_what_was_begun_and_forgotten_is_completed_at_the_end():
    def run(rank):
        x = mine(rank)
        dist.all_reduce(x, sync_op=False)
        dist.destroy_process_group()
        return x.tolist(), current().tasks, dist.is_initialized()
    assert on_ranks(run) == [([30, 33], [], False)] * 3


def test_the_streams_of_a_gpu():
    def run(rank):
        x, y = mine(rank), paddle.zeros([3])
        dist.stream.all_reduce(x, use_calc_stream=True)
        dist.stream.alltoall_single(y, paddle.to_tensor([1.0, 2.0, 3.0]) * (rank + 1), [1, 1, 1], [1, 1, 1])
        with pytest.raises(RuntimeError, match="stream.all_reduce: use_calc_stream can only be true in sync op"):
            dist.communication.stream.all_reduce(x, sync_op=False, use_calc_stream=True)
        return x.tolist(), y.tolist()
    assert on_ranks(run) == [([30, 33], [r + 1, 2 * r + 2, 3 * r + 3]) for r in range(3)]


# --------------------------------------------------------------------------------------- writes are seen as writes
def test_received_values_are_in_place_writes():
    """Views see them, versions count them, and a gradient that saved the old value refuses it."""
    def run(rank):
        x = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]])
        row, version = x[1], x.inplace_version
        dist.all_reduce(row)
        w = paddle.to_tensor([1.0], stop_gradient=False)
        y = w * 2.0
        z = y * y
        dist.broadcast(y, 0)
        with pytest.raises(RuntimeError, match="was saved for the gradient of multiply and modified in place"):
            z.backward()
        p = paddle.to_tensor([float(rank)], stop_gradient=False)
        dist.broadcast(p, 1)                            # a leaf's values may be set: no operator is recorded
        (p * 3.0).backward()
        return x.tolist(), x.inplace_version - version, p.item(), p.grad.item()
    assert on_ranks(run) == [([[1, 2], [9, 12]], 1, 1.0, 3.0)] * 3


# --------------------------------------------------------------------------------------------------------- groups
def test_groups():
    def run(rank):
        pair, everyone = dist.new_group([2, 0]), dist.new_group()
        x, gathered = mine(rank), []
        found = (pair.rank, pair.ranks, pair.nranks, pair.world_size, pair.is_member(), dist.get_rank(pair),
                 dist.get_world_size(pair), [pair.get_group_rank(r) for r in range(3)], pair.id, everyone.ranks,
                 dist.get_group(pair.id) is pair, dist.get_rank(), dist.get_world_size())
        if pair.is_member():
            dist.all_reduce(x, group=pair)
            dist.all_gather(gathered, mine(rank), group=pair)
            dist.barrier(pair)
        return found, x.tolist(), [t.tolist() for t in gathered], repr(pair)
    ranks = on_ranks(run)
    for rank, at in ((0, 0), (2, 1)):                   # in ascending order, as in Paddle
        assert ranks[rank][0] == (at, [0, 2], 2, 2, True, at, 2, [0, -1, 1], 10, [0, 1, 2], True, rank, 3)
        assert ranks[rank][1:3] == ([20, 22], [[0, 1], [20, 21]])
    assert ranks[1][0] == (-1, [0, 2], 2, -1, False, -1, -1, [-1, -1, -1], 10, [0, 1, 2], True, 1, 3)
    assert ranks[1][1:] == ([10, 11], [], "rank: -1, nranks: 2, id: 10, ranks: 0, 2; name: _default_pg10")


def test_groups_of_which_a_rank_is_no_member():
    def run(rank):
        pair = dist.new_group([0, 1], backend="gloo")
        if rank < 2:
            return dist.get_backend(pair), pair.process_group is pair, [pair.get_global_rank(i) for i in range(2)]
        dist.barrier(pair)
        dist.wait(mine(0), pair)
        with pytest.raises(RuntimeError, match="Invalid group specified: rank 2 is not in"):
            dist.get_backend(pair)
        with pytest.raises(RuntimeError, match=r"all_gather: expected a member of the group \[0, 1\]"):
            dist.all_gather([], mine(0), group=pair)
        return pair.get_global_rank(0)
    assert on_ranks(run) == [("GLOO", True, [0, 1]), ("GLOO", True, [0, 1]), -1]


def test_messages_of_groups_are_kept_apart():
    def run(rank):
        pair, y, z = dist.new_group([0, 1]), paddle.zeros([2]), paddle.zeros([2])
        if rank == 0:
            dist.send(mine(1), 1)
            dist.send(mine(2), 1, pair)
        if rank == 1:
            dist.recv(y, 0, pair)
            dist.recv(z, 0)
        return y.tolist(), z.tolist()
    assert on_ranks(run)[1] == ([20, 21], [10, 11])


def test_a_group_that_was_shut_down():
    def run(rank):
        pair, x = dist.new_group([0, 1]), mine(rank)
        dist.shutdown_process_group(pair)
        if rank < 2:
            with pytest.raises(RuntimeError, match="all_reduce: expected a group that communicates, got .*shut down"):
                dist.all_reduce(x, group=pair)
            dist.restart_process_group()
            dist.all_reduce(x, group=pair)
        return x.tolist()
    assert on_ranks(run) == [[10, 12], [10, 12], [20, 21]]


def test_a_rank_that_is_not_in_the_group_does_nothing_and_says_so():
    def run(rank):
        pair = dist.new_group([0, 1])
        x = mine(rank)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            task = dist.all_reduce(x, group=pair)
        return task is None, x.tolist(), [str(w.message) for w in caught]
    assert on_ranks(run)[2] == (True, [20, 21], ["Current global rank 2 is not in group _default_pg10 of the ranks "
                                                 "[0, 1]: all_reduce does nothing"])


# ---------------------------------------------------------------------------------------------------- environment
def test_a_process_alone_is_rank_0_of_1():
    def run():
        assert not dist.is_initialized()
        with pytest.warns(UserWarning, match="Currently not a parallel execution environment"):
            group = dist.init_parallel_env()
        x, out, objects = paddle.to_tensor([1.0, 2.0]), [], []
        dist.all_reduce(x)
        dist.all_gather(out, x)
        dist.broadcast(x, 0)
        dist.reduce_scatter(x, [x])
        dist.alltoall(out, [x * 2.0])
        dist.all_gather_object(objects, "o")
        dist.barrier()
        again = dist.init_parallel_env() is group
        found = x.tolist(), [t.tolist() for t in out], objects, group.ranks, dist.is_initialized(), again
        dist.destroy_process_group()
        return *found, dist.is_initialized()
    token = enter(RankContext())
    try:
        assert run() == ([1, 2], [[2, 4]], ["o"], [0], False, True, False)
    finally:
        leave(token)


def test_what_the_context_had_stays():
    def run(rank):
        group = dist.new_group([0])
        dist.destroy_process_group(group)
        with pytest.raises(ValueError, match="all_reduce: expected a group that exists, got .*, which was destroyed"):
            dist.all_reduce(mine(rank), group=group)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            missing = dist.get_group(group.id)
        return current().rng.initial_seed, missing, str(caught[0].message)

    def seeded(mesh):
        paddle.seed(9)
        dist.init_parallel_env()
        return run(dist.get_rank())
    assert on_mesh("x=2", seeded) == [(9, None, "Group 10 is not initialized.")] * 2


# --------------------------------------------------------------------------------------------------------- errors
@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda r: dist.all_reduce(mine(r), 7), ValueError,
     "all_reduce: expected ReduceOp.SUM, MAX, MIN, PROD or AVG, got 7"),
    (lambda r: dist.all_reduce(np.ones(2)), TypeError, r"all_reduce: expected a Tensor, got array\(\[1., 1.\]\)"),
    (lambda r: dist.all_reduce(shard_tensor(np.ones(2), parse_mesh("x=3"), [Replicate()])), TypeError,
     r"all_reduce: expected an ordinary tensor with values, got f64\[2\]; a distributed tensor changes its placements "
     "with reshard"),
    (lambda r: dist.all_gather([paddle.zeros([2])], mine(r)), ValueError,
     "all_gather: expected a list of 3 tensors, one for each rank of the group, got 1"),
    (lambda r: dist.all_gather([paddle.zeros([3])] * 3, mine(r)), ValueError,
     r"all_gather: expected f32\[2\], got f32\[3\]"),
    (lambda r: dist.all_gather(paddle.zeros([4]), mine(r)), ValueError,
     r"all_gather: expected 3 times f32\[2\] along dimension 0, got f32\[4\]"),
    (lambda r: dist.broadcast(mine(r), 3), ValueError, r"broadcast: expected a rank of the group, \[0, 1, 2\], got 3"),
    (lambda r: dist.reduce_scatter(mine(r), [mine(r)]), ValueError, "reduce_scatter: expected a list of 3 tensors"),
    (lambda r: dist.reduce_scatter(mine(r), [mine(r, dtype="float64")] * 3), ValueError,
     r"reduce_scatter: expected f32\[2\], got f64\[2\]"),
    (lambda r: dist.alltoall(paddle.zeros([4]), paddle.zeros([4])), ValueError,
     r"alltoall: expected dimension 0 to be divided by 3 ranks, got f32\[4\]"),
    (lambda r: dist.alltoall([], paddle.zeros([4])), TypeError, "alltoall: expected two lists or two tensors"),
    (lambda r: dist.alltoall([], [mine(r), mine(r), mine(r, dtype="int64")]), ValueError,
     "alltoall: expected tensors of one dtype"),
    (lambda r: dist.alltoall_single(paddle.zeros([3]), paddle.zeros([4]), [1, 1, 1]), ValueError,
     r"alltoall_single: expected 3 sizes that make up the 4 rows of f32\[4\], got \[1, 1, 1\]"),
    (lambda r: dist.alltoall_single(paddle.zeros([3, 2]), paddle.zeros([3])), ValueError,
     r"alltoall_single: expected tensors of one dtype that are alike but for dimension 0, got f32\[3\] to send and "
     r"f32\[3, 2\] to receive in"),
    (lambda r: dist.all_reduce(mine(r, dtype="complex64"), dist.ReduceOp.MAX), TypeError,
     r"all_reduce: expected real numbers for ReduceOp.MAX, got c64\[2\]"),
    (lambda r: dist.reduce(mine(r), 5), ValueError, r"reduce: expected a rank of the group, \[0, 1, 2\], got 5"),
    (lambda r: dist.gather(mine(r)), ValueError, "gather: expected a gather_list on rank 0, which gets the tensors"),
    (lambda r: dist.scatter(mine(r), [mine(r)]), ValueError, "scatter: expected a list of 3 tensors"),
    (lambda r: dist.scatter_object_list([], [1]), ValueError, "scatter_object_list: expected a list of 3 objects"),
    (lambda r: dist.send_object_list([], 1), ValueError, r"send_object_list: expected a list of at least one object"),
    (lambda r: dist.send_object_list([1], 1, dst_in_group=1), ValueError, "expected dst or dst_in_group, got both"),
    (lambda r: dist.recv_object_list([1], src_in_group=3), ValueError, "expected src_in_group from 0 to 2, got 3"),
    (lambda r: dist.P2POp(dist.send, mine(r), 1), RuntimeError, "P2POp: expected paddle.distributed.isend or irecv"),
    (lambda r: dist.batch_isend_irecv([]), RuntimeError, "batch_isend_irecv: expected a list of P2POp"),
    (lambda r: dist.new_group([0, 1], backend="mine"), ValueError, "new_group: expected a backend of auto, gloo"),
    (lambda r: dist.send(mine(r), r), ValueError, "send: expected another rank, got 0, which is this one"),
    (lambda r: dist.new_group([0, 0]), ValueError, r"new_group: expected different ranks of 0 to 2, got \[0, 0\]"),
    (lambda r: dist.new_group([3]), ValueError, r"new_group: expected different ranks of 0 to 2, got \[3\]"),
])
def test_errors(call, error, text):
    def run(rank):
        if rank == 0:
            with pytest.raises(error, match=text):
                call(rank)
    on_ranks(run)


def test_a_message_of_another_shape():
    def run(rank):
        if rank == 0:
            dist.send(mine(0, (3,)), 1)
        elif rank == 1:
            with pytest.raises(ValueError, match=r"recv from rank 0: expected f32\[2\], got f32\[3\]"):
                dist.recv(paddle.zeros([2]), 0)
    on_ranks(run)


def test_objects_of_another_number():
    def run(rank):
        if rank == 0:
            dist.send_object_list([1, 2], 1)
            dist.send(mine(0), 2)
        else:
            with pytest.raises(ValueError, match=r"expected 3 objects from rank 0, got (2 of them|a tensor)"):
                dist.recv_object_list([None] * 3, 0)
    on_ranks(run)


def test_ranks_that_disagree_on_the_root():
    with pytest.raises(MismatchError, match=r"They differ in sizes: \(1, 0, 0\) and \(0, 1, 0\)"):
        on_ranks(lambda rank: dist.reduce(mine(rank), dst=min(rank, 1)))
    with pytest.raises(MismatchError, match=r"rank 0 expects \(1, 0, 0\) along axis 0 from the ranks \(0, 1, 2\), but "
                                            r"they give it \(1, 1, 0\)"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        on_ranks(lambda rank: dist.scatter(mine(rank), [mine(0)] * 3, src=min(rank, 1)))


def test_a_process_alone_before_init_parallel_env():
    token = enter(RankContext())
    try:
        for call in (lambda: dist.all_reduce(paddle.zeros([1])), dist.new_group, dist.barrier, dist.get_backend,
                     dist.destroy_process_group):
            with pytest.raises(RuntimeError, match="The global group is not initialized: this process is alone"):
                call()
    finally:
        leave(token)


def test_ranks_join_each_other_when_they_need_to():
    def run(mesh):
        before = dist.is_initialized(), dist.get_rank(), dist.get_world_size()
        x = paddle.to_tensor([current().rank + 1.0])
        dist.all_reduce(x)
        return before, x.item(), dist.is_initialized(), dist.get_group().ranks
    assert on_mesh("x=2", run) == [((False, r, 2), 3.0, True, [0, 1]) for r in range(2)]


# ------------------------------------------------------------------------------------------------------ MPI ranks
SCRIPT = """
import numpy as np
import minipd as paddle
import minipd.distributed as dist

paddle.seed(3)
x = dist.shard_tensor(paddle.ones([2]), dist.ProcessMesh([0]), [dist.Replicate()])     # before ranks are known
assert dist.get_world_size() == 3 and not dist.is_initialized()
group = dist.init_parallel_env()
rank, size = dist.get_rank(), dist.get_world_size()
assert size == 3 and group.ranks == [0, 1, 2] and dist.is_initialized()
total, rows, objects = paddle.to_tensor([rank + 1.0]), [], []
dist.all_reduce(total)
dist.all_gather(rows, paddle.to_tensor([rank]))
dist.all_gather_object(objects, rank)
mine = paddle.zeros([1])
dist.reduce_scatter(mine, [paddle.to_tensor([10.0 * rank + i]) for i in range(size)])
swapped = []
dist.alltoall(swapped, [paddle.to_tensor([100 * rank + i]) for i in range(size)])
dist.send(paddle.to_tensor([float(rank)]), (rank + 1) % size)
got = paddle.zeros([1])
dist.recv(got, (rank - 1) % size)
pair = dist.new_group([2, 0])
if pair.is_member():
    dist.all_reduce(got, group=pair)
# the interpreter, which was there before, knows its rank now
w = dist.shard_tensor(paddle.arange(5.0), dist.ProcessMesh([0, 1, 2]), [dist.Shard(0)])
print(rank, total.item(), [r.item() for r in rows], objects, mine.item(), [s.item() for s in swapped], got.item(),
      w._local_value().tolist(), w.sum().item())
dist.destroy_process_group()
assert not dist.is_initialized()
"""


@pytest.mark.mpi
def test_mpi_ranks(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, "-m", "minipd", "launch", "-n", "3", str(tmp_path / "script.py")], cwd=ROOT,
                          capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(done.stdout.splitlines()) == [
        "0 6.0 [0, 1, 2] [0, 1, 2] 30.0 [0, 100, 200] 3.0 [0.0, 1.0] 10.0",
        "1 6.0 [0, 1, 2] [0, 1, 2] 33.0 [1, 101, 201] 0.0 [2.0, 3.0] 10.0",
        "2 6.0 [0, 1, 2] [0, 1, 2] 36.0 [2, 102, 202] 3.0 [4.0] 10.0"]


@pytest.mark.mpi
def test_every_function_on_mpi_ranks():
    done = subprocess.run([sys.executable, "-m", "minipd.distributed.launch", "--nproc_per_node", "3",
                           "tests/dist/collective_functions.py", "12"], cwd=ROOT, capture_output=True, text=True,
                          timeout=120, env=environment(3, {"PYTHONPATH": str(ROOT)}))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "checked 3 True\n"


@pytest.mark.mpi
def test_the_example_runs_on_four_ranks():
    done = subprocess.run([sys.executable, "-m", "minipd", "launch", "-n", "4", "examples/distributed.py"], cwd=ROOT,
                          capture_output=True, text=True, timeout=60,
                          env=environment(4, {"PYTHONPATH": str(ROOT)}))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("""\
mesh  shape [2, 2], process_ids [0, 1, 2, 3], dim_names ['dp', 'tp']
x     f32[6_dp, 4_tp]          rank 0 has [3, 2]
w     f32[4_tp, 8]             rank 0 has [2, 8]
x @ w f32[6_dp, 8]{P_tp}       rank 0 has [3, 8]
  to  f32[6_dp, 8_tp]          rank 0 has [3, 4]    tp: Partial(reduce_type=SUM) -> Shard(dim=1)  (reduce_scatter)
dw    f32[4_tp, 8]{P_dp}       rank 0 has [2, 8]
  to  f32[4_tp, 8]             rank 0 has [2, 8]    dp: Partial(reduce_type=SUM) -> Replicate()  (all_reduce)
up.w  f32[4, 16_tp]            rank 0 has [4, 8]
""")
    eager, static = done.stdout.splitlines()[-2:]
    assert eager.split()[0] == "eager" and static.split()[0] == "static" and eager.split()[1:] == static.split()[1:]


AFTER = """
import sys
import minipd as paddle
import minipd.distributed as dist
from minipd.dist.comm.errors import CommError
dist.init_parallel_env()
rank = dist.get_rank()
if sys.argv[1] == "a lost message" and rank == 0:
    dist.send(paddle.ones([2]), 1)
try:
    dist.destroy_process_group()
except CommError:
    assert rank == 1
if sys.argv[1] == "a late call" and rank == 1:
    dist.init_parallel_env()
    dist.all_reduce(paddle.ones([2]))
"""


@pytest.mark.mpi
@pytest.mark.parametrize("what, told", [("a lost message", "rank 1 never received a message from rank 0"),
                                        ("a late call", "rank 1 called all_reduce#1(f32[2], op=sum)")])
def test_nobody_waits_for_ranks_that_have_destroyed_their_groups(tmp_path, what, told):
    """Rank 1 used to hang: the others had ended, and had not said so."""
    (tmp_path / "script.py").write_text(AFTER)
    done = subprocess.run([sys.executable, "-m", "minipd", "launch", "-n", "2", str(tmp_path / "script.py"), what],
                          cwd=ROOT, capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 1 and told in done.stderr, done.stderr


EARLY = """
import sys
import minipd.distributed as dist
if dist.get_rank() == 1:
    sys.exit(5)
dist.barrier()
"""


@pytest.mark.mpi
def test_a_rank_that_ends_before_it_has_met_the_others(tmp_path):
    """The others used to be killed without a word, where they waited to meet it."""
    (tmp_path / "script.py").write_text(EARLY)
    done = subprocess.run([sys.executable, "-m", "minipd", "launch", "-n", "2", str(tmp_path / "script.py")], cwd=ROOT,
                          capture_output=True, text=True, timeout=60, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 5 and "rank 1 of 2 called sys.exit(5)" in done.stderr
    assert "rank 1 has ended with exit status 5 before all ranks had met" in done.stderr
    assert "rank 0 waits for all ranks, at script.py:6" in done.stderr, done.stderr
