"""The API on real ranks: one script, 2 processes, no init_parallel_env."""

from __future__ import annotations

import json

import pytest

from minipd.dist import launch

SCRIPT = """
import json, sys
import numpy as np
import minipd as paddle
import minipd.distributed as dist
from minipd import nn
from minipd.io import DataLoader, TensorDataset
from minipd.nn import functional as F

folder = sys.argv[1]
R, P, S0, S1 = dist.Replicate(), dist.Partial(), dist.Shard(0), dist.Shard(1)
mesh = dist.ProcessMesh([[0, 1]], dim_names=["dp", "mp"])
paddle.seed(1)
model = nn.Sequential(nn.Embedding(7, 6, padding_idx=2), nn.Linear(6, 5), nn.Linear(5, 7))
adamw = paddle.optimizer.AdamW(0.05, parameters=model.parameters())
model, adamw = dist.parallelize(model, adamw, mesh, {"dp_config": {"sharding_level": 0}, "mp_config": {
    "parallelize_plan": {"0": dist.RowWiseParallel(), "1": dist.ColWiseParallel(), "2": dist.RowWiseParallel()}}})
ids = np.random.default_rng(0).integers(0, 7, (5, 3))
loader = dist.shard_dataloader(DataLoader(TensorDataset([ids]), batch_size=2), mesh, shard_dims="dp")
losses = []
for x, in loader:
    loss = F.cross_entropy(model(x), x.unsqueeze(-1))
    loss.backward()
    adamw.step()
    adamw.clear_grad()
    losses.append(loss.item())
state = {"model": model.state_dict(), "opt": adamw.state_dict()}
dist.save_state_dict(state, folder, async_save=True)

line = dist.ProcessMesh([0, 1], dim_names=["x"])
whole = {"model": {k: dist.shard_tensor(paddle.zeros_like(dist.unshard_dtensor(p)), line, [S0])
                   for k, p in model.state_dict().items()}}
dist.load_state_dict(whole, folder)
same = all((whole["model"][k].numpy() == p.numpy()).all() for k, p in model.state_dict().items())

class Twice(dist.LocalLayer):
    def forward(self, x):
        return (x * (dist.get_rank() + 1.0)).sum()

x = dist.shard_tensor(np.arange(3.0), line, [R], stop_gradient=False)
total = Twice([(line, [P])], [(line, [P])])(x)
total.backward()
batches = dist.shard_dataloader(DataLoader(TensorDataset([np.arange(5)]), batch_size=4), line, shard_dims="x")
local = [b._local_value().tolist() for b, in batches]
wrong = ""
try:
    dist.save_state_dict({"w": paddle.ones([dist.get_rank() + 1])}, folder + "/other")
except ValueError as e:
    wrong = str(e)
said = {"losses": losses, "same": bool(same), "total": total.item(), "grad": x.grad.tolist(), "local": local,
        "wrong": wrong, "text": str(x)}
if dist.get_rank() == 0:
    with open(folder + "/said.json", "w") as file:
        json.dump(said, file)
"""

ALONE = """
import numpy as np
import minipd as paddle
from minipd import nn
from minipd.nn import functional as F


def losses():
    paddle.seed(1)
    model = nn.Sequential(nn.Embedding(7, 6, padding_idx=2), nn.Linear(6, 5), nn.Linear(5, 7))
    adamw = paddle.optimizer.AdamW(0.05, parameters=model.parameters())
    ids = np.random.default_rng(0).integers(0, 7, (5, 3))
    found = []
    for i in range(0, 5, 2):
        x = paddle.to_tensor(ids[i:i + 2])
        loss = F.cross_entropy(model(x), x.unsqueeze(-1))
        loss.backward()
        adamw.step()
        adamw.clear_grad()
        found.append(loss.item())
    return found
"""


@pytest.mark.mpi
def test_two_processes(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    assert launch.launch_mpi(2, [str(tmp_path / "script.py"), str(tmp_path)]) == 0
    said = json.loads((tmp_path / "said.json").read_text())
    names: dict = {}
    exec(ALONE, names)
    assert said["losses"] == pytest.approx(names["losses"](), rel=2e-5)
    assert said["same"] and said["total"] == 9.0 and said["grad"] == [3.0, 3.0, 3.0]
    assert said["local"] == [[0, 1], [4]]
    assert said["wrong"].startswith("save_state_dict: expected one w on all ranks, got float32 [1] on rank 0 and")
    assert "process_ids: [0,1], dim_names: [x]}, placements=[Replicate()], GlobalDenseTensor=" in said["text"]
