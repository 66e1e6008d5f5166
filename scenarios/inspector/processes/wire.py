"""Messages between the processes of the page, over a socket that only this user can open.

A message is a header, a small JSON object, and a body of bytes, which may be empty::

    4 bytes  length of the header, big endian
    4 bytes  length of the body
    header, body
"""

from __future__ import annotations

import json
import select
import socket
import struct
from typing import Any, NamedTuple

#: The two lengths before a message.
LENGTHS = struct.Struct(">II")


class Message(NamedTuple):
    """A message."""

    header: dict[str, Any]
    body: bytes = b""


def packed_message(header: dict[str, Any], body: bytes = b"") -> bytes:
    """Return a message as bytes."""
    words = json.dumps(header).encode()
    return LENGTHS.pack(len(words), len(body)) + words + body


class Wire:
    """One end of a connection that waits for what it reads, for processes with one thread.

    It connects to the socket at ``path``, and ``hello``, the first header, says who connects.
    """

    def __init__(self, path: str, hello: dict[str, Any]) -> None:
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        self.send(hello)

    def again(self, hello: dict[str, Any]) -> Wire:
        """Return a new connection to the same place and close this one, as a fork does."""
        self.close()
        return Wire(self._path, hello)

    def send(self, header: dict[str, Any], body: bytes = b"") -> None:
        """Send a message."""
        self._socket.sendall(packed_message(header, body))

    def receive(self) -> Message | None:
        """Return the next message; None when the other end has closed."""
        try:
            lengths = self._read(LENGTHS.size)
            head, body = LENGTHS.unpack(lengths)
            return Message(json.loads(self._read(head)), self._read(body))
        except (EOFError, OSError):
            return None

    def pending(self) -> bool:
        """Return whether a message, or the end of the connection, is there to be received."""
        return bool(select.select([self._socket], [], [], 0)[0])

    def close(self) -> None:
        """Close this end."""
        self._socket.close()

    def _read(self, length: int) -> bytes:
        found = bytearray()
        while len(found) < length:
            piece = self._socket.recv(min(length - len(found), 1 << 20))
            if not piece:
                raise EOFError
            found += piece
        return bytes(found)
