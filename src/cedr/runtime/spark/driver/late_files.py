"""The folder of late rows: Parquet files, one per micro-batch, stage and shard that had some."""

import io

import polars as pl

from cedr.storage.folder import Folder

REMEDY = "Move the file away: the late rows in it are lost; the answer and other late rows are not affected"


def late_folder(place: str) -> Folder:
    return Folder(place, remedy=REMEDY)


def write_late(folder: Folder, name: str, rows: pl.DataFrame) -> None:
    buffer = io.BytesIO()
    rows.write_parquet(buffer)
    folder.write_parquet(f"late-{name}.parquet", buffer.getvalue())


def read_late(folder: Folder) -> pl.DataFrame:
    frames = [folder.read_parquet(name) for name in folder.names() if name.startswith("late-")]
    return pl.concat(frames, how="diagonal_relaxed") if frames else pl.DataFrame()
