"""The times of a table's rows in chronons, and why some rows cannot be used.

A time outside the range of times, or a duration that is negative or leads past the last time, must neither wrap around
nor become infinite: the row is late, with a message about the value.
"""

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from cedr.columnar.chunk import FILE
from cedr.operators.late import naming_files
from cedr.plan.nodes.source import Source
from cedr.sources.event_time import how_to_read, named, shown_type, time_settings, time_values
from cedr.sources.user_times import TimeType, chronons_within, counted_chronons, limits
from cedr.temporal.errors import TimeError
from cedr.temporal.formats import parsed
from cedr.temporal.time import INF, MIN

NO_END = "it has no end, but its source is declared with ends=True"
NO_LIFETIME = "its times are not a lifetime: an insert needs vs < ve, an adjust vs < ve, vs <= ve_new and ve_new != ve"


@dataclass
class RowTimes:
    """`kind` is how starts are shown. `end` is that of the lifetime before any change; `ctis` are MIN without progress.
    Where `wrong` has a text, the row cannot be used, and its times are meaningless."""

    vs: pl.Series
    end: pl.Series
    ve_new: pl.Series | None
    ctis: pl.Series
    kind: TimeType
    wrong: pl.Series | None = None
    files: pl.Series | None = None
    """The files of the rows, if they are from files."""

    def messages(self, rows: pl.Series) -> str | pl.Series:
        """Why these rows cannot be used."""
        if self.wrong is None and self.files is None:
            return NO_LIFETIME
        wrong = self.wrong if self.wrong is not None else pl.repeat(None, len(rows), dtype=pl.String, eager=True)
        texts = wrong.filter(rows).fill_null(NO_LIFETIME)
        return texts if self.files is None else naming_files(texts, self.files.filter(rows))

    def numbered_files(self) -> tuple[tuple[str, ...], pl.Series]:
        """The files in order, and the index of each row's file, if there are several."""
        if self.files is None or not len(self.files):
            return (), pl.Series([], dtype=pl.Int32)
        if (self.files.to_physical() == self.files.to_physical()[0]).all():
            return (self.files[0],), pl.Series([], dtype=pl.Int32)
        numbers = self.files.rle_id().cast(pl.Int32)
        return tuple(self.files.filter(numbers != numbers.shift(fill_value=-1))), numbers


def row_times(frame: pl.DataFrame, source: Source) -> RowTimes:
    found = ReadTimes(frame, source)
    vs = found.times("vs")
    end = found.times("ve").fill_null(INF) if source.ve else found.lengthened(vs)
    ve_new = found.times("ve_new") if source.ve_new else None
    if source.ends:
        found.check_ends(vs, end, ve_new)
    ctis = found.times("cti").fill_null(MIN) if source.cti else pl.Series(np.full(frame.height, MIN))
    return RowTimes(vs, end, ve_new, ctis, found.kind, found.wrong(), frame.get_column(FILE, default=None))


@dataclass
class ReadTimes:
    """The times read from a table so far."""

    frame: pl.DataFrame
    source: Source
    problems: list[pl.Series] = field(default_factory=list)
    """A text where a row has a problem, null elsewhere."""
    kind: TimeType = field(default_factory=pl.Int64)

    def wrong(self) -> pl.Series | None:
        """The first problem of each row."""
        if not self.problems:
            return None
        return pl.DataFrame(self.problems).select(pl.coalesce(pl.all()).alias("wrong"))["wrong"]

    def times(self, setting: str) -> pl.Series:
        source = self.source
        values = time_values(source, setting, time_settings(source)[setting], self.frame)
        if setting == "vs":
            self.kind = shown_type(source, values.dtype)
        if values.dtype in (pl.String, pl.Categorical, pl.Enum):
            values = self.parsed(values, setting)
        what = f"source {source.name!r}"
        if values.dtype.is_integer() and source.unit:
            found, outside = counted_chronons(values, source.unit)
        else:
            found, outside = chronons_within(values, what)
        if outside is not None:
            after = f"{counted(values.dtype)}, which is outside the range of times"
            self.note(outside, f"{setting} is ", values.to_physical(), after)
        return found

    def parsed(self, texts: pl.Series, setting: str) -> pl.Series:
        """Parses texts with the format of the source."""
        source = self.source
        if source.format is None or setting == "duration":
            sample = next((text for text in texts.head(1000) if text), "")
            raise TimeError(f"{named(source, setting)} is text, such as {sample!r}; {how_to_read(setting)}")
        found = parsed(texts, source.format)
        if (unread := found.is_null() & texts.is_not_null()).any():
            self.note(unread, f"{setting} is '", texts, f"', which does not fit format={source.format!r}")
        return found

    def note(self, which: pl.Series, before: str, values: pl.Series, after: str) -> None:
        """Record a problem of some rows; its message contains the value."""
        about = pl.DataFrame({"which": which.fill_null(False), "value": values.cast(pl.String)})
        text = pl.when("which").then(pl.concat_str(pl.lit(before), "value", pl.lit(after)))
        self.problems.append(about.select(text.alias(str(len(self.problems))))[:, 0])

    def check_ends(self, vs: pl.Series, end: pl.Series, ve_new: pl.Series | None) -> None:
        """Reports rows without an end if the source declares that all have one; rows that only report progress may."""
        endless = (end == INF) & vs.is_not_null()
        if ve_new is not None:
            endless = endless | (ve_new == INF)
        endless = endless.fill_null(False)
        if self.source.punctuation:
            endless = endless & ~self.frame[self.source.punctuation].fill_null(False)
        if endless.any():
            self.note(endless, NO_END, pl.repeat("", len(vs), eager=True), "")

    def lengthened(self, vs: pl.Series) -> pl.Series:
        """The end from the duration. A missing duration is infinite."""
        column = self.source.duration
        if column == INF:
            return pl.Series(np.full(len(vs), INF))
        if isinstance(column, int) and column >= 0 and (limits(vs) or (0, 0))[1] < INF - column:
            return vs + column
        length = self.times("duration") if isinstance(column, str) else pl.repeat(column, len(vs), eager=True)
        if (negative := length < 0).any():
            self.note(negative, "its duration is ", length, "; a lifetime cannot have a negative length")
        lengths = pl.DataFrame({"vs": vs, "length": length.fill_null(INF)})
        room, past = (pl.col(c).clip(0, None) for c in ("length", "vs"))  # so that no difference can wrap around
        late = ((pl.col("length") < INF) & (past >= INF - room)).fill_null(False)
        early = ((pl.col("length") < 0) & (pl.col("vs") < MIN - pl.col("length").clip(None, 0))).fill_null(False)
        kept = pl.when(pl.col("length") == INF).then(INF).when(~late & ~early).then(pl.col("vs") + pl.col("length"))
        ends = lengths.select(kept.alias("end"), late.alias("late"))
        if ends["late"].any():
            self.note(ends["late"], "its duration is ", length, "; the lifetime would end past the last time")
        return ends["end"]


def counted(kind: pl.DataType) -> str:
    """The unit of the number behind a value."""
    if isinstance(kind, pl.Date):
        return " days from 1970"
    return f" {kind.time_unit} from 1970" if isinstance(kind, pl.Datetime) else ""


def unread_time(frame: pl.DataFrame, source: Source) -> str | None:
    """The problem of the first time that does not fit the source's format."""
    found = ReadTimes(frame, source)
    for setting, text in time_settings(source).items():
        values = time_values(source, setting, text, frame)
        if source.format is not None and values.dtype == pl.String and setting != "duration":
            found.parsed(values, setting)
    wrong = found.wrong()
    return None if wrong is None else str(wrong.drop_nulls()[0])
