"""The prompt as its users meet it: typed at a terminal, from a file, through a pipe."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

from cedr.cli.prompt import example, loop
from cedr.cli.prompt.loading import load
from cedr.cli.prompt.screen import PromptScreen
from cedr.temporal.errors import QueryError

COMMAND = [sys.executable, "-m", "cedr", "prompt"]
PATIENCE = 600
UP, INTERRUPT, END = "\x10", "\x03", "\x04"
"""What the terminal sends for the previous entry (Ctrl-P), Ctrl-C and Ctrl-D."""


class Terminal:
    """A prompt in a terminal of its own."""

    def __init__(self, home: Path) -> None:
        self.screen, inside = pty.openpty()
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 150, 0, 0))
        environment = {**os.environ, "XDG_STATE_HOME": str(home), "TERM": "dumb"}
        # not by a function between fork and exec: threads of Spark's tests may hold locks that the child would wait for
        command = ["setsid", "--ctty", *COMMAND]
        self.process = subprocess.Popen(command, stdin=inside, stdout=inside, stderr=inside, env=environment)
        os.close(inside)
        self.expect("cedr> ")

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.screen)

    def type(self, text: str) -> None:
        os.write(self.screen, text.encode())

    def expect(self, ending: str) -> str:
        """What appears, up to this; carriage returns and bells left out."""
        seen, deadline = "", time.monotonic() + PATIENCE
        while not seen.endswith(ending):
            ready, _, _ = select.select([self.screen], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"waited for {ending!r}, saw {seen!r}"
            seen += os.read(self.screen, 1).decode(errors="replace").replace("\r", "").replace("\a", "")
        return seen

    def answer(self, *lines: str) -> str:
        """Type lines, and return the output until the prompt comes back."""
        for line in lines[:-1]:
            self.type(f"{line}\n")
            self.expect(" ...> ")
        self.type(f"{lines[-1]}\n")
        return self.expect("\ncedr> ")

    def exit_code(self) -> int:
        return self.process.wait(PATIENCE)


def piped(text: str, *arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], input=text, capture_output=True, text=True, cwd=folder)


def test_a_conversation(tmp_path):
    """Statements of several lines, a mistake that ends only itself, and a statement that uses an earlier one."""
    with Terminal(tmp_path) as terminal:
        assert "machines: 17 rows" in terminal.answer("\\demo")

        output = terminal.answer(*example.QUERY.splitlines())
        assert re.findall(r"(\d\d:\d\d):00 +(\w+-\d) +(\d+)", output) == [
            ("09:45", "db-1", "17"),
            ("10:05", "app-1", "7"),
            ("10:20", "app-2", "7"),
        ]
        assert "NotRestarted: 3 rows" in output

        output = terminal.answer("EVENT Wrong", "  WHEN SEQUENCE(INSTAL x, SHUTDOWN y, 1 hour);")
        assert output.endswith(
            "error: line 2, column 17: there is no event type 'INSTAL'; did you mean 'INSTALL'? (column 'kind' has: "
            "INSTALL, SHUTDOWN, RESTART)\n"
            "  WHEN SEQUENCE(INSTAL x, SHUTDOWN y, 1 hour);\n"
            "                ^^^^^^\ncedr> "
        )

        output = terminal.answer("EVENT Apps SELECT machine FROM NotRestarted WHERE machine LIKE 'app%'", "")
        assert re.findall(r"(\w+-\d) *$", output, re.M) == ["app-1", "app-2"]
        assert "Apps: 2 rows" in output

        terminal.type("\\quit\n")
        assert terminal.exit_code() == 0


def test_the_history_outlives_the_session_with_a_statement_as_one_entry(tmp_path):
    with Terminal(tmp_path) as terminal:
        terminal.answer("\\demo")
        terminal.answer("EVENT Installed", "WHEN INSTALL x;")
        terminal.type(END)
        assert terminal.exit_code() == 0
    with Terminal(tmp_path) as terminal:
        terminal.answer("\\demo")
        terminal.type(UP + UP)
        output = terminal.answer("")
        assert "EVENT Installed WHEN INSTALL x;" in output
        assert "Installed: 6 rows" in output
    assert (tmp_path / "cedr" / "history").read_text() == "\\demo\nEVENT Installed WHEN INSTALL x;\n"


def test_tab_completes_keywords_types_and_attributes_and_an_interrupt_drops_the_input(tmp_path):
    with Terminal(tmp_path) as terminal:
        terminal.answer("\\dem\t")
        terminal.type("EVENT Gone WHEN\n")
        terminal.expect(" ...> ")
        terminal.type(INTERRUPT)
        terminal.expect("cedr> ")
        output = terminal.answer("EVENT Busy WHEN SEQ\t(INST\t x, SHUT\t y, 12 hours) WHERE {x.mach\t = y.mach\t};")
        assert "Busy: 7 rows" in output


def test_statements_through_a_pipe_show_what_was_taken_back():
    done = piped(f"\\demo\n\\changes on\n{example.QUERY.rstrip().rstrip(';')} LATENCY perfect;")
    assert done.returncode == 0
    assert done.stderr == ""
    assert re.findall(r"^ (insert|remove|adjust) .* (\S+-\d) ", done.stdout, re.M) == [
        ("insert", "web-2"),
        ("remove", "web-2"),
        ("insert", "db-1"),
        ("insert", "app-1"),
        ("insert", "app-2"),
    ]


def test_a_file_is_run_up_to_its_first_mistake_which_is_shown_by_its_line_in_the_file(tmp_path):
    (tmp_path / "reports.csv").write_text("ts,kind,machine\n2024-03-01 10:00:00,UP,a\n2024-03-01 10:00:01,DOWN,a\n")
    (tmp_path / "q.cedr").write_text(
        "-- one; two\n\\load reports reports.csv\n\nEVENT Down\n\nWHEN SEQUENCE(UP x, DOWN y, 1 minute);\n"
        "\\rows 5\nEVENT More WHEN\n"
    )
    done = piped("", "q.cedr", folder=tmp_path)
    assert done.returncode == 2
    assert "reports: 2 rows" in done.stdout
    assert "Down: 1 row\n" in done.stdout
    assert done.stderr.startswith("error: line 8, column 16: ")
    assert done.stderr.endswith("  EVENT More WHEN\n                 ^\n")
    assert (
        piped("", "none.cedr", folder=tmp_path).stderr == "error: none.cedr cannot be read: No such file or directory\n"
    )


# --- inside --------------------------------------------------------------------------------------------------------


@pytest.fixture
def prompt():
    return loop.Prompt(PromptScreen())


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "jsonl"])
def test_a_file_is_loaded_and_its_guesses_are_printed(suffix, tmp_path):
    path = tmp_path / f"reports.{suffix}"
    text = "time,until,kind,load\n2024-03-01 10:00:00,2024-03-01 10:05:00,UP,1\n2024-03-01 10:01:00,,DOWN,2\n"
    frame = pl.read_csv(text.encode(), try_parse_dates=True)
    match suffix:
        case "csv":
            path.write_text(text)
        case "tsv":
            path.write_text(text.replace(",", "\t"))
        case "parquet":
            frame.write_parquet(path)
        case "jsonl":
            lines = ('{"time":"2024-03-01T10:00:00","until":"2024-03-01T10:05:00","kind":"UP","load":1}',)
            path.write_text("\n".join((*lines, lines[0].replace("10:00", "10:01").replace("UP", "DOWN"))))
    loaded = load("reports", path, {})
    assert loaded.about.startswith("reports: 2 rows, in the order of arrival; ")
    assert "; vs=time (guessed), ve=until (guessed), types=kind (guessed)\n" in loaded.about
    assert "event types: UP (1), DOWN (1)" in loaded.about
    assert loaded.stream.columns == ["kind", "load"]
    assert loaded.rows.schema["time"] == pl.Datetime("us")


def test_given_settings_are_not_guessed(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("ts,at,end,length\n1,2,3,4\n")
    loaded = load("a", path, {"vs": "at", "duration": "length"})
    assert "; vs=at, duration=length" in loaded.about
    assert loaded.stream.columns == ["ts", "end"]


@pytest.mark.parametrize("given", [["vs"], []])
@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
def test_times_in_a_format(suffix, given, tmp_path):
    """The second of January: polars alone would read the first of February. Other columns are read as without."""
    path, table = (
        tmp_path / f"a.{suffix}",
        pl.DataFrame({"time": ["01/02/2024 05:03"], "day": ["2024-03-04"], "v": [7]}),
    )
    match suffix:
        case "csv":
            table.write_csv(path)
        case "tsv":
            table.write_csv(path, separator="\t")
        case "jsonl":
            table.write_ndjson(path)
        case "parquet":
            table.with_columns(pl.col("day").str.to_date()).write_parquet(path)
    settings = dict.fromkeys(given, "time")
    loaded = load("a", path, {**settings, "format": "%m/%d/%Y %H:%M"})
    assert "format=%m/%d/%Y %H:%M" in loaded.about
    assert loaded.stream.run(loaded.rows).table()["vs"].to_list() == [datetime(2024, 1, 2, 5, 3)]
    assert loaded.stream.schema["day"].is_temporal()
    assert loaded.stream.schema["v"] == pl.Int64


def test_a_format_is_for_numbers_in_csv_too(tmp_path):
    (tmp_path / "a.csv").write_text("day,until,v\n20240102,20240103,1\n20240104,x,2\n")
    loaded = load("a", tmp_path / "a.csv", {"vs": "day", "ve": "until", "format": "%Y%m%d"})
    result = loaded.stream.run(loaded.rows)
    assert result.table().rows() == [(datetime(2024, 1, 2), datetime(2024, 1, 3), 1)]
    assert "ve is 'x', which does not fit format='%Y%m%d'" in result.late()["message"][0]


def test_a_unit_makes_lengths_right(prompt, tmp_path, capsys):
    """A payload column may be called like the unit."""
    path, lengths = tmp_path / "a.csv", "EVENT P WHEN SEQUENCE(a x, a y, {}) WHERE {{y.Vs - x.Vs < {}}} OUTPUT x.ms;"
    path.write_text("ts,ms\n1000,1\n2000,2\n9000,3\n")
    prompt.handle(f"\\load a {path}")
    for question in (lengths.format("5 seconds", "5"), lengths.format("5", "5 seconds")):
        with pytest.raises(QueryError, match="whole numbers without a unit, but the query has the length '5 s"):
            prompt.handle(question)
    prompt.handle(f"\\load a {path} unit=ms")
    capsys.readouterr()
    prompt.handle(lengths.format("5 seconds", "5 seconds"))
    assert "P: 1 row\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("\\load a none.csv", "\\load: there is no file none.csv"),
        ("\\load a a.txt", "\\load: a.txt has an unsupported format; supported: .csv, .tsv, .parquet, .jsonl"),
        ("\\load a.csv", "\\load takes a name and a file"),
        ("\\load a a.csv", "\\load: no column looks like the time of an event (columns: who, when)"),
        ("\\load a a.csv vs=wen", "\\load vs=wen: no column 'wen'; did you mean 'when'? (columns: who, when)"),
        ("\\load a a.csv vs=when", "\\load vs=when: the column contains String, such as 'noon'; times are timestamps"),
        ("\\load a a.csv since=when", "\\load: there is no setting 'since'; the settings are vs, ve"),
        (
            "\\load a a.csv vs=when unit=ms",
            "\\load vs=when: the column contains String, such as 'noon'; unit=ms is for",
        ),
        ("\\load a n.csv vs=t unit=h", "source('a'): unit='h' is not one of 's', 'ms', 'us', 'ns'"),
        (
            "\\load a n.csv vs=t unit=s format=%Y",
            "source('a'): give unit='s' for whole numbers or format='%Y' for text",
        ),
        ("\\load a n.csv vs=t format=YYYY", "source('a'): format='YYYY' names no part of a time"),
        (
            "\\load a n.json vs=t format=%Y-%m-%d",
            "\\load vs=t: the column contains Int64, such as 1; format='%Y-%m-%d' is for",
        ),
        ("\\load a a.parquet", "\\load: a.parquet cannot be read: "),
        ("\\load 'a", "\\load 'a: the closing quotation mark is missing"),
        ("\\lode", "there is no command \\lode; did you mean 'load'? (commands: demo, load"),
        ("\\changes maybe", "\\changes takes on or off, not maybe"),
        ("\\rows 0", "\\rows takes a number, such as \\rows 100"),
        ("\\explain", "\\explain: there is no statement yet"),
        ("\\explain Nothing", "there is no statement or stream 'Nothing' (available: none yet)"),
        ("\\demo now", "\\demo takes no arguments, not now"),
    ],
)
def test_an_invalid_command_reports_why(line, problem, prompt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("who,when\nme,noon\n")
    Path("a.parquet").write_text("no parquet")
    Path("n.csv").write_text("t\n1\n")
    Path("n.json").write_text('{"t": 1}\n')
    with pytest.raises(QueryError) as error:
        prompt.handle(line)
    assert str(error.value).startswith(problem)


def test_rows_that_cannot_be_used_are_shown(prompt, tmp_path, capsys):
    path = tmp_path / "a.csv"
    path.write_text("ts,cti,who\n10,,early\n20,20,mid\n5,,too_late\n")
    prompt.handle(f"\\load a {path}")
    prompt.handle("EVENT All SELECT who FROM a")
    output = capsys.readouterr().out
    assert "All: 2 rows" in output
    assert "All, late rows that are not in the answer: 1 row\n" in output
    assert "too_late" in output


def test_a_long_answer_is_cut_with_a_note(prompt, tmp_path, capsys):
    path = tmp_path / "a.parquet"
    pl.DataFrame({"ts": range(100), "n": range(1000, 1100)}).write_parquet(path)
    prompt.handle(f"\\load a {path}")
    prompt.handle("EVENT All SELECT n FROM a;")
    output = capsys.readouterr().out
    assert "All: 100 rows; showing the first 20, \\rows N shows more" in output
    assert "1019" in output
    assert "1020" not in output
    prompt.handle("\\rows 100")
    prompt.handle("EVENT Again SELECT n FROM All;")
    output = capsys.readouterr().out
    assert output.endswith("Again: 100 rows\n")
    assert "1099" in output


def test_a_statement_can_be_made_again_and_is_forgotten_with_its_stream(prompt, capsys):
    prompt.handle("\\demo")
    prompt.handle("EVENT A WHEN INSTALL x;")
    prompt.handle("EVENT A WHEN RESTART x; EVENT B SELECT machine FROM A;")
    output = capsys.readouterr().out
    assert re.findall(r"^[AB]: .*", output, re.M) == ["A: 6 rows", "A: 3 rows", "B: 3 rows"]
    prompt.handle("\\streams")
    assert "A: a statement; machine, build\nB: a statement; machine\n" in capsys.readouterr().out
    prompt.handle("\\explain")
    assert "Plan as written" in capsys.readouterr().out
    prompt.handle("\\demo")
    assert "removed, because they used the previous machines: A, B" in capsys.readouterr().out
    with pytest.raises(QueryError, match="there is no event type 'A'"):
        prompt.handle("EVENT C WHEN A x;")


def test_loops_and_regular_expressions_can_be_made_again(prompt, capsys):
    prompt.handle("\\demo")
    loop = (
        "EVENT Built RECURSIVE SELECT build FROM INSTALL UNION SELECT build - 1 AS build FROM Built WHERE build > 38;"
    )
    for statement in (loop, "EVENT Down WHEN REGEX(INSTALL SHUTDOWN, 12 hours) OVER machines BY machine;") * 2:
        prompt.handle(statement)
    output = capsys.readouterr().out
    assert re.findall(r"^(?:Built|Down): .*", output, re.M) == ["Built: 16 rows", "Down: 6 rows"] * 2


def test_help_names_every_command(prompt, capsys):
    prompt.handle("\\help")
    shown = re.findall(r"^  \\(\w+)", capsys.readouterr().out, re.M)
    assert shown == ["demo", "load", "streams", "explain", "changes", "rows", "help", "quit"]


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", True),
        ("EVENT a", False),
        ("EVENT a;", True),
        ("EVENT a; -- so", True),
        ("EVENT a -- so;", False),
        ("EVENT a WHERE b = ';", False),
        ("EVENT a WHERE b = ';';", True),
        ("/* a;", False),
        ("\\streams", True),
        ("\\streams\nEVENT a", False),
    ],
)
def test_a_statement_is_complete_with_a_semicolon_that_is_one(text, complete):
    assert loop.is_complete(text) == complete
