"""What distributed tensors look like, alone and among others; the mesh that is meant."""

from __future__ import annotations

import numpy as np
import pytest

import minipd as paddle
import minipd.distributed as dist
from minipd import nn
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.framework.rank import current
from tests.dist.ranks import on_mesh
from tests.dist.refused import refused

R, P, S0, S1 = Replicate(), Partial(), Shard(0), Shard(1)


def test_a_distributed_tensor_prints():
    def run(mesh):
        x = dist.shard_tensor(np.array([[1.0, 2.5], [3.0, 4.0]], "float32"), mesh, [S0], stop_gradient=False)
        p = paddle.create_parameter([1], "float32", default_initializer=nn.initializer.Constant(2.0))
        return str(x), str(dist.shard_tensor(p, mesh, [R])), str(dist.shard_tensor([1.0], mesh[1:2], [R]))
    said = [("Tensor(shape=[2, 2], dtype=float32, place=Place(cpu), stop_gradient=False, process_mesh={shape: [2], "
             "process_ids: [0,1], dim_names: [x]}, placements=[Shard(dim=0)], GlobalDenseTensor=\n"
             "       [[1.        , 2.50000000],\n        [3.        , 4.        ]])"),
            ("Parameter containing:\nTensor(shape=[1], dtype=float32, place=Place(cpu), stop_gradient=False, "
             "process_mesh={shape: [2], process_ids: [0,1], dim_names: [x]}, placements=[Replicate()], "
             "GlobalDenseTensor=\n       [2.])")]
    head = ("Tensor(shape=[1], dtype=float32, place=Place(cpu), stop_gradient=True, process_mesh={shape: [1], "
            "process_ids: [1], dim_names: [x]}, placements=[Replicate()], GlobalDenseTensor")
    assert on_mesh("x=2", run) == [(*said, f"{head} Not initialized)"), (*said, f"{head}=\n       [1.])")]


def test_a_process_alone():
    """It is rank 0 of any mesh, until it needs another one."""
    mesh = ProcessMesh([[0, 1], [2, 3]], dim_names=["dp", "tp"])
    x = dist.shard_tensor(np.arange(8.0).reshape(4, 2), mesh, [S0, R])
    assert (x.shape, x._local_shape, (x * 2.0)._local_value().tolist()) == ([4, 2], [2, 2], [[0.0, 2.0], [4.0, 6.0]])
    assert "GlobalDenseTensor needs the ranks [0, 1, 2, 3], this process is alone" in str(x)
    for needs in (lambda: x.numpy(), lambda: x.sum().item(), lambda: dist.reshard(x, mesh, [R, R]),
                  lambda: dist.reshard(x, ProcessMesh([4, 5]), [R])):
        with pytest.raises(RuntimeError, match="minipd launch -n"):
            needs()
    y = dist.dtensor_from_local(paddle.ones([2]), mesh, [R, S0])
    assert y.shape == [4] and dist.reshard(y, mesh, [R, S0]).shape == [4]
    assert str(dist.shard_tensor([1.0], ProcessMesh([1, 2]), [R])).endswith("GlobalDenseTensor Not initialized)")


def test_the_mesh_that_is_meant_is_each_ranks_own():
    def run(mesh):
        before = dist.get_mesh()
        dist.set_mesh(mesh[current().rank:current().rank + 1])
        current().comm.barrier()
        return before, dist.get_mesh().process_ids, dist.auto_parallel.create_mesh([("dp", 2)]).shape
    assert on_mesh("x=2", run) == [(None, [0], [2]), (None, [1], [2])]
    assert "TypeError: set_mesh: expected a ProcessMesh" in refused(lambda m: dist.set_mesh([0, 1]))


def test_dist_attr():
    mesh = ProcessMesh([[2, 4, 5], [0, 1, 3]], dim_names=["x", "y"])
    attr = dist.DistAttr(mesh, ["y", None])
    assert (attr.process_mesh, attr.sharding_specs, attr.dims_mapping, attr.placements) == (
        mesh, ["y", None], [1, -1], [R, S0])
    assert attr == dist.DistAttr(mesh, ["y", None]) != dist.DistAttr(mesh, [None, "y"])
    for specs, text in [(["z"], "expected names of axes of the mesh, ['x', 'y'], got 'z'"), ("x", "to be a list"),
                        (["x", "x"], "each axis to split one dimension")]:
        with pytest.raises(ValueError) as error:
            dist.DistAttr(mesh, specs)
        assert text in str(error.value)


def test_an_operator_with_placements():
    def run(mesh):
        add = dist.auto_parallel.shard_op(lambda x, y, k: (x + y) * k, mesh, [["x", None], [None, None]], [[None, "x"]],
                                          k=2.0)
        out = add(dist.shard_tensor(np.ones((4, 2)), mesh, [R]), paddle.ones([4, 2], "float64"))
        return out.placements, out.numpy().tolist()
    assert on_mesh("x=2", run) == [([Shard(1)], [[4.0, 4.0]] * 4)] * 2
    for specs, text in [([["x"]], "expected a tensor of 1 dimensions, as many as ['x'], got [4, 2]"),
                        ([["x", None]] * 2, "expected 2 tensors among its arguments, one for each spec, got 1")]:
        assert text in refused(lambda m, s=specs: dist.auto_parallel.shard_op(abs, m, s)(paddle.ones([4, 2])))
    assert "shard_op: expected a mesh, got none" in refused(lambda m: dist.auto_parallel.shard_op(abs))


def test_split_makes_a_layer_of_a_program():
    paddle.enable_static()
    try:
        main, startup = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, startup):
            x, ids = paddle.static.data("x", [4, 8], "float32"), paddle.static.data("ids", [4], "int64")
            y = dist.split(x, [8, 6], "linear", axis=1, num_partitions=2, name="l")
            z = y + dist.split(x, [8, 6], "linear", bias_attr=False, num_partitions=2) + dist.split(
                ids, [11, 6], "embedding", num_partitions=2)
        executor = paddle.static.Executor()
        executor.run(startup)
        feed = {"x": np.ones((4, 8), "float32"), "ids": np.arange(4)}
        got, = executor.run(main, feed=feed, fetch_list=[z])
        values = [np.array(paddle.static.global_scope().find_var(p.name).get_tensor()) for p in main.all_parameters()]
        by_shape = {v.shape: v for v in values}
        linears = [v for v in values if v.shape == (8, 6)]
        wanted = sum(np.ones((4, 8)) @ w for w in linears) + by_shape[6,] + by_shape[11, 6][:4]
        np.testing.assert_allclose(got, wanted, rtol=1e-5)
        assert "placements:[Shard(dim=1)]" in str(main)
    finally:
        paddle.disable_static()
    for args, text in [((None, [2, 2], "conv"), "expected operation 'linear' or 'embedding', got 'conv'"),
                       ((None, [2, 2], "embedding", 1), "for embeddings 0, got size=[2, 2] and axis=1"),
                       ((None, [2, 2], "linear"), "expected static mode, got a call in eager mode")]:
        assert text in refused(lambda m, a=args: dist.split(*a))


def test_what_is_left_to_the_caller():
    dist.enable_auto_dp()
    assert "NotImplementedError: enable_auto_dp: expected one rank, got 2" in refused(lambda m: dist.enable_auto_dp())
