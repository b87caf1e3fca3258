"""What a checkpoint says of its files, in Paddle's format: `0.metadata`.

The file is a pickle of three dataclasses, under the names that they have in Paddle.  It is written and read here
without running anything: an instruction or two per value (`encoded`), and the machine of `io.unpickling`.
"""

from __future__ import annotations

import dataclasses
import io
import struct
from typing import Any

from minipd.io import unpickling

__all__ = ["LocalTensorIndex", "LocalTensorMetadata", "Metadata"]

MODULE = "paddle.distributed.flex_checkpoint.dcp.metadata"


@dataclasses.dataclass(frozen=True)
class LocalTensorMetadata:
    """A block of a tensor: where it is in the global one."""

    global_offset: tuple[int, ...]
    local_shape: tuple[int, ...]
    dtype: str
    global_shape: tuple[int, ...] | None = None
    is_flattened: bool = False
    flattened_range: tuple[int, int] | None = None


@dataclasses.dataclass(frozen=True)
class LocalTensorIndex:
    """A block of a tensor, as what is looked for in files.   replica_id: which of several copies."""

    tensor_key: str
    global_offset: tuple[int, ...]
    is_flattened: bool = False
    flattened_range: tuple[int, int] | None = None
    replica_id: int | None = None
    local_shape: tuple[int, ...] | None = None


@dataclasses.dataclass
class Metadata:
    """A checkpoint.

    state_dict_metadata: the blocks of each tensor.  storage_metadata: which file has which block.  flat_mapping: where
    in a nested dict each tensor was.
    """

    state_dict_metadata: dict[str, list[LocalTensorMetadata]]
    storage_metadata: dict[LocalTensorIndex, str]
    flat_mapping: dict[str, tuple[str, ...]] | None = None


CLASSES = {f"{MODULE}.{c.__name__}": c for c in (LocalTensorMetadata, LocalTensorIndex, Metadata)}
#: where else Paddle has had them
CLASSES |= {name.replace("flex_checkpoint.dcp", "checkpoint"): c for name, c in list(CLASSES.items())}


def encoded(x: Any) -> bytes:
    """A pickle of the metadata that Paddle can read.

    >>> decoded(encoded(Metadata({}, {}, {"model.w": ("model", "w")})))
    Metadata(state_dict_metadata={}, storage_metadata={}, flat_mapping={'model.w': ('model', 'w')})
    """
    return b"\x80\x04" + _instructions(x) + b"."


def _instructions(x: Any) -> bytes:
    """What puts x on the stack of the machine that reads."""
    match x:
        case None:
            return b"N"
        case bool():
            return b"\x88" if x else b"\x89"
        case int():
            data = x.to_bytes(x.bit_length() // 8 + 1, "little", signed=True)
            return b"\x8a" + bytes([len(data)]) + data
        case str():
            data = x.encode()
            return b"X" + struct.pack("<I", len(data)) + data
        case tuple():
            return b"(" + b"".join(map(_instructions, x)) + b"t"
        case list():
            return b"](" + b"".join(map(_instructions, x)) + b"e"
        case dict():
            return b"}(" + b"".join(_instructions(k) + _instructions(v) for k, v in x.items()) + b"u"
    fields = {f.name: getattr(x, f.name) for f in dataclasses.fields(x)}
    return f"c{MODULE}\n{type(x).__name__}\n".encode() + b")\x81" + _instructions(fields) + b"b"


def decoded(data: bytes) -> Metadata:
    """The metadata in a file.

    Raises: Refused for what is no metadata, or asks for anything else.
    """
    def no_tensor(name: str, array: Any) -> Any:
        raise unpickling.Refused(f"a tensor, {name}, in the metadata")

    found = unpickling.load(io.BytesIO(data), no_tensor, CLASSES)
    if not isinstance(found, Metadata):
        raise unpickling.Refused(f"a {type(found).__name__} where the metadata should be")
    for key, blocks in _dict(found.state_dict_metadata).items():
        for block in blocks if isinstance(blocks, list) else [None]:
            if not isinstance(key, str) or not isinstance(block, LocalTensorMetadata) or not isinstance(
                    block.dtype, str) or not _sizes(block.global_offset) or not _sizes(block.local_shape) or not (
                    block.global_shape is None or _sizes(block.global_shape)):
                raise unpickling.Refused(f"{key!r}: {block!r} where a block of a tensor should be")
    for index, file in _dict(found.storage_metadata).items():
        if not isinstance(index, LocalTensorIndex) or not isinstance(file, str) or "/" in file or "\\" in file or (
                not _sizes(index.global_offset)):
            raise unpickling.Refused(f"{index!r}: {file!r} where a block and its file should be")
    return found


def _dict(x: Any) -> dict:
    if not isinstance(x, dict):
        raise unpickling.Refused(f"a {type(x).__name__} where a dict should be")
    return x


def _sizes(x: Any) -> bool:
    return isinstance(x, tuple) and all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in x)
