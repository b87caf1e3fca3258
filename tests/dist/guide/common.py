"""What the scripts of this folder share: data, a loss, training, and the numbers of one rank to compare with.

The scripts are written for Paddle: they say `import paddle`, and nothing of this library.
"""

import sys

import numpy as np
import paddle
import paddle.distributed as dist
from paddle.io import BatchSampler, DataLoader, Dataset

SEQ, HIDDEN, INNER, BATCH, SAMPLES = 4, 8, 12, 4, 12
STATIC = "static" in sys.argv[1:]
SOME = "some" in sys.argv[1:]           # only what Paddle itself can do on a CPU


class RandomDataset(Dataset):
    """Sequences of vectors, and a number for each."""

    def __init__(self, seq_len=SEQ, hidden=HIDDEN, num_samples=SAMPLES):
        super().__init__()
        rng = np.random.default_rng(7)
        self.num_samples = num_samples
        self.inputs = [rng.uniform(size=[seq_len, hidden]).astype("float32") for _ in range(num_samples)]
        self.labels = [np.array(index, dtype="float32") for index in range(num_samples)]

    def __getitem__(self, index):
        return self.inputs[index], self.labels[index]

    def __len__(self):
        return self.num_samples


def create_dataloader():
    dataset = RandomDataset()
    sampler = BatchSampler(dataset, batch_size=BATCH)
    return DataLoader(dataset, batch_sampler=sampler)


def loss_fn(logits, label):
    # logits: [batch, seq, hidden], label: [batch]
    loss = paddle.nn.MSELoss(reduction="sum")
    return loss(paddle.sum(logits, axis=[1, 2]), label)


class Mlp(paddle.nn.Layer):
    """The two-weight MLP on one rank."""

    def __init__(self):
        super().__init__()
        self.w0 = self.create_parameter(shape=[HIDDEN, INNER])
        self.w1 = self.create_parameter(shape=[INNER, HIDDEN])

    def forward(self, x):
        return paddle.matmul(paddle.matmul(x, self.w0), self.w1)


def adamw(model):
    return paddle.optimizer.AdamW(learning_rate=0.01, parameters=model.parameters())


def train(model, opt, dataloader, epochs=2):
    """The losses of all steps, eagerly."""
    losses = []
    for _ in range(epochs):
        for inputs in dataloader():
            data, label = inputs[0], inputs[1]
            loss = loss_fn(model(data), label)
            loss.backward()
            opt.step()
            opt.clear_grad()
            losses.append(loss)
    return losses


def train_static(dist_model, dataloader, epochs=2):
    """The losses of all steps of a DistModel."""
    dist_model.train()
    losses = []
    for _ in range(epochs):
        for inputs in dataloader():
            data, label = inputs[0], inputs[1]
            losses.append(dist_model(data, label))
    return losses


def alone(make=Mlp, seed=2026):
    """The model, and its losses, trained on one rank."""
    paddle.seed(seed)
    model = make()
    return model, [float(loss) for loss in train(model, adamw(model), create_dataloader())]


def trained(model, mesh, shard_dims, last=None, seed=2026):
    """The losses, of a model on meshes, eager or static, on the ranks that have them (those of the mesh `last`)."""
    dataloader = dist.shard_dataloader(create_dataloader(), meshes=mesh, shard_dims=shard_dims)
    opt = dist.shard_optimizer(adamw(model))
    if STATIC:
        losses = train_static(dist.to_static(model, dataloader, loss_fn, opt), dataloader)
    else:
        losses = train(model, opt, dataloader)
    if last is not None and dist.get_rank() not in last.process_ids:
        return []
    losses = [float(loss) for loss in losses]
    print(f"rank {dist.get_rank()}: losses {losses}", flush=True)
    return losses


def same(name, got, expected, rtol=2e-5):
    """Say that two things are the same number for number, or fail."""
    np.testing.assert_allclose(np.array(got), np.array(expected), rtol=rtol, atol=1e-6, err_msg=name)
    print(f"rank {dist.get_rank()}: {name} as on one rank", flush=True)


def same_weights(model, single):
    """Of the weights that this rank has a part of: whole, they are those of one rank.  (Paddle's compiled mode empties
    the layer.)"""
    if STATIC and SOME:
        return
    for (name, p), q in zip(model.named_parameters(), single.parameters(), strict=True):
        if not p.is_dist() or dist.get_rank() in p.process_mesh.process_ids:
            same(name, p.numpy(), q.numpy())
