"""`[spark]`: where the query runs, its shards, its checkpoint and Spark's own settings."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cedr.columnar.mapped import memory_size
from cedr.job.section import LENGTH, TABLE, TEXT, WHOLE, Section, show
from cedr.job.sources import flat
from cedr.secret import Discreet, Secret
from cedr.temporal.duration import duration

KEYS = {"master": TEXT, "shards": WHOLE, "state_memory": TEXT, "checkpoint": TEXT, "trigger": LENGTH, "conf": TABLE}
MASTER = re.compile(r"local|local\[(\d+|\*)(,\d+)?\]|local-cluster\[.+\]|(spark|k8s)://.+|yarn")


@dataclass(frozen=True, repr=False)
class SparkSettings(Discreet):
    """`trigger` is in milliseconds; without it, a micro-batch starts when the previous one is done."""

    checkpoint: str
    master: str = "local[*]"
    shards: int | None = None
    trigger: int | None = None
    conf: Mapping[str, str | Secret] = field(default_factory=dict)
    state_memory: str | None = None


def spark_of(section: Section) -> SparkSettings:
    section.check_keys(KEYS)
    master = section.get("master", "local[*]")
    if not MASTER.fullmatch(master):
        raise section.mistake(
            f'{show(master)} is not a Spark master; write "local[*]" for this machine, or "spark://host:7077"', "master"
        )
    shards = section.get("shards")
    if shards is not None and shards < 1:
        raise section.mistake(f"{shards} is too small; write shards = 1 or more", "shards")
    with section.about():
        trigger = duration(section.get("trigger"), "trigger") // 1000 if "trigger" in section else None
    conf = flat(section.sub("conf")) if "conf" in section else {}
    for key in conf:
        if not key.startswith("spark."):
            raise section.mistake(f"{key!r} is not a Spark setting; their names begin with spark.", "conf", key)
    checkpoint = section.place("checkpoint") if "checkpoint" in section else default_checkpoint(section)
    state_memory = section.get("state_memory")
    if state_memory is not None:
        with section.about():
            memory_size(state_memory)
    return SparkSettings(checkpoint, master, shards, trigger, conf, state_memory)


def default_checkpoint(section: Section) -> str:
    """Next to the job file and named after it, so that two jobs in one folder do not collide."""
    return str(section.folder / f"{Path(section.file).stem}.checkpoint")
