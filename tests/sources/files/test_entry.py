"""Splits: everything once, in order, about equal, and enough of them."""

from hypothesis import given
from hypothesis import strategies as st

from cedr.sources.files.entry import BatchFiles, FilePart, InputFile, cut, runs
from cedr.sources.files.listing import Stamp

FILES = st.lists(
    st.builds(
        InputFile,
        st.text(min_size=1),
        st.builds(Stamp, st.integers(0, 1000), st.integers(0, 2**62)),
        st.none() | st.lists(st.integers(0, 100), max_size=4).map(tuple),
        st.none() | st.text(),
    ),
    max_size=8,
)


@given(st.lists(st.integers(0, 100)), st.integers(1, 8))
def test_runs_cover_everything_and_none_is_empty(weights: list[int], wanted: int) -> None:
    found = list(runs(weights, wanted))
    assert [i for start, end in found for i in range(start, end)] == list(range(len(weights)))
    assert len(found) == min(wanted, len(weights))
    assert all(start < end for start, end in found)


@given(st.lists(st.integers(1, 100), min_size=1), st.integers(1, 8))
def test_no_run_is_more_than_one_piece_above_its_share(weights: list[int], wanted: int) -> None:
    share = sum(weights) / min(wanted, len(weights))
    assert all(sum(weights[start:end]) <= share + max(weights) for start, end in runs(weights, wanted))


@given(FILES, st.integers(1, 5), st.booleans())
def test_splits_hold_every_row_group_once_and_in_order(
    files: list[InputFile], parallelism: int, by_group: bool
) -> None:
    splits = cut(files, parallelism, by_group)
    parts = [part for split in splits for part in split]
    groups = [(part.file, group) for part in parts for group in range(part.first, part.end)]
    assert groups == [(n, group) for n, file in enumerate(files) for group in range(len(file.rows or ()))]
    assert list(dict.fromkeys(part.file for part in parts)) == list(range(len(files)))
    if not by_group:
        assert [part.file for part in parts] == list(range(len(files)))


def test_row_groups_are_shared_out_evenly() -> None:
    file = InputFile("a", Stamp(1, 1), (125, 125, 125, 125))
    assert cut([file], 2, by_row_group=True) == ((FilePart(0, 0, 2),), (FilePart(0, 2, 4),))
    assert cut([file, file], 3, by_row_group=True) == (
        (FilePart(0, 0, 3),),
        (FilePart(0, 3, 4), FilePart(1, 0, 2)),
        (FilePart(1, 2, 4),),
    )
    assert cut([file, file], 3, by_row_group=False) == ((FilePart(0, 0, 4),), (FilePart(1, 0, 4),))


@given(FILES, st.none() | st.just("timestamp UTC"))
def test_an_entry_survives_being_written(files: list[InputFile], clock: str | None) -> None:
    entry = BatchFiles(tuple(files), cut(files, 3, by_row_group=True), clock)
    assert BatchFiles.from_json(entry.to_json()) == entry
