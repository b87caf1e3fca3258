"""`paddle.distributed.flex_checkpoint.dcp.metadata`."""

from minipd.dist.checkpoint.metadata import LocalTensorIndex, LocalTensorMetadata, Metadata

__all__ = ["LocalTensorIndex", "LocalTensorMetadata", "Metadata"]
