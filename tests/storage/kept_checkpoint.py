"""A checkpoint that is kept in the tests, so that a later version proves that it reads it.

    python tests/storage/kept_checkpoint.py

writes it again with the code of today: after a release, and whenever a change makes it unreadable on purpose. Then
`STATE_VERSION` goes up, too.
"""

import sys
import tarfile
import tempfile
from pathlib import Path

KEPT = Path(__file__).parent / "kept" / "checkpoint.tar.xz"
DONE = 4
"""The last micro-batch in it; a snapshot after 3 and the log of 4."""


def unpack(folder: Path) -> Path:
    with tarfile.open(KEPT) as archive:
        archive.extractall(folder, filter="data")
    return folder


def write() -> None:
    from runtime.spark.small_run import SmallRun

    from cedr.runtime.spark.shard import state
    from cedr.storage import snapshots

    state.MANY_BATCHES, state.MANY_BYTES, snapshots.SMALL_TABLE = 2, 100, 30  # files of every kind
    with tempfile.TemporaryDirectory() as place:
        run = SmallRun(Path(place))
        for batch in range(DONE + 1):
            run.run(batch)
        KEPT.parent.mkdir(exist_ok=True)
        with tarfile.open(KEPT, "w:xz") as archive:
            for name in ("checkpoint", "out"):
                archive.add(Path(place) / name, name, filter=anonymous)


def anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = ""
    return info


if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1])]
    write()
