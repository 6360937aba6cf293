"""Messages between a task and the process of a shard: who may send them, and what they are.

Both sides check that the other belongs to the same user, as the operating system knows it, and that it knows the
secret in the folder of sockets: each answers a random challenge. Only then is a message read.

    message   size of the head, number of parts, sizes of the parts, head, parts
    head      JSON: which request or answer it is, and what belongs to it that is small
    parts     bytes, such as rows as Arrow IPC; neither looked at nor copied more often than needed

Nothing on a socket is ever unpickled (decision 28).
"""

import hmac
import json
import os
import secrets
import socket
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cedr.storage.plain import MalformedError
from cedr.temporal.errors import CedrError

CHALLENGE = 32
PATIENCE = 30.0
"""Seconds a connection may take to show that it knows the secret; a shard answers one at a time."""
MOST_HEAD, MOST_PARTS, MOST_PART = 1 << 28, 1 << 20, (1 << 31) - 1
"""No part is larger than Spark's largest value."""
PIECES = 512
"""The operating system takes up to 1024 pieces at once."""

_counts, _peer = struct.Struct("<II"), struct.Struct("3i")


class RefusedError(ConnectionError):
    """The other side is not who it should be."""


class Wire:
    """One connection after both sides know each other. `first` goes ahead of the first message."""

    def __init__(self, connection: socket.socket, first: bytes = b"") -> None:
        self.connection, self.first = connection, first

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def send(self, head: list[Any], parts: Sequence[bytes] = ()) -> None:
        content = json.dumps(head, separators=(",", ":")).encode()
        sizes = list(map(len, parts))
        if max(sizes, default=0) > MOST_PART or len(parts) > MOST_PARTS or len(content) > MOST_HEAD:
            raise CedrError(
                f"a message of a task or shard has {len(parts)} parts of up to {max(sizes, default=0):,} bytes, "
                f"and Spark takes {MOST_PART:,} at the most: use more shards, or read fewer files per micro-batch"
            )
        begin = _counts.pack(len(content), len(parts)) + struct.pack(f"<{len(parts)}I", *sizes) + content
        first, self.first = self.first, b""
        send_all(self.connection, [first, begin, *parts])

    def receive(self) -> tuple[Any, list[bytes]]:
        size, count = _counts.unpack(receive_exactly(self.connection, _counts.size))
        if size > MOST_HEAD or count > MOST_PARTS:
            raise MalformedError(f"a message says that it has {size} bytes before its {count} parts")
        content = receive_exactly(self.connection, 4 * count + size)
        sizes = struct.unpack_from(f"<{count}I", content)
        if max(sizes, default=0) > MOST_PART:
            raise MalformedError(f"a message says that it has a part of {max(sizes)} bytes")
        try:
            head = json.loads(content[4 * count :])
        except (ValueError, RecursionError) as e:
            raise MalformedError(f"a message that cannot be read: {e}") from None
        return head, [receive_exactly(self.connection, part) for part in sizes]


def listen(address: Path) -> socket.socket:
    """The folder of the address keeps others out; the socket itself does, too, from its first moment."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o077)
    try:
        listener.bind(str(address))
    finally:
        os.umask(before)
    listener.listen(64)
    return listener


def accept(listener: socket.socket, secret: bytes) -> Wire:
    """The next connection, from a task that knows the secret; `RefusedError` if it does not."""
    connection, _ = listener.accept()
    try:
        check_user(connection)
        connection.settimeout(PATIENCE)
        asked, own = receive_exactly(connection, CHALLENGE), secrets.token_bytes(CHALLENGE)
        connection.sendall(own + proof(secret, b"shard", asked, own))
        check_proof(receive_exactly(connection, CHALLENGE), proof(secret, b"task", asked, own))
        connection.settimeout(None)
    except BaseException:
        connection.close()
        raise
    return Wire(connection)


def connect(address: Path, secret: bytes) -> Wire | None:
    """A connection to the process that listens there and knows the secret; None when nobody listens."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(address))
        check_user(connection)
        own = secrets.token_bytes(CHALLENGE)
        connection.sendall(own)
        answer = receive_exactly(connection, 2 * CHALLENGE)
        asked = answer[:CHALLENGE]
        check_proof(answer[CHALLENGE:], proof(secret, b"shard", own, asked))
    except (FileNotFoundError, ConnectionError, EOFError):
        connection.close()
        return None
    except BaseException:
        connection.close()
        raise
    return Wire(connection, proof(secret, b"task", own, asked))


def check_user(connection: socket.socket) -> None:
    """The operating system notes who has opened each end."""
    _, user, _ = _peer.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _peer.size))
    if user != os.geteuid():
        raise RefusedError(f"the other end belongs to user {user}")


def proof(secret: bytes, role: bytes, tasks: bytes, shards: bytes) -> bytes:
    """That one knows the secret. The role keeps an answer from being sent back to whom it came from."""
    return hmac.digest(secret, role + tasks + shards, "sha256")


def check_proof(given: bytes, right: bytes) -> None:
    if not hmac.compare_digest(given, right):
        raise RefusedError("the other end does not know the secret")


def send_all(connection: socket.socket, pieces: Sequence[bytes]) -> None:
    left = [memoryview(piece) for piece in pieces if piece]
    while left:
        sent = connection.sendmsg(left[:PIECES])
        done = 0
        while done < len(left) and sent >= len(left[done]):
            sent -= len(left[done])
            done += 1
        left = left[done:]
        if sent:
            left[0] = left[0][sent:]


def receive_exactly(connection: socket.socket, size: int) -> bytes:
    """Memory is taken as bytes arrive, whatever size was announced."""
    received = bytearray()
    while len(received) < size:
        piece = connection.recv(min(size - len(received), 1 << 20))
        if not piece:
            raise EOFError("the other end has closed the connection")
        if len(piece) == size:
            return piece
        received += piece
    return bytes(received)
