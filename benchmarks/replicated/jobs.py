"""Two versions of one query, as a user would write them: hopping counts and sums per machine, by two plans."""

import os

import cedr

COLUMNS = {"machine": str, "load": int}


def reports() -> cedr.Stream:
    """Rows that correct others, and rows that report progress; the last closes the stream."""
    return cedr.source("reports", COLUMNS, vs="at", ve="until", times=cedr.Times(ve_new="corrected"), cti="cti")


def first() -> cedr.Stream:
    return reports().hopping(40, 20).group_by("machine").agg(n=cedr.count(), load=cedr.sum("load"))


def second() -> cedr.Stream:
    """The same by another plan, and emitted only when it is sure."""
    sums = reports().hopping(40, 20).group_by("machine").agg(load=cedr.sum("load"), n=cedr.count())
    return sums.where("n > 0").select("machine", "n", "load").with_consistency("strong")


def files() -> object:
    return cedr.files(os.environ["CEDR_SOAK_INPUT"], "parquet", max_files=4)


def version_one(spark, name):
    return cedr.Replica(first(), files())


def version_two(spark, name):
    return cedr.Replica(second(), files())
