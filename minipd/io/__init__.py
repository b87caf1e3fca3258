"""Datasets, samplers and the DataLoader (Paddle's `paddle.io`); saving and loading."""

from minipd.io.dataloader import DataLoader, default_collate_fn
from minipd.io.dataset import Dataset, IterableDataset, Subset, TensorDataset, random_split
from minipd.io.sampler import BatchSampler, DistributedBatchSampler, RandomSampler, Sampler, SequenceSampler

__all__ = ["BatchSampler", "DataLoader", "Dataset", "DistributedBatchSampler", "IterableDataset", "RandomSampler",
           "Sampler", "SequenceSampler", "Subset", "TensorDataset", "default_collate_fn", "random_split"]
