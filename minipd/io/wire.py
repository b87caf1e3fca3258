"""Objects from one process to another, over a socket: pickles whose arrays travel beside them, uncopied.

Arrays arrive in memory of their own, which may be written.  (Shared memory was measured, and is no faster: its pages
are fresh for both processes.)  Only a process and its own child talk like this; files go another way (`unpickling`).
"""

from __future__ import annotations

import pickle
import struct
from multiprocessing.connection import Connection
from typing import Any

__all__: list[str] = []


def send(connection: Connection, obj: Any) -> None:
    """Send an object.  One that cannot be pickled raises before anything is sent.

    Functions and classes that no module has (of a notebook, of `__main__`) are sent by value.
    """
    buffers: list[pickle.PickleBuffer] = []
    try:
        data = pickle.dumps(obj, 5, buffer_callback=buffers.append)
        by_value = b"__main__" in data          # which means something else over there
    except (pickle.PicklingError, AttributeError, TypeError):
        by_value = True
    if by_value:
        import cloudpickle
        buffers.clear()
        data = cloudpickle.dumps(obj, 5, buffer_callback=buffers.append)
    raw = [b.raw() for b in buffers]
    connection.send_bytes(struct.pack(f"<{len(raw)}Q", *(b.nbytes for b in raw)))
    connection.send_bytes(data)
    for b in raw:
        if b.nbytes:
            connection.send_bytes(b)


def receive(connection: Connection) -> Any:
    """The next object.   EOFError if there is nobody on the other side any more."""
    head = connection.recv_bytes()
    sizes = struct.unpack(f"<{len(head) // 8}Q", head)
    data = connection.recv_bytes()
    buffers = [bytearray(n) for n in sizes]
    for b in buffers:
        if b:
            connection.recv_bytes_into(b)
    return pickle.loads(data, buffers=buffers)
