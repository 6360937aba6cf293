"""`[spark]`: where the query runs, how it is cut, and where its state lives."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cedr.job.section import LENGTH, TABLE, TEXT, WHOLE, Section, show
from cedr.job.sources import flat
from cedr.secret import Discreet, Secret
from cedr.temporal.duration import duration

KEYS = {"master": TEXT, "shards": WHOLE, "checkpoint": TEXT, "trigger": LENGTH, "conf": TABLE}
MASTER = re.compile(r"local|local\[(\d+|\*)(,\d+)?\]|local-cluster\[.+\]|(spark|k8s)://.+|yarn")


@dataclass(frozen=True, repr=False)
class SparkSettings(Discreet):
    """`trigger` is in milliseconds; without one, a micro-batch begins when the last is done."""

    checkpoint: str
    master: str = "local[*]"
    shards: int | None = None
    trigger: int | None = None
    conf: Mapping[str, str | Secret] = field(default_factory=dict)


def spark_of(section: Section) -> SparkSettings:
    section.check_keys(KEYS)
    master = section.get("master", "local[*]")
    if not MASTER.fullmatch(master):
        raise section.mistake(
            f'{show(master)} is no master of Spark; write "local[*]" for this machine, or "spark://host:7077"', "master"
        )
    shards = section.get("shards")
    if shards is not None and shards < 1:
        raise section.mistake(f"{shards} shards do no work; write shards = 1 or more", "shards")
    with section.about():
        trigger = duration(section.get("trigger"), "trigger") // 1000 if "trigger" in section else None
    conf = flat(section.sub("conf")) if "conf" in section else {}
    for key in conf:
        if not key.startswith("spark."):
            raise section.mistake(f"{key!r} is no setting of Spark; their names begin with spark.", "conf", key)
    checkpoint = section.place("checkpoint") if "checkpoint" in section else default_checkpoint(section)
    return SparkSettings(checkpoint, master, shards, trigger, conf)


def default_checkpoint(section: Section) -> str:
    """Beside the job file, named after it, so that two jobs of one folder do not meet."""
    return str(section.folder / f"{Path(section.file).stem}.checkpoint")
