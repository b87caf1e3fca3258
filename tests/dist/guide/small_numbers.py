"""Small numbers on which sharded tensors have gone wrong elsewhere (tests/dist/test_hard_cases.py), on real ranks."""

import numpy as np
import paddle
import paddle.distributed as dist
from paddle.nn import functional as F

n, rank = dist.get_world_size(), dist.get_rank()
mesh = dist.ProcessMesh(list(range(n)), dim_names=["x"])
R, S0, S1, P = dist.Replicate(), dist.Shard(0), dist.Shard(1), dist.Partial()


def spread(values, placement, **more):
    return dist.shard_tensor(np.array(values, "float64"), mesh, [placement], **more)


# a mean of uneven shards, and of one row; a sum and a number
assert spread(np.arange(12.0).reshape(3, 4), S0).mean().item() == 5.5
assert spread([[0.0, 1, 2, 3]], S0).mean().item() == 1.5
total = spread(np.arange(10.0), S0).sum()
assert total.placements == [P]
assert [(total + 10).item(), (total - 10).item(), (10 - total).item()] == [55.0, 35.0, -35.0]

# what is not linear sees the sum; products of parts
if n == 2:
    p = spread([[1, 3], [2, 1]], S0).sum(axis=0)
    m = spread([[-3, 2], [2, -1]], S0).sum(axis=0)
    assert (paddle.linalg.norm(p).item(), p.max().item(), F.relu(m).tolist()) == (5.0, 4.0, [0.0, 1.0])
    a, b = spread([1, 2], S0).sum(), spread([3, 4], S0).sum()
    assert ((a * b).item(), (a / 4.0).item(), (4.0 / a).item()) == (21.0, 0.75, 4 / 3)

# a reshape through a shard, a round trip of uneven ones
x = np.arange(96.0).reshape(12, 8)
np.testing.assert_array_equal(spread(x, S1).reshape([16, 6]).numpy(), x.reshape(16, 6))
y = np.arange(50.0).reshape(5, 10)
back = dist.reshard(spread(y, S0), mesh, [R])
np.testing.assert_array_equal(back._local_value().numpy(), y)

# gradients of a replicated weight, of a reshard, of both losses over a split vocabulary
w = spread(1.0, R, stop_gradient=False)
((w * w + 1) * spread([0.0, 1.0], S0)).sum().backward()
assert dist.reshard(w.grad, mesh, [R]).item() == 2.0
logits = spread([[0, 1, 2, 3]], S1, stop_gradient=False)
loss = F.cross_entropy(logits, paddle.to_tensor([2]))
loss.backward()
np.testing.assert_allclose(loss.item(), 1.4401896985611953, rtol=1e-12)
softmax = np.exp([0.0, 1, 2, 3]) / np.exp([0.0, 1, 2, 3]).sum()
np.testing.assert_allclose(logits.grad.numpy()[0], softmax - [0, 0, 1, 0], rtol=1e-12)
table = spread(np.arange(30.0).reshape(10, 3) + 1, S0, stop_gradient=False)
F.embedding(paddle.to_tensor([[0, 9, 3, 3]]), table).sum().backward()
assert table.grad.numpy()[:, 0].tolist() == [1, 0, 0, 2, 0, 0, 0, 0, 0, 1]
print(f"rank {rank}: done")
