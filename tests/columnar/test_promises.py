"""Promises: however its tables are laid out, a set gives each payload the time its punctuations give it one by one."""

import pickle
from datetime import UTC, date, datetime, time, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from storage.through_bytes import through_bytes

from cedr.columnar.promises import NONE, PromiseIndex, point_promises, promises_of
from cedr.temporal import INF, MIN, PayloadError, Row
from cedr.temporal.punctuation import Constant, OneOf, Punctuation, Range, frontier, punctuation

SCHEMA = {"n": pl.Int64, "small": pl.Int8, "x": pl.Float64, "text": pl.String, "day": pl.Date, "ok": pl.Boolean}
DOMAIN = {
    "n": [None, MIN, -2, 0, 1, 2, 3, INF - 1, INF],
    "small": [None, -128, 0, 1, 127],
    "x": [None, -1.5, 0.0, 0.5, 2.0, float("inf"), float("nan")],
    "text": [None, "", "a", "ab", "b", "é"],
    "day": [None, date.min, date(2020, 2, 28), date(2020, 2, 29), date(2020, 3, 1), date.max],
    "ok": [None, False, True],
}
TIMES = st.one_of(st.integers(0, 6), st.just(INF))

rows = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in DOMAIN.items()}).map(Row)


def patterns(values):
    some = [v for v in values if v is not None]
    ends = st.one_of(st.none(), st.sampled_from(some))
    return st.one_of(
        st.sampled_from(values).map(Constant),
        st.lists(st.sampled_from(values), min_size=1, unique_by=repr).map(OneOf),
        st.builds(Range, ends, ends),
    )


@st.composite
def punctuations(draw, schemes=None):
    names = draw(
        st.sampled_from(schemes) if schemes else st.sets(st.sampled_from(list(DOMAIN)), min_size=1, max_size=2)
    )
    return Punctuation({name: draw(patterns(DOMAIN[name])) for name in sorted(names)}, draw(TIMES))


sets = st.lists(punctuations(), max_size=6)
ctis = st.one_of(st.just(MIN), st.integers(0, 6))


def frame(payloads, columns=tuple(DOMAIN)):
    return pl.DataFrame([[r[n] for n in columns] for r in payloads], {n: SCHEMA[n] for n in columns}, orient="row")


def promised(punctuations, row) -> int:
    found = frontier(row, punctuations)
    return MIN if found is None else found


def of(promises, payloads) -> list[int]:
    return promises.of(frame(payloads)).tolist()


# --- one set -------------------------------------------------------------------------------------------------------


@given(sets, st.lists(rows, max_size=8))
@example([punctuation(3, n=INF)], [Row({**dict.fromkeys(DOMAIN), "n": INF})])
@example([punctuation(3, x=float("nan"))], [Row({**dict.fromkeys(DOMAIN), "x": float("nan")})])
def test_a_row_is_promised_the_latest_time_of_all_that_are_about_it(punctuations, payloads):
    assert of(promises_of(punctuations, SCHEMA), payloads) == [promised(punctuations, row) for row in payloads]


@given(sets, rows, st.sets(st.sampled_from(list(DOMAIN))))
def test_a_row_without_some_attributes_is_promised_what_holds_whatever_they_are(punctuations, row, known):
    columns = sorted(known)
    found = promises_of(punctuations, SCHEMA).of(frame([row], columns)) if columns else [MIN]
    assert list(found) == [promised([p for p in punctuations if set(p.attributes) <= known], row)]


@given(sets, st.lists(rows, max_size=4))
def test_a_set_built_one_by_one_is_equivalent(punctuations, payloads):
    promises = promises_of(punctuations, SCHEMA)
    again = list(promises)
    assert [promised(again, row) for row in payloads] == of(promises, payloads)
    assert {p.attributes for p in again} <= promises.schemes


@given(st.lists(st.tuples(st.sampled_from(DOMAIN["n"]), TIMES)), st.lists(rows, max_size=4))
def test_a_table_of_keys_is_a_promise_per_row(keys, payloads):
    table = pl.DataFrame({"n": pl.Series([k for k, _ in keys], dtype=pl.Int64)})
    promises = point_promises(table, np.array([t for _, t in keys], dtype=np.int64))
    punctuations = [Punctuation({"n": k}, t) for k, t in keys]
    assert of(promises, payloads) == [promised(punctuations, row) for row in payloads]


@given(st.lists(st.tuples(rows, TIMES), max_size=5), st.lists(rows, max_size=4))
def test_a_table_of_keys_of_several_columns_is_a_promise_per_row(keys, payloads):
    table = frame([k for k, _ in keys], ("text", "day"))
    promises = point_promises(table, np.array([t for _, t in keys], dtype=np.int64))
    punctuations = [Punctuation(k.pick("text", "day"), t) for k, t in keys]
    assert of(promises, payloads) == [promised(punctuations, row) for row in payloads]


# --- two sets ------------------------------------------------------------------------------------------------------


@given(sets, sets, st.lists(rows, max_size=4))
def test_plus_is_the_later_time_everywhere(one, two, payloads):
    both = promises_of(one, SCHEMA).plus(promises_of(two, SCHEMA))
    assert of(both, payloads) == [promised([*one, *two], row) for row in payloads]


@given(*(st.lists(punctuations([("n",)]), max_size=5) for _ in range(2)))
def test_ranges_of_numbers_keep_their_own_times(one, two):
    both = promises_of(one, SCHEMA).plus(promises_of(two, SCHEMA))
    payloads = [Row({**dict.fromkeys(DOMAIN), "n": n}) for n in DOMAIN["n"]]
    assert of(both, payloads) == [promised([*one, *two], row) for row in payloads]


def least(one, cti, two, other_cti, row) -> int:
    return min(max(promised(one, row), cti), max(promised(two, row), other_cti))


@given(sets, ctis, sets, ctis, st.lists(rows, max_size=4))
def test_combined_never_promises_more_than_both(one, cti, two, other_cti, payloads):
    both = promises_of(one, SCHEMA).combined(cti, promises_of(two, SCHEMA), other_cti)
    for found, row in zip(of(both, payloads), payloads, strict=True):
        assert found <= least(one, cti, two, other_cti, row)


@given(st.data(), st.sampled_from([("n",), ("text",), ("day",), ("x",), ("ok",)]), ctis, ctis)
def test_combined_is_the_earlier_time_for_one_attribute(data, scheme, cti, other_cti):
    one, two = (data.draw(st.lists(punctuations([scheme]), max_size=5)) for _ in range(2))
    payloads = data.draw(st.lists(rows, max_size=4))
    both = promises_of(one, SCHEMA).combined(cti, promises_of(two, SCHEMA), other_cti)
    found = [max(t, min(cti, other_cti)) for t in of(both, payloads)]
    assert found == [least(one, cti, two, other_cti, row) for row in payloads]


@st.composite
def constants(draw, names):
    return Punctuation({name: draw(st.sampled_from(DOMAIN[name])) for name in names}, draw(TIMES))


@given(st.data(), ctis, ctis)
def test_combined_is_the_earlier_time_for_keys_of_two_attributes(data, cti, other_cti):
    one = data.draw(st.lists(constants(["ok", "small"]), max_size=6))
    two = data.draw(st.lists(st.one_of(constants(["ok", "small"]), constants(["small"])), max_size=6))
    payloads = data.draw(st.lists(rows, max_size=6))
    both = promises_of(one, SCHEMA).combined(cti, promises_of(two, SCHEMA), other_cti)
    found = [max(t, min(cti, other_cti)) for t in of(both, payloads)]
    assert found == [least(one, cti, two, other_cti, row) for row in payloads]


@given(sets, ctis, sets, ctis)
def test_what_the_ctis_imply_is_not_combined(one, cti, two, other_cti):
    both = promises_of(one, SCHEMA).combined(cti, promises_of(two, SCHEMA), other_cti)
    assert all(p.before > min(cti, other_cti) for p in both)


@given(sets, st.lists(sets, max_size=4), ctis, st.lists(rows, max_size=4))
def test_a_limit_is_what_both_sides_promise(punctuations, known, cti, payloads):
    index = PromiseIndex()
    for part in known:
        index.add(promises_of(part, SCHEMA))
    flat = [p for part in known for p in part]
    both = index.limit(promises_of(punctuations, SCHEMA), cti)
    for found, row in zip(of(both, payloads), payloads, strict=True):
        assert found <= least(punctuations, MIN, flat, cti, row)
    # Of what is known about other attributes some may be lost, of what is known about the same nothing is.
    index.add(promises_of(punctuations, SCHEMA))
    assert of(index.limit(promises_of(punctuations, SCHEMA), MIN), payloads) == of(
        promises_of(punctuations, SCHEMA), payloads
    )


@given(sets, sets, st.lists(rows, max_size=4))
def test_beyond_together_with_the_known_is_everything(new, known, payloads):
    base, fresh = promises_of(known, SCHEMA), promises_of(new, SCHEMA).beyond(promises_of(known, SCHEMA))
    assert of(fresh.plus(base), payloads) == [promised([*new, *known], row) for row in payloads]
    assert not len(fresh.beyond(fresh))
    several = PromiseIndex()
    for p in known:
        several.add(promises_of([p], SCHEMA))
    left = several.beyond(promises_of(new, SCHEMA))
    assert of(left.plus(base), payloads) == of(fresh.plus(base), payloads)


# --- parts and images ----------------------------------------------------------------------------------------------


@given(sets, ctis, st.lists(rows, max_size=4))
def test_after_a_cti_only_what_promises_more_is_left(punctuations, cti, payloads):
    left = promises_of(punctuations, SCHEMA).after(cti)
    assert of(left, payloads) == [t if t > cti else MIN for t in of(promises_of(punctuations, SCHEMA), payloads)]
    assert all(p.before > cti for p in left)


@given(sets, st.sets(st.sampled_from(list(DOMAIN))), st.lists(rows, max_size=4))
def test_about_keeps_promises_on_these_columns_alone(punctuations, columns, payloads):
    left = promises_of(punctuations, SCHEMA).about(columns)
    kept = [p for p in punctuations if set(p.attributes) <= columns]
    assert of(left, payloads) == [promised(kept, row) for row in payloads]


@given(sets, st.lists(rows, max_size=4))
def test_an_attribute_may_get_several_new_names(punctuations, payloads):
    image = promises_of(punctuations, SCHEMA).renamed({"n": ("k", "m"), "text": ("name",)})
    table = frame(payloads).select(pl.col("n").alias("k"), pl.col("n").alias("m"), pl.col("text").alias("name"))
    kept = [p for p in punctuations if set(p.attributes) <= {"n", "text"}]
    assert image.of(table).tolist() == [promised(kept, row) for row in payloads]
    for column in ("k", "m"):
        assert image.of(table.select(column, "name")).tolist() == [promised(kept, row) for row in payloads]


def test_two_attributes_may_get_one_new_name():
    both = promises_of([punctuation(3, n=1), punctuation(5, small=1), punctuation(7, n=1, small=2)], SCHEMA)
    image = both.renamed({"n": ("k",), "small": ("k",)})
    assert image.of(pl.DataFrame({"k": [1, 2]})).tolist() == [5, MIN]


@given(sets, st.lists(rows, max_size=4))
def test_moved_moves_finite_times(punctuations, payloads):
    later = promises_of(punctuations, SCHEMA).moved(lambda before: before // 2 + 100)
    was = of(promises_of(punctuations, SCHEMA), payloads)
    assert of(later, payloads) == [t if t in (INF, MIN) else t // 2 + 100 for t in was]


@given(sets, st.lists(st.tuples(rows, st.integers(0, 6)), max_size=5), st.lists(rows, max_size=5), st.data())
def test_held_back_by_every_row_that_may_agree(punctuations, state, payloads, data):
    columns = sorted(data.draw(st.sets(st.sampled_from(list(DOMAIN)), min_size=1)))
    keys = frame([key for key, _ in state], columns)
    back = promises_of(punctuations, SCHEMA).held_back(keys, np.array([t for _, t in state], dtype=np.int64))
    for found, row in zip(of(back, payloads), payloads, strict=True):
        holding = [t for key, t in state if all(str(key[n]) == str(row[n]) for n in columns)]
        assert found <= min([promised(punctuations, row), *holding])


@given(st.lists(punctuations([("n",)]), max_size=5), st.lists(st.tuples(rows, st.integers(0, 6)), max_size=5))
def test_promises_about_keys_are_held_back_for_exactly_the_keys_in_state(punctuations, state):
    keys = frame([key for key, _ in state], ("n",))
    back = promises_of(punctuations, SCHEMA).held_back(keys, np.array([t for _, t in state], dtype=np.int64))
    for n in DOMAIN["n"]:
        row = Row({**dict.fromkeys(DOMAIN), "n": n})
        holding = [t for key, t in state if key["n"] == n]
        assert of(back, [row]) == [min([promised(punctuations, row), *holding])]


# --- collecting ----------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(sets, ctis), max_size=5), st.lists(rows, max_size=4), st.data())
def test_the_index_contains_all_punctuations(arrivals, payloads, data):
    known, given_so_far, cti = PromiseIndex(), [], MIN
    for punctuations, _ in arrivals:
        known.add(promises_of(punctuations, SCHEMA))
        given_so_far += punctuations
        action = data.draw(st.sampled_from(["go on", "restart", "forget", "as one"]))
        if action == "restart":
            saved = through_bytes(known.snapshot())
            known = PromiseIndex()
            known.restore(saved)
        elif action == "forget":
            cti = max(cti, data.draw(ctis))
            known.forget(cti)
        elif action == "as one":
            assert of(known.all(), payloads) == of(known, payloads)
        found = [max(t, cti) for t in of(known, payloads)]
        assert found == [max(promised(given_so_far, row), cti) for row in payloads]
        assert bool(known) == (len(known) > 0)


def test_what_a_cti_implies_is_dropped_while_sets_are_merged():
    known = PromiseIndex()
    for t in range(100):
        known.add(promises_of([punctuation(t + 1, text=f"key {t}")], SCHEMA), cti=t)
    assert len(known) < 10


# --- small sets ----------------------------------------------------------------------------------------------------


def test_a_million_keys_in_a_row_are_one_range():
    known = PromiseIndex()
    for start in range(0, 1_000_000, 100_000):
        keys = pl.DataFrame({"n": np.random.default_rng(start).permutation(np.arange(start, start + 100_000))})
        known.add(point_promises(keys, np.full(100_000, INF)))
    assert list(known.all()) == [punctuation(n=Range(0, 999_999))]
    assert known.nbytes < 100


def test_days_and_times_in_a_row_are_one_range():
    days = [date(2020, 2, 27) + timedelta(days=d) for d in range(4)]
    assert list(promises_of([punctuation(day=d) for d in days], SCHEMA)) == [punctuation(day=Range(days[0], days[-1]))]


def test_the_same_key_again_and_again_is_one_entry():
    keys = pl.DataFrame({"n": np.full(100_000, 7), "text": ["a"] * 100_000})
    for columns in (["n"], ["text"], ["n", "text"]):
        assert len(point_promises(keys.select(columns), np.arange(100_000))) == 1


def test_ranges_inside_each_other_are_as_few_as_their_ends():
    nested = [punctuation(i, n=Range(i, 2_000 - i)) for i in range(1_000)]
    assert len(promises_of(nested, SCHEMA)) <= 2_000
    assert list(promises_of([*nested, punctuation(n=Range(0, 5_000))], SCHEMA)) == [punctuation(n=Range(0, 5_000))]


def test_a_promise_about_fewer_attributes_replaces_those_about_more():
    zones = [punctuation(text=zone, n=3) for zone in ("a", "b", "c")]
    hour = promises_of([punctuation(n=3)], SCHEMA)
    assert list(promises_of(zones, SCHEMA).plus(hour)) == [punctuation(n=3)]
    assert list(
        promises_of([punctuation(9, text="a", small=1)], SCHEMA).plus(promises_of([punctuation(9, text="a")], SCHEMA))
    ) == [punctuation(9, text="a")]
    later = promises_of([punctuation(9, n=3, text="a")], SCHEMA).plus(promises_of([punctuation(5, n=3)], SCHEMA))
    assert len(later) == 2


def test_ranges_of_texts_that_others_cover_are_dropped():
    punctuations = [
        punctuation(5, text=Range("a", "c")),
        punctuation(7, text=Range("a", "k")),
        punctuation(3, text=Range("b", None)),
    ]
    assert set(promises_of(punctuations, SCHEMA)) == set(punctuations[1:])


def test_a_long_list_of_texts_is_looked_up_like_any_keys():
    keys = [f"key {i}" for i in range(20_000)]
    promises = promises_of([punctuation(text=keys)], SCHEMA)
    assert len(promises) == 20_000
    assert not promises.others


def test_a_large_table_is_looked_up_by_an_index_like_any_other():
    keys = pl.DataFrame({"text": [f"key {i}" for i in range(15_000)] + [None], "n": [*range(15_000), None]})
    before = np.arange(15_001)
    promises = point_promises(keys, before)
    asked = pl.DataFrame({"text": ["key 7", "key 14999", "key 7", None, "key 7"], "n": [7, 14_999, 8, None, None]})
    wanted = [7, 14_999, MIN, 15_000, MIN]
    for part in (promises, promises, pickle.loads(pickle.dumps(promises))):  # the second time the index is there
        assert part.of(asked).tolist() == wanted
    halves = asked.with_columns(pl.Series("n", [7.0, 14_999.5, 8.0, None, None]))
    assert promises.of(halves).tolist() == [7, MIN, MIN, 15_000, MIN]
    numbers = point_promises(pl.DataFrame({"x": np.append(np.arange(15_000) / 2, np.nan)}), np.arange(15_001))
    assert numbers.of(pl.DataFrame({"x": [0.5, 0.25, np.nan, -0.0]})).tolist() == [1, MIN, 15_000, 0]


# --- types ---------------------------------------------------------------------------------------------------------


def test_numbers_that_a_column_cannot_hold_promise_nothing():
    assert not len(promises_of([punctuation(n=1.5), punctuation(n=2, small=1.5), punctuation(x=10**400)], SCHEMA))
    promises = promises_of([punctuation(small=300), punctuation(3, n=Range(0.5, 2.5))], SCHEMA)
    assert promises.of(pl.DataFrame({"n": [0, 1, 2, 3]})).tolist() == [MIN, 3, 3, MIN]
    assert promises.of(pl.DataFrame({"small": [44, -128, 127]}, {"small": pl.Int8})).tolist() == [MIN] * 3


@pytest.mark.parametrize(
    ("promise", "text"),
    [
        (punctuation(n="a"), "n='a', but n is Int64"),
        (punctuation(text=1), "text=1, but text is String"),
        (punctuation(text=Range(1, 2)), "text=1, but text is String"),
        (punctuation(n=1, text=Range(1, 2)), "text=1, but text is String"),
        (punctuation(day=5), "day=5, but day is Date"),
        (punctuation(day=Range(None, datetime(2020, 1, 1))), "but day is Date"),
        (punctuation(n=Range("a", "b")), "n='a', but n is Int64"),
        (punctuation(n=date(2020, 1, 1)), "but n is Int64"),
    ],
)
def test_a_value_of_another_type_is_refused(promise, text):
    with pytest.raises(PayloadError, match=text):
        promises_of([promise], SCHEMA)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pl.Datetime("ms"), [datetime(2020, 1, 1, 0, 0, s) for s in range(3)]),
        (pl.Datetime("us", "UTC"), [datetime(2020, 1, 1, 0, 0, s, tzinfo=UTC) for s in range(3)]),
        (pl.Duration("ns"), [timedelta(seconds=s) for s in range(3)]),
        (pl.Time, [time(second=s) for s in range(3)]),
        (pl.UInt64, [0, 5, 2**64 - 1]),
        (pl.List(pl.Int64), [(1,), (1, 2), ()]),
        (pl.Struct({"a": pl.Int64}), [Row(a=1), Row(a=2), Row(a=None)]),
        (pl.Categorical, ["a", "b", "c"]),
        (pl.Binary, [b"a", b"b", b""]),
    ],
)
def test_any_type_can_be_promised_about(kind, values):
    rows = pl.DataFrame({"k": pl.Series([dict(v) if isinstance(v, Row) else v for v in values], dtype=kind)})
    one = promises_of([Punctuation({"k": Constant(values[1])}, 5)], {"k": kind})
    assert one.of(rows).tolist() == [MIN, 5, MIN]
    assert [p.before for p in one if p.about(Row(k=values[1]))] == [5]
    assert one.held_back(rows, np.array([1, 2, 3])).of(rows).tolist() == [MIN, 2, MIN]


def test_an_instant_between_two_that_a_column_can_hold_bounds_a_range():
    kind = pl.Datetime("ms")
    fine = Range(datetime(2020, 1, 1, 0, 0, 0, 500), datetime(2020, 1, 1, 0, 0, 0, 2500))
    rows = pl.DataFrame({"k": pl.Series([datetime(2020, 1, 1, 0, 0, 0, 1000 * ms) for ms in range(4)], dtype=kind)})
    promises = promises_of([Punctuation({"k": fine}, 5)], {"k": kind})
    assert promises.of(rows).tolist() == [MIN, 5, 5, MIN]


def test_rows_of_another_type_are_compared_by_value():
    promises = promises_of([punctuation(5, n=Range(1, 2)), punctuation(7, n=3, text="a")], SCHEMA)
    for kind in (pl.Int8, pl.UInt64, pl.Float64, pl.Int128):
        rows = pl.DataFrame({"n": [0, 1, 2, 3], "text": ["a"] * 4}, {"n": kind, "text": pl.String})
        assert promises.of(rows).tolist() == [MIN, 5, 5, 7]
    halves = pl.DataFrame({"n": [1.0, 1.5, 3.5, None], "text": ["a"] * 4})
    assert promises.of(halves).tolist() == [5, MIN, MIN, MIN]
    wide = pl.DataFrame({"n": [2**64 - 1, 2]}, {"n": pl.UInt64})
    assert promises.of(wide).tolist() == [MIN, 5]


def test_nothing_promised_is_nothing_for_everybody():
    assert of(NONE, []) == []
    assert not NONE.schemes
    assert list(NONE.combined(3, NONE, 5)) == []
