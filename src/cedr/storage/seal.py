"""Checksums: how a file that was written by cedr is recognised as the same when it is read back.

A file of cedr's own begins with one line of text, followed by the content:

    cedr 1 crc32 9ae0daaf bytes 000000001234 state/1/0/log-000000000042

The label at the end names the file within its checkpoint or table, so that swapped files are detected as well.
Changing any bit changes the line or the checksum, which covers label and content. The content is not interpreted before
it has been checked.

Parquet files stay plain Parquet, since others read them. Readers find the footer from the end of the file and all else
by the positions in the footer, so a gap before the footer is never looked at. There is the seal.
"""

import re
import struct
from collections.abc import Iterable
from zlib import crc32

HEADER = re.compile(rb"cedr (\d+) crc32 ([0-9a-f]{8}) bytes (\d+) ([^\n]*)\n")
VERSION = 1
LONGEST_HEADER = 4096
SEAL = struct.Struct("<8sQII")
"""Of a Parquet file: the magic number, the length without the seal, the checksums of the content and of the label."""
MAGIC = b"cedrseal"
PARQUET_END = struct.Struct("<I4s")

Content = bytes | memoryview


class DamageError(Exception):
    """What is wrong with the content of a file, as a sentence about it."""


EMPTY = "it is empty, as after a power cut"
NO_CHECKSUM = "it has no checksum: an earlier version of cedr wrote it, or it is damaged where the checksum was"
OTHER_CONTENT = "its content does not match its checksum"


class Header:
    """The line that goes before the content, which is added piece by piece. Its size depends on the label alone."""

    def __init__(self, label: str) -> None:
        self.name = as_bytes(label)
        self.checksum, self.length = crc32(self.name), 0
        self.size = len(self.line())

    def add(self, content: Content) -> None:
        self.checksum, self.length = crc32(content, self.checksum), self.length + len(content)

    def line(self) -> bytes:
        return b"cedr %d crc32 %08x bytes %012d %s\n" % (VERSION, self.checksum, self.length, self.name)


def header(label: str, content: Content) -> bytes:
    """The line that goes before this content."""
    found = Header(label)
    found.add(content)
    return found.line()


def check(line: bytes, content: Iterable[Content], label: str) -> None:
    """Is this what was written under this label? `line` is the first line of the file, `content` the rest in pieces."""
    if not line:
        raise DamageError(EMPTY)
    if (found := HEADER.fullmatch(line)) is None:
        raise DamageError(NO_CHECKSUM)
    version, checksum, size, name = found.groups()
    if int(version) != VERSION:
        raise DamageError(f"its format is version {int(version)}, and this version of cedr reads version {VERSION}")
    length, found_checksum = 0, crc32(name)
    for piece in content:
        length, found_checksum = length + len(piece), crc32(piece, found_checksum)
    if int(size) != length:
        raise DamageError(f"it has {length} bytes of content where {int(size)} were written")
    if int(checksum, 16) != found_checksum:
        raise DamageError(OTHER_CONTENT)
    if name != as_bytes(label):
        raise DamageError(f"it has the content of {name.decode()}")


def sealed_parquet(label: str, content: bytes) -> list[Content]:
    """The parts of the file: a Parquet file with a seal before its footer."""
    length, _ = PARQUET_END.unpack_from(content, len(content) - PARQUET_END.size)
    footer = len(content) - PARQUET_END.size - length
    view = memoryview(content)
    seal = SEAL.pack(MAGIC, len(content), crc32(content), crc32(as_bytes(label)))
    return [view[:footer], seal, view[footer:]]


def check_parquet(content: Content, label: str) -> None:
    """Is this the Parquet file that was written under this label?"""
    if not check_if_sealed(content, label):
        raise DamageError(NO_CHECKSUM)


def check_if_sealed(content: Content, label: str | None = None) -> bool:
    """Whether the file has a seal, which is then checked; without a label any file with a right seal will do."""
    view = memoryview(content)
    if not len(view):
        raise DamageError(EMPTY)
    if len(view) < PARQUET_END.size:
        return False
    length, _ = PARQUET_END.unpack_from(view, len(view) - PARQUET_END.size)
    footer = len(view) - PARQUET_END.size - length
    if footer < SEAL.size or view[footer - SEAL.size : footer][: len(MAGIC)] != MAGIC:
        return False
    _, size, checksum, name = SEAL.unpack_from(view, footer - SEAL.size)
    if size != len(view) - SEAL.size or checksum != crc32(view[footer:], crc32(view[: footer - SEAL.size])):
        raise DamageError(OTHER_CONTENT)
    if label is not None and name != crc32(as_bytes(label)):
        raise DamageError("it has the content of another file")
    return True


def as_bytes(label: str) -> bytes:
    return label.encode("unicode_escape")
