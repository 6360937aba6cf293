"""Plots: what is drawn is what was given, without a screen, and not before it is asked for."""

import subprocess
import sys

import pytest

from cedr import CedrError, plots
from cedr.plots import Plot, Target, draw, picture


def plot():
    made = Plot("speed", "Speed over inputs", "inputs", "M elements/s")
    for x, y in ((4, 3.0), (2, 2.0)):
        made.add("R3", x, y, spread=0.1)
        made.add("R4", x, y / 2)
    made.bars["R3"] = Target(1.5)
    return made


def text_chunks(png):
    """The texts that a PNG file carries, by their keywords."""
    texts, place = {}, 8
    while place < len(png):
        length, kind = int.from_bytes(png[place : place + 4]), png[place + 4 : place + 8]
        if kind == b"tEXt":
            keyword, text = png[place + 8 : place + 8 + length].split(b"\0")
            texts[keyword.decode()] = text.decode()
        place += length + 12
    return texts


def test_a_png_is_written_that_names_its_series(tmp_path):
    path = draw(plot(), tmp_path / "new" / "folder")
    png = path.read_bytes()
    assert path == tmp_path / "new" / "folder" / "speed.png"
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert len(png) > 10_000
    about = text_chunks(png)
    assert (about["Title"], about["Description"]) == ("Speed over inputs", "R3; R4")


def test_points_are_drawn_by_x_and_a_bar_is_a_line():
    (axes,) = picture(plot()).axes
    drawn = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
    assert drawn == {
        "R3": [[2, 2.0], [4, 3.0]],
        "R4": [[2, 1.0], [4, 1.5]],
        "R3: at least 1.5": [[0, 1.5], [1, 1.5]],  # from the left edge to the right
    }
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["R3", "R3: at least 1.5", "R4"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("inputs", "M elements/s")
    assert axes.get_ylim()[0] == 0


@pytest.mark.parametrize(
    ("log", "scales"), [("", ("linear",) * 2), ("x", ("log", "linear")), ("y", ("linear", "log")), ("xy", ("log",) * 2)]
)
def test_axes_may_be_logarithmic(log, scales):
    logarithmic = plot()
    logarithmic.log = log
    (axes,) = picture(logarithmic).axes
    assert (axes.get_xscale(), axes.get_yscale()) == scales


def test_what_a_logarithmic_scale_cannot_show_is_reported():
    nothing = Plot("memory", "Memory", "inputs", "MiB", log="y")
    for x in (2, 4):
        nothing.add("R0", x, 0)
        nothing.add("R3", x, x)
    (axes,) = picture(nothing).axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["R0 (zero)", "R3"]


def test_many_points_are_a_line_without_markers_and_the_foremost_lies_above():
    wave = Plot("wave", "Wave", "seconds", "events", foremost="merged")
    wave.line("merged", range(100), range(100))
    wave.line("input", range(3), range(3))
    merged, other = picture(wave).axes[0].lines
    assert (merged.get_marker(), other.get_marker()) == ("None", "s")
    assert merged.get_zorder() > other.get_zorder()


def test_matplotlib_is_loaded_only_to_draw_and_without_a_screen():
    program = """
import sys
from cedr.plots import Plot, picture
assert "matplotlib" not in sys.modules
picture(Plot("p", "P", "x", "y"))
assert "matplotlib.pyplot" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_without_matplotlib_the_error_names_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(plots.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CedrError, match=r"plots need the package matplotlib: pip install 'cedr\[plots\]'"):
        draw(plot(), tmp_path)


def test_with_names_each_series_has_a_column_at_each_name():
    plot = Plot("speed", "Speed", "", "k/s", "y", names=("join", "pattern"))
    for series, heights in {"one": (200, 30), "other": (40, 500)}.items():
        for place, height in enumerate(heights):
            plot.add(series, place, height)
    (axes,) = picture(plot).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["join", "pattern"]
    assert [[bar.get_height() for bar in columns] for columns in axes.containers] == [[200, 30], [40, 500]]
    places = sorted(bar.get_x() + bar.get_width() / 2 for columns in axes.containers for bar in columns)
    assert places == pytest.approx([-0.2, 0.2, 0.8, 1.2])
    assert axes.get_ylim()[0] == 1
