"""Distributed tensors: making them, what they say of themselves, and every change of placements."""

import itertools
import sys

import numpy as np
import paddle
import paddle.distributed as dist

n = dist.get_world_size()
rank = dist.get_rank()
mesh = dist.ProcessMesh(list(range(n)), dim_names=["x"])
whole = np.arange(6 * 12, dtype="float32").reshape(6, 12)

# ---- the mesh
assert mesh.shape == [n] and mesh.ndim == 1 and mesh.process_ids == list(range(n)) and mesh.dim_names == ["x"]
assert mesh.get_dim_size("x") == n and mesh == dist.ProcessMesh(np.arange(n), dim_names=["x"])
print(mesh)

# ---- placements
shard, replicate, partial = dist.Shard(0), dist.Replicate(), dist.Partial()
assert shard.is_shard() and shard.is_shard(0) and not shard.is_shard(1) and shard.get_dim() == 0
assert replicate.is_replicated() and partial.is_partial() and dist.Partial(dist.ReduceType.kRedMax).is_partial()
assert shard == dist.Shard(0) and shard != dist.Shard(1) and replicate == dist.Replicate()
print(shard, replicate, partial)

# ---- made of an array, of a list, of a tensor, by a function; with a gradient or without
dense = paddle.to_tensor(whole)
assert not dense.is_dist()
t = dist.shard_tensor(dense, mesh, [dist.Shard(0)])
rows = -(-6 // n)
assert t.is_dist() and t.shape == [6, 12] and t.placements == [dist.Shard(0)] and t.process_mesh == mesh
assert t.ndim == 2 and t.size == 72 and t.numel() == 72 and t.dtype == paddle.float32 and t.stop_gradient
mine = whole[rank * rows:(rank + 1) * rows]
assert list(t._local_value().shape) == list(t._local_shape) == list(mine.shape)
np.testing.assert_array_equal(t._local_value().numpy(), mine)
np.testing.assert_array_equal(t.numpy(), whole)
print(t)
assert dist.shard_tensor([[1, 2], [3, 4]], mesh, [dist.Shard(1)]).shape == [2, 2]
assert dist.shard_tensor(np.ones([4]), mesh, [dist.Replicate()], dtype="float32").dtype == paddle.float32
ones = dist.dtensor_from_fn(paddle.ones, mesh, [dist.Shard(0)], [6, 12])
np.testing.assert_array_equal(ones.numpy(), np.ones([6, 12]))
back = dist.unshard_dtensor(t)
assert not back.is_dist()
np.testing.assert_array_equal(back.numpy(), whole)

# ---- from what each rank has, and to it
from_local = dist.auto_parallel.api.dtensor_from_local(paddle.full([2, 3], float(rank)), mesh, [dist.Shard(0)])
assert from_local.shape == [2 * n, 3] and from_local.placements == [dist.Shard(0)]
added = dist.auto_parallel.api.dtensor_from_local(paddle.full([2, 3], rank + 1.0), mesh, [dist.Partial()])
assert added.shape == [2, 3] and added.placements == [dist.Partial()]
np.testing.assert_array_equal(dist.reshard(added, mesh, [dist.Replicate()]).numpy(), np.full([2, 3], n * (n + 1) / 2))
local = dist.auto_parallel.api.dtensor_to_local(from_local, mesh, [dist.Shard(0)])
np.testing.assert_array_equal(local.numpy(), np.full([2, 3], rank))

# ---- every pair of placements, on an axis and on two: the value stays
here = [dist.Replicate(), dist.Shard(0), dist.Shard(1), dist.Partial()]
if "some" in sys.argv:                                  # what Paddle itself can do on a CPU
    refused = {("s", "s"), ("p", "s")}
else:
    refused = set()


def kind(p):
    return "s" if p.is_shard() else "p" if p.is_partial() else "r"


for before, after in itertools.product(here, here):
    if before != after and (kind(before), kind(after)) in refused:
        continue
    x = dist.shard_tensor(dense, mesh, [before])
    y = dist.reshard(x, mesh, [after])
    assert y.placements == [after] and y.shape == [6, 12], (before, after, y.placements)
    np.testing.assert_array_equal(y.numpy(), whole)
if n == 4 and not refused:
    grid = dist.ProcessMesh([[0, 1], [2, 3]], dim_names=["x", "y"])
    assert grid.get_mesh_with_dim("y").dim_names == ["y", "x"] and grid.get_dim_size("y") == 2
    assert grid.get_rank_by_dim_and_process_id("x", 2) == 1
    for before in itertools.product(here, here):
        x = dist.shard_tensor(dense, grid, list(before))
        for after in itertools.product(here, here):
            y = dist.reshard(x, grid, list(after))
            assert y.placements == list(after)
            np.testing.assert_array_equal(y.numpy(), whole)

if n == 6:                                              # ranks in any order
    grid = dist.ProcessMesh([[2, 4, 5], [0, 1, 3]], dim_names=["x", "y"])
    t = dist.shard_tensor(paddle.to_tensor([[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]]), grid,
                          [dist.Shard(0), dist.Shard(1)])
    row, column = np.argwhere(np.array([[2, 4, 5], [0, 1, 3]]) == rank)[0]
    np.testing.assert_array_equal(t._local_value().numpy(),
                                  [[6 * row + column + 1], [6 * row + column + 4]])

# ---- operators keep placements, a sum over what is split is partial, gradients come as their tensors are placed
x = dist.shard_tensor(dense, mesh, [dist.Shard(0)])
x.stop_gradient = False
w = dist.shard_tensor(paddle.ones([12, 5]), mesh, [dist.Replicate()])
w.stop_gradient = False
y = paddle.nn.functional.relu(paddle.matmul(x, w))
assert y.placements == [dist.Shard(0)]
total = y.sum()
assert total.placements == [dist.Partial()]
total.backward()
assert x.grad.placements == [dist.Shard(0)]
np.testing.assert_array_equal(x.grad.numpy(), np.full([6, 12], 5.0))
np.testing.assert_allclose(w.grad.numpy(), np.repeat(whole.sum(0)[:, None], 5, 1))
x.clear_grad()

a = dist.shard_tensor(paddle.to_tensor([[1, 2], [3, 4]]), mesh, [dist.Replicate()])
b = dist.shard_tensor(paddle.to_tensor([[5, 6], [7, 8]]), mesh, [dist.Shard(0)])
c = paddle.matmul(a, b)
assert c.placements == [dist.Partial()]
if not refused:                                         # its CPU has no relu of whole numbers
    d = paddle.nn.functional.relu(c)
    assert d.placements == [dist.Replicate()] and d.tolist() == [[19, 22], [43, 50]]

# ---- to other meshes: a part, and another part; every rank calls it
if n >= 2 and not refused:
    left, right = mesh[0:n // 2], dist.ProcessMesh(list(range(n // 2, n)), dim_names=["x"])
    a = dist.shard_tensor(dense, left, [dist.Shard(0)])
    b = dist.reshard(a, right, [dist.Shard(1)])
    c = dist.reshard(b, mesh, [dist.Replicate()])
    assert b.process_mesh == right and c.process_mesh == mesh
    np.testing.assert_array_equal(c.numpy(), whole)
    if rank in right.process_ids:
        np.testing.assert_array_equal(b.numpy(), whole)
print(f"rank {rank}: done")
