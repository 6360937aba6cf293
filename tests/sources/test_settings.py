"""The groups of settings of `cedr.source`, and the flat names that they had."""

import polars as pl
import pytest

import cedr
from cedr.api import source_of_keys
from cedr.plan.nodes.source import Source
from cedr.temporal.errors import QueryError

SCHEMA = {"k": str, "v": int}

MOVED = {
    "ve_new": "corrected",
    "unit": "ms",
    "format": "%d.%m.%Y",
    "ends": True,
    "ordered": True,
    "external_ctis": True,
    "partition": "p",
    "progress_by": "k",
    "punctuation": "done",
    "promises": ["k"],
    "max_ahead": "1h",
    "per": "k",
    "future": "1h",
}


def made(**arguments) -> Source:
    plan = cedr.source("s", SCHEMA, **arguments).plan
    assert isinstance(plan, Source)
    return plan


def same(one: Source, two: Source) -> bool:
    def plain(source):
        return {n: v for n, v in vars(source).items() if n in Source.__dataclass_fields__ and n != "expressions"}

    return plain(one) == plain(two)


def test_the_shortcuts_are_settings_of_the_groups():
    flat = made(vs="ts", duration="5s", cti="c", delay="1s")
    assert same(flat, made(times=cedr.Times(vs="ts", duration="5s"), progress=cedr.Progress(cti="c", delay="1s")))
    assert same(flat, made(vs="ts", times=cedr.Times(duration="5s"), delay="1s", progress=cedr.Progress(cti="c")))
    assert same(made(vs="ts", ve="end"), made(times=cedr.Times(vs=pl.col("ts"), ve="end")))


def test_expressions_in_the_groups():
    start, progress = pl.col("day").dt.combine(pl.col("time")), pl.col("ts") - 1
    source = made(times=cedr.Times(vs=start), progress=cedr.Progress(cti=progress))
    assert (source.vs, source.cti) == (str(start), str(progress))
    assert [text for text, _ in source.expressions] == [str(start), str(progress)]


def test_job_files_have_the_same_settings_as_flat_keys():
    keys = {"vs": "ts", "unit": "ms", "delay": 5, "progress_by": "k", "idle": "1m", "late": "raise"}
    grouped = made(
        times=cedr.Times(vs="ts", unit="ms"), progress=cedr.Progress(delay=5, by="k", idle="1m"), late="raise"
    )
    assert same(source_of_keys("s", SCHEMA, **keys).plan, grouped)


@pytest.mark.parametrize("name", MOVED)
def test_arguments_that_have_moved_still_work_and_warn(name):
    new = {"progress_by": "by", "per": "by", "future": "max_ahead"}.get(name, name)
    group = "times" if new in ("ve_new", "unit", "format", "ends") else "progress"
    kind = {"times": cedr.Times, "progress": cedr.Progress}[group]
    settings = {"vs": "ts", "delay": 1} if new == "by" else {"vs": "ts"}
    message = rf"source\('s'\): {name}= is now {group}=cedr\.{kind.__name__}\({new}=\.\.\.\)"
    with pytest.warns(DeprecationWarning, match=message) as warned:
        old = made(**settings, **{name: MOVED[name]})
    assert warned[0].filename == __file__
    assert same(old, made(**settings, **{group: kind(**{new: MOVED[name]})}))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"times": cedr.Times(vs="a"), "vs": "b"}, r"source\('s'\): vs is given twice, also in times; leave"),
        ({"progress": cedr.Progress(delay=0), "delay": 1}, r"source\('s'\): delay is given twice, also in progress"),
        ({"times": "ts"}, r"source\('s'\): times='ts' must be a cedr\.Times"),
        ({"progress": cedr.Times()}, r"must be a cedr\.Progress"),
        ({"vs": "t", "progress": cedr.Progress(by="k")}, r"source\('s'\): by='k' needs delay"),
        ({"vs": "t", "progress": cedr.Progress(idle="1s")}, r"idle='1s' needs partition or by"),
        ({"progress": cedr.Progress(cti="c")}, r"cti='c' needs vs"),
        ({"vs": "t", "times": cedr.Times(unit="h")}, r"unit='h' is not one of 's', 'ms'"),
    ],
)
def test_what_does_not_go_together(arguments, message):
    with pytest.raises(QueryError, match=message):
        made(**arguments)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_setting_under_two_names():
    with pytest.raises(QueryError, match="per= is given twice"):
        made(vs="ts", delay=1, progress_by="k", per="k")
    with pytest.raises(QueryError, match="by is given twice, also in progress"):
        made(vs="ts", delay=1, progress_by="k", progress=cedr.Progress(by="k"))


def test_an_argument_that_never_existed():
    with pytest.raises(TypeError, match="unexpected keyword argument 'orderd'"):
        made(vs="ts", orderd=True)
