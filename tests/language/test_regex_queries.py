"""WHEN REGEX gives what `cedr.regex` gives."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cedr
from cedr import api
from cedr.automata import regex, step

few = settings(max_examples=max(settings.default.max_examples // 2, 1))
jobs = api.source("jobs", {"job": str, "kind": str, "cost": int, "number": int}, vs="ts", types="kind")
kind, cost, spent = pl.col("kind"), pl.col("cost"), pl.col("spent")
A, B = kind == "A", kind == "B"
dear = cost > 2

CASES = {
    "REGEX(A B* A, 20) OVER jobs": lambda: regex("A B* A", jobs, A=A, B=B, window=20),
    "REGEX(A (B | dear){2,} A+ B?, 9) OVER jobs BY job DEFINE dear AS cost > 2": (
        lambda: regex("A (B | dear){2,} A+ B?", jobs, A=A, B=B, dear=dear, window=9, by="job")
    ),
    "REGEX(B{1,2} A, 20) OVER jobs BY job ORDER BY number": (
        lambda: regex("B{1,2} A", jobs, A=A, B=B, window=20, by="job", order="number")
    ),
    """REGEX(first more* last, 20) BY_JOB REGISTER spent = 0, n = 1
    DEFINE first AS kind = 'A' SET spent = cost
    DEFINE more AS cost > 0 AND more.cost BETWEEN 0 AND spent + 2 SET spent = spent + cost, n = n + 1
    DEFINE last AS NOT (kind = 'A' OR spent < 2)""": lambda: regex(
        "first more* last",
        jobs,
        first=step(A, spent=cost),
        more=step((cost > 0) & cost.is_between(0, spent + 2), spent=spent + cost, n=pl.col("n") + 1),
        last=~(A | (spent < 2)),
        registers={"spent": 0, "n": 1},
        window=20,
        by="job",
    ),
    "REGEX(A any, 5) m BY_JOB DEFINE any AS TRUE WHERE m.end - m.begin > 1 OUTPUT job, m.end AS till": (
        lambda: (
            regex("A any", jobs, A=A, any=pl.lit(True), window=5, by="job")
            .where(pl.col("end") - pl.col("begin") > 1)
            .select("job", till="end")
        )
    ),
}
ROWS = st.lists(st.tuples(st.sampled_from("xy"), st.sampled_from("ABC"), st.integers(0, 4)), min_size=1, max_size=12)


@pytest.mark.parametrize("text", CASES, ids=lambda text: text.split(",")[0])
@few
@given(rows_of_jobs=ROWS)
def test_the_same_as_the_api_finds(text, rows_of_jobs):
    frame = pl.DataFrame(
        [(ts, *row, ts) for ts, row in enumerate(rows_of_jobs)],
        schema=["ts", "job", "kind", "cost", "number"],
        orient="row",
    )
    query = cedr.query("EVENT m WHEN " + text.replace("BY_JOB", "OVER jobs BY job"), jobs)
    assert query.run(frame).table().equals(CASES[text]().run(frame).table())


def test_what_is_found_is_an_event_type():
    text = """
    EVENT Pair WHEN REGEX(A B, 20) OVER jobs BY job;
    EVENT Twice WHEN SEQUENCE(Pair p, Pair q, 10) WHERE CorrelationKey(job, EQUAL) OUTPUT p.begin, q.begin AS again
    """
    rows = {"ts": [1, 2, 3, 4], "job": ["x"] * 4, "kind": list("ABAB"), "cost": [0] * 4, "number": [0] * 4}
    assert cedr.query(text, jobs).run(pl.DataFrame(rows)).table().rows() == [(4, 12, 1, 3)]


def test_without_over_it_is_the_only_feed():
    one, two = (cedr.query(f"EVENT m WHEN REGEX(A B, 20){over}", jobs) for over in ("", " OVER jobs"))
    assert one.explain() == two.explain()
    with pytest.raises(cedr.CedrError, match="REGEX needs events"):
        cedr.query("EVENT m WHEN REGEX(A B, 20)", api.source("jobs", {"kind": str}))


def test_regex_is_still_a_name():
    regexes = api.source("regex", {"kind": str})
    assert cedr.query("EVENT m WHEN regex x OUTPUT x.kind", regexes).columns == ["kind"]
