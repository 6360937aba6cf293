"""The public API: what can be written, and the errors for mistakes."""

import polars as pl
import pytest
from plan.catalogue import a, b

import cedr
from cedr import api
from cedr.plan.nodes.level import Level
from cedr.stream import Stream
from cedr.temporal import CedrError, Consistency, QueryError

feed = api.source("machines", {"kind": str, "Machine_Id": str, "load": float}, vs="ts", types="kind")


def test_schemas_follow_the_query():
    busy = feed.where(pl.col("kind") == "REPORT").sliding("60s").group_by("Machine_Id")
    stream = busy.agg(load=cedr.avg("load"), n=cedr.count(), top=cedr.max("kind"))
    assert stream.schema == {"Machine_Id": pl.String, "load": pl.Float64, "n": pl.Int64, "top": pl.String}
    assert feed.select("load", double=pl.col("load") * 2).columns == ["load", "double"]
    assert feed.with_columns(pl.col("load").cast(int), one=1).schema == {
        "kind": pl.String,
        "Machine_Id": pl.String,
        "load": pl.Int64,
        "one": pl.Int32,
    }
    assert feed.select(pl.all()).columns == feed.columns
    assert feed.with_columns(pl.col("load", "kind").cast(str)).columns == feed.columns
    assert busy.top_k(2, by="load", rank="place").columns == [*feed.columns, "place"]
    joined = feed.join(feed, left_on="Machine_Id", right_on="kind")
    assert joined.columns == ["kind", "Machine_Id", "load", "Machine_Id_right", "load_right"]
    assert repr(a()) == "Stream(m: Int64, v: Int64)"


def test_streams_never_change():
    source = a()
    plan = source.plan
    source.where(pl.col("v") > 1)
    assert source.plan is plan


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: feed.where(pl.col("lod") > 1),
            "no column 'lod'; did you mean 'load'? (columns: kind, Machine_Id, load)",
        ),
        (lambda: feed.where("machine_id = 'a'"), "no column 'machine_id'; did you mean 'Machine_Id'?"),
        (lambda: feed.where(pl.col("kind") > 3), "cannot compare string with numeric type"),
        (lambda: feed.where(pl.col("load")), "filter predicate must be of type `Boolean`, got `Float64`"),
        (lambda: feed.where(pl.col("load") > pl.col("load").mean()), "uses several rows"),
        (lambda: feed.where("load >"), "where('load >')"),
        (lambda: feed.where(3), "write a polars expression"),
        (lambda: feed.where(), "where() needs a predicate"),
        (lambda: feed.select(), "select() needs columns"),
        (lambda: feed.select("load", "load"), "load"),
        (lambda: feed.select(pl.col("load").cum_sum()), "uses several rows"),
        (lambda: feed.select(pl.col("kind") * 2), "select:"),
        (lambda: feed.sliding("5 parsecs"), "sliding: length is '5 parsecs'"),
        (lambda: feed.sliding(0), "it must be at least one chronon"),
        (lambda: feed.hopping("10s", "3s"), "hopping(10s, 3s): the size must be a finite multiple of the hop"),
        (lambda: feed.group_by("machine"), "group_by('machine'): no column 'machine'; did you mean"),
        (lambda: feed.agg(), "agg() names no aggregate"),
        (lambda: feed.agg(n=3), "agg(n=3): not an aggregate"),
        (lambda: feed.agg(n=cedr.avg("lod")), "agg(n=avg(lod)): no column 'lod'; did you mean 'load'?"),
        (lambda: feed.agg(n=cedr.avg("kind")), "needs numbers, but 'kind' is of type String"),
        (lambda: feed.group_by("kind").agg(kind=cedr.count()), "'kind' is a group column too; rename one"),
        (lambda: feed.top_k(0, by="load"), "k must be a whole number, at least 1"),
        (lambda: feed.top_k(1, by="load", rank="kind"), "there is a column of that name"),
        (lambda: feed.top_k(1, by=["load"], descending=[True, False]), "1 columns to order by, but 2 values"),
        (lambda: feed.join(a(), on="m"), "join, left stream: no column 'm'"),
        (lambda: feed.join(a(), left_on="load", right_on="m"), "key 'load' is Float64 on the left, but 'm' is Int64"),
        (lambda: feed.join(a(), left_on="load"), "left_on and right_on go together"),
        (lambda: feed.join(a(), "m", left_on="m", right_on="m"), "give on, or left_on and right_on, not both"),
        (lambda: a().join(b(), on="m", how="outer"), "how must be one of inner, left, full, semi, anti"),
        (lambda: a().join(b(), on="m", where=pl.col("w") > 1), "no column 'w' (columns: m, v, v_right)"),
        (lambda: a().join(b(), on="m", suffix=""), "both streams yield a column 'v'"),
        (lambda: a().join("b", on="m"), "the other side is a str; it must be a stream"),
        (lambda: a().union(feed), "only the left has ['m', 'v'], only the right has ['kind', 'Machine_Id', 'load']"),
        (lambda: a().difference(a().select("m", v=pl.lit("x"))), "'v' is Int64 on the left and String on the right"),
        (lambda: a().session("5s", by="x"), "session(by=['x']): no column 'x'"),
        (lambda: a().alter_lifetime(start=pl.col("vs")), "give progress"),
        (lambda: a().alter_lifetime(start=5, duration=3), "start must be an expression of vs"),
        (lambda: a().with_consistency("strng"), "there is no level 'strng'; levels are strong, middle, weak"),
        (lambda: a().with_consistency("strong", block=5), "give a level, or block and remember, not both"),
        (
            lambda: a().with_consistency(block="1h", remember="5s"),
            "a query cannot wait for what it no longer remembers",
        ),
        (lambda: a().with_consistency(3), "3 is not a level"),
        (lambda: a().with_latency("fast"), "it is one of perfect, ordered, eager"),
        (lambda: api.source("x", {"_vs": int}), "the column name '_vs' is reserved by cedr"),
        (lambda: api.source("x", {"v": int}, ve="e"), "ve='e' needs vs"),
        (lambda: api.source("x", {"v": int}, vs="s", ve="e", duration=5), "give ve='e' or duration=5, not both"),
        (lambda: api.source("x", {"v": int}, types="k"), "no column 'k'"),
        (lambda: api.source("x", {"v": str}, types="v", kind="A"), "give types='v' or kind='A', not both"),
        (
            lambda: api.source("x", {"v": int}, vs="s", times=cedr.Times(ve_new="n"), insert_only=True),
            "contradicts ve_new='n'",
        ),
        (lambda: api.source("x", {"v": "integer"}), "source('x')"),
        (lambda: a().join(api.source("a", {"m": int}), on="m").fragment(), "two different sources are called 'a'"),
    ],
)
def test_mistakes_name_the_remedy(build, message):
    with pytest.raises(CedrError) as caught:
        build()
    assert message in str(caught.value)


def test_levels_by_block_and_remember():
    def level(**settings):
        plan = a().with_consistency(**settings).plan
        assert isinstance(plan, Level)
        return plan.consistency

    assert level(level="strong") == level(level=cedr.STRONG) == cedr.STRONG
    assert level(block="5s", remember="1h") == Consistency(5_000_000, 3_600_000_000)
    assert level(block=5) == Consistency(5, cedr.INF)
    assert level(remember="1m") == Consistency(0, 60_000_000)


def test_a_source_twice_is_one_source():
    stream = api.source("s", {"m": int}).union(api.source("s", {"m": int}))
    assert list(stream.fragment().sources) == ["s"]


def test_where_takes_sql():
    assert isinstance(feed.where("load > 0.5 AND kind = 'REPORT'"), Stream)
    with pytest.raises(QueryError):
        feed.where("SELECT")


# --- columns by name -----------------------------------------------------------------------------------------------

BY_NAME = {
    "join": lambda c: a().join(b(), on=c),
    "join, sides": lambda c: a().join(b(), left_on=c, right_on=[c]),
    "clip": lambda c: a().clip(b(), on=c),
    "difference": lambda c: a().difference(b(), by=c),
    "session": lambda c: a().session(5, by=c),
    "group_by": lambda c: a().group_by(c).agg(n=cedr.count()),
    "sort": lambda c: a().sort(c),
    "top_k": lambda c: a().top_k(2, by=c),
    "regex": lambda c: cedr.regex("x", a(), window=5, by=c, x=pl.col("v") > 1),
    "per": lambda c: cedr.source("s", {"m": int}, vs="t", delay=1, progress=cedr.Progress(by=c)),
    "promises": lambda c: cedr.source("s", {"m": int}, vs="t", progress=cedr.Progress(promises=c)),
    "sum": lambda c: a().agg(x=cedr.sum(c)),
    "count": lambda c: a().agg(x=cedr.count(c)),
    "median": lambda c: a().agg(x=cedr.median(c)),
    "aggregate": lambda c: a().agg(x=cedr.aggregate(c, function=len)),
}


@pytest.mark.parametrize("use", BY_NAME.values(), ids=BY_NAME)
def test_columns_are_named_by_text_or_as_a_column(use):
    assert list(use(pl.col("m")).schema) == list(use("m").schema)
    with pytest.raises(QueryError, match=r'col\("m"\).* is an expression; name a column'):
        use(pl.col("m") + 1)
    with pytest.raises(QueryError, match=r"3 is a int; write the name of a column"):
        use(3)


CALCULATIONS = [
    lambda x: x + 1,
    lambda x: 2 * x,
    lambda x: x / cedr.count(),
    lambda x: -x,
    lambda x: x > 3,
]


@pytest.mark.parametrize("calculate", CALCULATIONS)
def test_aggregates_are_named_before_one_calculates_with_them(calculate):
    with pytest.raises(QueryError, match=r"sum\(v\) cannot be part of a calculation; name it"):
        calculate(cedr.sum("v"))


def test_other_mistakes_of_type():
    with pytest.raises(QueryError, match=r"quantile\('v', '9'\): the share must be a number"):
        cedr.quantile("v", "9")
    with pytest.raises(QueryError, match="query: the text is a Stream; write the query first"):
        cedr.query(a(), "EVENT E WHEN A")
    with pytest.raises(QueryError, match="iterate: body is a Stream; it must be a function"):
        a().iterate(b())
