"""Folders of our own in the shared folder for temporary files: nobody else can enter them, or has made them.

Anybody may create files in `/tmp`, under names that they can guess. So a folder is ours only if it is a real folder,
belongs to this user, and is closed to all others. Each holds a note of the process it is for; when that process is
gone, the next one to come removes the folder.
"""

import contextlib
import os
import secrets
import shutil
import stat
import tempfile
from pathlib import Path

from cedr.storage.processes import birth, namespace
from cedr.temporal.errors import CedrError

PREFIX = "cedr-"
OWNER, SECRET = "owner", "secret"
SECRET_BYTES = 32
LONGEST_FOLDER = 45
"""A socket's path has 107 characters at the most. Spark wants no more than 60 for the folder of its own ones, which is
one in this folder and has a name of 13; the paths of ours are shorter."""


class FolderError(CedrError, PermissionError):
    """A folder that somebody else may have made, or may enter."""


def temporary() -> Path:
    """The folder for temporary files, unless the path of a socket in it would be longer than systems allow."""
    usual = Path(tempfile.gettempdir())
    return usual if len(str(usual)) <= LONGEST_FOLDER else Path("/tmp")


def make_private(folder: Path) -> None:
    """Create the folder, or check that it is ours alone."""
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        check_private(folder)


def check_private(folder: Path) -> None:
    if (wrong := what_is_wrong(os.lstat(folder), stat.S_IFDIR, 0o700)) is not None:
        raise FolderError(
            f"the folder {folder} {wrong}, so others may have put files there; cedr needs a folder that only user "
            f"{os.geteuid()} can enter (mode 0700). Remove it, or set TMPDIR to a folder of your own"
        )


def is_private(folder: Path) -> bool:
    try:
        return what_is_wrong(os.lstat(folder), stat.S_IFDIR, 0o700) is None
    except OSError:
        return False


def what_is_wrong(found: os.stat_result, kind: int, mode: int) -> str | None:
    """Why a file or folder is not ours alone."""
    if stat.S_ISLNK(found.st_mode):
        return "is a symbolic link"
    if stat.S_IFMT(found.st_mode) != kind:
        return "is not a folder" if kind == stat.S_IFDIR else "is not a regular file"
    if found.st_uid != os.geteuid():
        return f"belongs to user {found.st_uid}"
    if found.st_mode & 0o777 != mode:
        return f"has mode {found.st_mode & 0o777:04o}"
    return None


def secret_of(folder: Path) -> bytes:
    """The secret in a folder of ours, drawn by the first that asks. It is in no argument, name or environment."""
    file = folder / SECRET
    for _ in range(2):
        with contextlib.suppress(FileNotFoundError):
            return read_private(file, SECRET_BYTES)
        drawn = folder / f".{SECRET}-{secrets.token_hex(8)}"
        write_private(drawn, secrets.token_bytes(SECRET_BYTES))
        with contextlib.suppress(FileExistsError):
            os.link(drawn, file)
        os.unlink(drawn)
    return read_private(file, SECRET_BYTES)


def write_private(file: Path, content: bytes) -> None:
    """A new file that only this user can read."""
    number = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(number, "wb") as opened:
        opened.write(content)


def read_private(file: Path, size: int = -1) -> bytes:
    """The content of a file of ours, of this size if one is given."""
    number = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(number, "rb") as opened:
        wrong = what_is_wrong(os.fstat(number), stat.S_IFREG, 0o600)
        content = opened.read() if wrong is None else b""
    if wrong is None and size not in (-1, len(content)):
        wrong = f"has {len(content)} bytes instead of {size}"
    if wrong is not None:
        raise FolderError(f"the file {file} {wrong}; remove the folder {file.parent}; cedr creates it again")
    return content


# --- folders that are left over ---------------------------------------------------------------------------------------


def note_owner(folder: Path, process: int) -> None:
    """The process that the folder is for; the first note counts."""
    with contextlib.suppress(FileExistsError):
        write_private(folder / OWNER, f"{namespace()} {process} {birth(process)}".encode())


def remove_left_over() -> None:
    """Remove folders of this user whose process is gone, as after it was killed."""
    for folder in temporary().glob(f"{PREFIX}*"):
        if is_private(folder) and is_left_over(folder):
            shutil.rmtree(folder, ignore_errors=True)


def is_left_over(folder: Path) -> bool:
    """Whether its process is gone; another container may have processes that we do not see."""
    try:
        where, process, born = read_private(folder / OWNER).decode().split()
    except (OSError, ValueError):
        return False
    return where == namespace() and birth(int(process)) != born
