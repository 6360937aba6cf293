"""The benchmark frame: what holds a bar, what is written, and that every benchmark runs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from harness import BenchmarkReport, Figure, alternate, median, spread


@pytest.mark.parametrize(
    ("value", "bar", "at_most", "ok"),
    [
        (3.0, 3.0, False, True),
        (2.9, 3.0, False, False),
        (1.2, 1.2, True, True),
        (1.3, 1.2, True, False),
        (1, None, 0, 1),
    ],
)
def test_a_bar_is_reached_or_not_exceeded(value, bar, at_most, ok):
    assert Figure("f", value, "x", bar=bar, at_most=at_most).ok == ok


def test_a_report_is_ok_only_if_every_bar_holds_as_its_json_shows(tmp_path):
    report = BenchmarkReport("t", console=Console(quiet=True))
    report.add("fast", 5, "M/s", bar=3)
    assert report.ok
    report.add("slow", 1, "M/s", bar=3)
    assert not report.ok
    report.write_json(tmp_path / "r.json")
    rows = json.loads((tmp_path / "r.json").read_text())
    assert [{k: row[k] for k in ("name", "value", "unit", "bar", "ok")} for row in rows] == [
        {"name": "fast", "value": 5, "unit": "M/s", "bar": 3, "ok": True},
        {"name": "slow", "value": 1, "unit": "M/s", "bar": 3, "ok": False},
    ]


def test_a_value_of_the_table_is_the_same_in_its_plot(tmp_path):
    report = BenchmarkReport("t", console=Console(quiet=True))
    speed = report.plot("speed", "Speed", "inputs", "M/s")
    report.add("R3, 2 inputs", 5, "M/s", bar=3, spread=0.1, at=speed.at("R3", 2))
    report.add("R3, 4 inputs", 4, "M/s", at=speed.at("R3", 4))
    report.plot("empty", "Without points", "x", "y")
    assert speed.series == {"R3": [(2, 5, 0.1), (4, 4, 0.0)]}
    assert speed.bars == {"R3": (3, False)}
    report.draw(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["speed.png"]


def test_a_folder_for_plots_that_cannot_be_made_is_refused_before_anything_is_measured(tmp_path):
    (tmp_path / "file").touch()
    command = [sys.executable, "-m", "cedr", "bench", "lmerge", "--quick", "--plots", str(tmp_path / "file")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--plots: cannot create the folder" in done.stderr
    assert "Traceback" not in done.stderr


def test_contestants_take_turns_and_the_first_round_does_not_count():
    calls = []
    seconds = alternate({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, rounds=2)
    assert calls == ["a", "b"] * 3
    assert {name: len(taken) for name, taken in seconds.items()} == {"a": 2, "b": 2}


def test_median_and_spread():
    assert median([1.0, 9.0, 2.0]) == 2.0
    assert spread([1.0, 2.0, 3.0]) == 0.5


def test_an_unknown_benchmark_is_refused_with_the_ones_there_are():
    done = subprocess.run([sys.executable, "-m", "cedr", "bench", "nothing"], capture_output=True, text=True)
    assert done.returncode == 2
    assert (
        "no benchmark 'nothing'; available: automata, cluster, consistency, crash, differential, engine, ffp, lmerge, "
        "patterns, peers, punctuation, soak, spark, state" in done.stderr
    )


def test_the_consistency_benchmark_runs_and_its_orderings_hold(tmp_path):
    command = [sys.executable, "-m", "cedr", "bench", "consistency", "--quick", "--json", str(tmp_path / "c.json")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(row["ok"] for row in json.loads((tmp_path / "c.json").read_text()))


def test_the_pattern_benchmark_finds_what_the_matchers_by_hand_find(tmp_path):
    command = [sys.executable, "-m", "cedr", "bench", "patterns", "--quick", "--json", str(tmp_path / "p.json")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads((tmp_path / "p.json").read_text())
    agreed = [row for row in rows if row["name"].endswith("answers agree")]
    assert len(agreed) == 8
    assert all(row["value"] == 1 for row in agreed)


def test_the_automata_benchmark_finds_what_is_found_by_hand(tmp_path):
    command = [sys.executable, "-m", "cedr", "bench", "automata", "--quick", "--json", str(tmp_path / "a.json")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads((tmp_path / "a.json").read_text())
    assert [row["value"] for row in rows if row["name"].endswith("answers agree")] == [1] * 5


def test_the_loop_benchmark_shows_that_hybrid_rests_and_draws_the_figures_of_both_loops(tmp_path):
    command = [sys.executable, "-m", "cedr", "bench", "ffp", "--quick", "--json", str(tmp_path / "f.json")]
    done = subprocess.run([*command, "--plots", str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads((tmp_path / "f.json").read_text())
    assert [row["value"] for row in rows if row["name"].endswith("at rest")] == [0] * 8
    assert [row["value"] for row in rows if row["name"].endswith("in shards: answers agree")] == [1] * 2
    drawn = {path.stem for path in (tmp_path / "ffp").glob("*.png")}
    assert drawn == {f"{loop}_figure_{n}" for loop in ("w", "reachability") for n in range(6, 12)}


def test_the_merge_benchmark_gives_the_answer_by_every_algorithm_and_draws_its_figures(tmp_path):
    command = [sys.executable, "-m", "cedr", "bench", "lmerge", "--quick", "--json", str(tmp_path / "m.json")]
    done = subprocess.run([*command, "--plots", str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads((tmp_path / "m.json").read_text())
    assert [row["value"] for row in rows if row["name"].endswith("answers agree")] == [1] * 9
    drawn = {path.stem.split("_")[1] for path in (tmp_path / "lmerge").glob("figure_*.png")}
    assert drawn == {*"23456789", "10"}


def test_the_punctuation_benchmark_shows_flat_state_and_the_same_answers(tmp_path):
    command = [sys.executable, "-m", "cedr", "bench", "punctuation", "--quick", "--json", str(tmp_path / "p.json")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads((tmp_path / "p.json").read_text())
    assert [row["value"] for row in rows if row["name"].endswith("answers agree")] == [1] * 8
    assert all(row["value"] <= 1.2 for row in rows if row["name"].endswith("last quarter over first"))


def test_the_peers_benchmark_asks_all_questions_and_cedr_answers_them(tmp_path):
    command = [sys.executable, "-m", "cedr", "bench", "peers", "--quick", "--json", str(tmp_path / "p.json")]
    done = subprocess.run([*command, "--plots", str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads((tmp_path / "p.json").read_text())
    assert [row["value"] for row in rows if row["name"].endswith("cedr local, answers agree")] == [1] * (5 + 9 + 7)
    assert sum(row["name"].endswith("polars in batch") for row in rows) == 5 + 9 + 7
    drawn = {path.stem for path in (tmp_path / "peers").glob("*.png")}
    assert drawn == {"workloads", "nexmark", "nexmark_with_corrected_bids"}


def test_the_state_benchmark_measures_every_query_at_two_sizes(tmp_path):
    command = [sys.executable, "-m", "cedr", "bench", "state", "--quick", "--only", "count,eager sum by key"]
    done = subprocess.run([*command, "--json", str(tmp_path / "s.json")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads((tmp_path / "s.json").read_text())
    assert len(rows) == 2 * 2 * 3
    assert [row["name"] for row in rows if row["unit"] == "x"] == [
        f"{query}, chunks of {chunk}, ratio" for chunk in (1, 100) for query in ("count", "eager sum by key")
    ]


def test_state_in_files_gives_the_answers_of_duckdb(tmp_path):
    command = [sys.executable, "-m", "cedr", "bench", "state", "--quick", "--only", "memory"]
    done = subprocess.run([*command, "--json", str(tmp_path / "m.json")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads((tmp_path / "m.json").read_text())
    assert [row["value"] for row in rows if row["name"].endswith("answers as DuckDB")] == [1] * 2
    limited = [row for row in rows if row["unit"] == "k events/s" and "state_memory" in row["name"]]
    assert len(limited) == 2
    assert all("files 0.00 GiB" not in row["note"] for row in limited)


def test_snapshots_of_the_checkpoint_benchmark_write_what_has_changed(tmp_path):
    command = [sys.executable, "-m", "cedr", "bench", "state", "--quick", "--only", "checkpoint of a sum"]
    done = subprocess.run([*command, "--json", str(tmp_path / "c.json")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads((tmp_path / "c.json").read_text())
    assert rows
    assert all(row["ok"] for row in rows)
    assert all(row["name"].startswith("checkpoint of a sum") for row in rows)


def test_parts_are_chosen_where_there_are_some():
    for name, message in (("peers", "nothing is called 'x'"), ("engine", "has no parts; leave --only out")):
        command = [sys.executable, "-m", "cedr", "bench", name, "--quick", "--only", "x"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 2
        assert f"--only x: {message}" in done.stderr.replace("the benchmark 'engine' ", "")
        assert "Traceback" not in done.stderr
