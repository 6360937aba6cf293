"""The documentation as a site: it builds without a warning, and everything public is in it."""

import importlib.util
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import cedr
from cedr.cli import app

ROOT = Path(__file__).parent.parent


def module(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Strict: a link that leads nowhere, a page that is in no list, a name that is gone: each is an error."""
    folder = tmp_path_factory.mktemp("site")
    done = CliRunner().invoke(app, ["docs", "--to", str(folder)])
    assert done.exit_code == 0, done.output
    assert f"open {folder / 'index.html'}" in done.output
    return folder


def test_every_page_is_there(site):
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").with_suffix(".html")
        assert (site / (name if name.name != "README.html" else name.with_name("index.html"))).is_file()


def test_every_public_name_is_in_the_api(site):
    documented = {anchor.rpartition(".")[2] for anchor in re.findall(r'id="([\w.]+)"', (site / "api.html").read_text())}
    assert set(cedr.__all__) - {"sinks"} <= documented
    assert {"parquet", "postgres", "duckdb", "changelog", "memory", "foreach"} <= documented


def test_nothing_is_fetched_from_elsewhere(site):
    for page in site.rglob("*.html"):
        for tag in re.findall(r"<(?:script|link|img)[^>]*>", page.read_text()):
            assert not re.search(r'(?:src|href)="(?:https?:)?//', tag), f"{page.name}: {tag}"


def test_the_drawings_are_what_the_code_draws(tmp_path):
    module(ROOT / "docs" / "drawings" / "draw.py").write(tmp_path)
    for drawing in tmp_path.iterdir():
        assert drawing.read_text() == (ROOT / "docs" / "drawings" / drawing.name).read_text()
    pages = "".join(page.read_text() for page in (ROOT / "docs").glob("*.md"))
    shown = set(re.findall(r"\(drawings/(\w+)\.svg\)", pages))
    assert shown == {drawing.stem for drawing in tmp_path.iterdir()}


def test_every_file_named_for_contributors_exists():
    pages = [ROOT / "docs" / "how_it_works.md", *(ROOT / "docs" / "contributing").glob("*.md")]
    named = [name for page in pages for name in re.findall(r"`((?:src/cedr|tests)/[\w/.]+)`", page.read_text())]
    assert len(named) > 35
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_map_names_every_room():
    named = (ROOT / "docs" / "how_it_works.md").read_text()
    rooms = {path.parent for path in (ROOT / "src" / "cedr").glob("*/__init__.py")}
    assert sorted(room.name for room in rooms if f"`src/cedr/{room.name}/" not in named) == []


def test_aligned_arguments_become_a_table():
    as_table = module(ROOT / "docs" / "site" / "aligned_lists.py").as_table
    assert as_table("vs        the start\nve, kind  the end, or\n          no | end") == (
        "| | |\n|---|---|\n| `vs` | the start |\n| `ve`, `kind` | the end, or no \\| end |"
    )
    assert as_table("plain text\nof two lines") is None
    assert as_table("vs  the start\nand then text") is None
