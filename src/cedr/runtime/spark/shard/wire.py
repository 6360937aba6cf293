"""Messages between a task and the process of a shard, and their authentication.

Both sides check that the other belongs to the same user, according to the operating system, and that it knows the
secret in the folder of sockets: each answers a random challenge. Only then is a message read.

    message   size of the head, number of parts, sizes of the parts, head, parts
    head      JSON: the kind of the request or answer, and its small fields
    parts     bytes, such as rows as Arrow IPC; not inspected, and copied as little as possible

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
"""Seconds a connection may take to authenticate; a shard serves one at a time."""
MAX_HEAD, MAX_PARTS, MAX_PART = 1 << 28, 1 << 20, (1 << 31) - 1
"""No part is larger than Spark's largest value."""
PIECES = 512
"""The operating system accepts up to 1024 pieces at once."""

_counts, _peer = struct.Struct("<II"), struct.Struct("3i")


class RefusedError(ConnectionError):
    """The other side did not authenticate."""


class Wire:
    """One authenticated connection. `first` is sent before the first message."""

    def __init__(self, connection: socket.socket, first: bytes = b"") -> None:
        self.connection, self.first = connection, first

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def send(self, head: list[Any], parts: Sequence[bytes] = ()) -> None:
        content = json.dumps(head, separators=(",", ":")).encode()
        sizes = list(map(len, parts))
        if max(sizes, default=0) > MAX_PART or len(parts) > MAX_PARTS or len(content) > MAX_HEAD:
            raise CedrError(
                f"a message of a task or shard has {len(parts)} parts of up to {max(sizes, default=0):,} bytes, "
                f"and the maximum is {MAX_PART:,}: use more shards, or read fewer files per micro-batch"
            )
        begin = _counts.pack(len(content), len(parts)) + struct.pack(f"<{len(parts)}I", *sizes) + content
        first, self.first = self.first, b""
        send_all(self.connection, [first, begin, *parts])

    def receive(self) -> tuple[Any, list[bytes]]:
        size, count = _counts.unpack(receive_exactly(self.connection, _counts.size))
        if size > MAX_HEAD or count > MAX_PARTS:
            raise MalformedError(f"a message announces {size} bytes before its {count} parts")
        content = receive_exactly(self.connection, 4 * count + size)
        sizes = struct.unpack_from(f"<{count}I", content)
        if max(sizes, default=0) > MAX_PART:
            raise MalformedError(f"a message announces a part of {max(sizes)} bytes")
        try:
            head = json.loads(content[4 * count :])
        except (ValueError, RecursionError) as e:
            raise MalformedError(f"a message that cannot be read: {e}") from None
        return head, [receive_exactly(self.connection, part) for part in sizes]


def listen(address: Path) -> socket.socket:
    """The folder of the address keeps others out; so does the socket itself, from its creation on."""
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
        theirs, own = receive_exactly(connection, CHALLENGE), secrets.token_bytes(CHALLENGE)
        connection.sendall(own + proof(secret, b"shard", theirs, own))
        check_proof(receive_exactly(connection, CHALLENGE), proof(secret, b"task", theirs, own))
        connection.settimeout(None)
    except BaseException:
        connection.close()
        raise
    return Wire(connection)


def connect(address: Path, secret: bytes) -> Wire | None:
    """A connection to the process that listens there and knows the secret; None if no process listens."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(address))
        check_user(connection)
        own = secrets.token_bytes(CHALLENGE)
        connection.sendall(own)
        answer = receive_exactly(connection, 2 * CHALLENGE)
        theirs = answer[:CHALLENGE]
        check_proof(answer[CHALLENGE:], proof(secret, b"shard", own, theirs))
    except (FileNotFoundError, ConnectionError, EOFError):
        connection.close()
        return None
    except BaseException:
        connection.close()
        raise
    return Wire(connection, proof(secret, b"task", own, theirs))


def check_user(connection: socket.socket) -> None:
    """The operating system knows the user of each end."""
    _, user, _ = _peer.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _peer.size))
    if user != os.geteuid():
        raise RefusedError(f"the other end belongs to user {user}")


def proof(secret: bytes, role: bytes, tasks: bytes, shards: bytes) -> bytes:
    """Proves knowledge of the secret. The role prevents that an answer is sent back to its sender."""
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
    """Memory is allocated as bytes arrive, whatever size was announced."""
    received = bytearray()
    while len(received) < size:
        piece = connection.recv(min(size - len(received), 1 << 20))
        if not piece:
            raise EOFError("the other end has closed the connection")
        if len(piece) == size:
            return piece
        received += piece
    return bytes(received)
