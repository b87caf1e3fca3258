"""The names of the collectives, of groups and of starting ranks, and their parameters: Paddle 3.3.1's."""

import importlib
import inspect

import pytest

import minipd
import minipd.distributed as dist

SYNC = "group=None, sync_op=True"
STREAM = f"{SYNC}, use_calc_stream=False"
SIGNATURES = {
    "all_gather": f"tensor_list, tensor, {SYNC}", "all_gather_object": "object_list, obj, group=None",
    "all_reduce": f"tensor, op=0, {SYNC}", "alltoall": f"out_tensor_list, in_tensor_list, {SYNC}",
    "alltoall_single": f"out_tensor, in_tensor, in_split_sizes=None, out_split_sizes=None, {SYNC}",
    "barrier": "group=None", "batch_isend_irecv": "p2p_op_list", "broadcast": f"tensor, src, {SYNC}",
    "broadcast_object_list": "object_list, src, group=None", "create_nccl_config": "nccl_config=None",
    "destroy_process_group": "group=None", "gather": f"tensor, gather_list=None, dst=0, {SYNC}",
    "get_backend": "group=None", "get_group": "id=0", "get_rank": "group=None", "get_world_size": "group=None",
    "gloo_barrier": "", "gloo_init_parallel_env": "rank_id, rank_num, server_endpoint", "gloo_release": "",
    "init_parallel_env": "nccl_config=None", "irecv": "tensor, src=None, group=None", "is_available": "",
    "is_initialized": "", "isend": "tensor, dst, group=None", "launch": "",
    "new_group": "ranks=None, backend=None, timeout=datetime.timedelta(seconds=1800), nccl_comm_init_option=0, "
                 "nccl_config=None",
    "recv": f"tensor, src=0, {SYNC}", "recv_object_list": "object_list, src=None, group=None, src_in_group=None",
    "reduce": f"tensor, dst, op=0, {SYNC}", "reduce_scatter": f"tensor, tensor_list, op=0, {SYNC}",
    "restart_process_group": "group=None", "scatter": f"tensor, tensor_list=None, src=0, {SYNC}",
    "scatter_object_list": "out_object_list, in_object_list=None, src=0, group=None", "send": f"tensor, dst=0, {SYNC}",
    "send_object_list": "object_list, dst=None, group=None, dst_in_group=None",
    "shutdown_process_group": "group=None",
    "spawn": "func, args=(), nprocs=-1, join=True, daemon=False, **options",
    "wait": "tensor, group=None, use_calc_stream=True", "P2POp": "op, tensor, peer, group=None", "ParallelEnv": "",
    "ParallelMode": "",
    "stream.all_gather": f"tensor_or_tensor_list, tensor, {STREAM}", "stream.all_reduce": f"tensor, op=0, {STREAM}",
    "stream.alltoall": f"out_tensor_or_tensor_list, in_tensor_or_tensor_list, {STREAM}",
    "stream.alltoall_single": f"out_tensor, in_tensor, out_split_sizes=None, in_split_sizes=None, {STREAM}",
    "stream.broadcast": f"tensor, src, {STREAM}", "stream.reduce": f"tensor, dst=0, op=0, {STREAM}",
    "stream.reduce_scatter": f"tensor, tensor_or_tensor_list, op=0, {STREAM}",
    "stream.recv": f"tensor, src=0, {STREAM}", "stream.scatter": f"tensor, tensor_or_tensor_list=None, src=0, {STREAM}",
    "stream.send": f"tensor, dst=0, {STREAM}", "stream.gather": f"tensor, gather_list=None, dst=0, {STREAM}",
}


def parameters(function):
    marks = {inspect.Parameter.VAR_KEYWORD: "**"}
    return ", ".join(marks.get(p.kind, "") + p.name + ("" if p.default is p.empty else f"={p.default!r}")
                     for p in inspect.signature(function).parameters.values())


@pytest.mark.parametrize("name", SIGNATURES)
def test_signature(name):
    found = dist
    for part in name.split("."):
        found = getattr(found, part)
    assert parameters(found) == SIGNATURES[name]


def test_modules():
    for name in ("communication", "communication.stream", "communication.group", "collective", "parallel"):
        module = importlib.import_module(f"minipd.distributed.{name}")
        assert {n for n in module.__all__ if not hasattr(module, n)} == set()
    assert dist.communication.stream is dist.stream and minipd.distributed is dist


def test_numbers():
    op = dist.ReduceOp
    assert [op.SUM, op.MAX, op.MIN, op.PROD, op.AVG] == [*range(5)]
    mode = dist.ParallelMode
    assert [mode.DATA_PARALLEL, mode.TENSOR_PARALLEL, mode.PIPELINE_PARALLEL, mode.SHARDING_PARALLEL,
            mode.SEGMENT_PARALLEL] == [*range(5)]


def test_settings_of_nccl():
    assert dist.create_nccl_config() is None
    assert dist.create_nccl_config({"nchannels": 4}) == {"nchannels": 4}
    with pytest.raises(ValueError, match="create_nccl_config: expected commName, .*; got colour"):
        dist.create_nccl_config({"colour": 4})
