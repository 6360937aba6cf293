"""`cedr pack`: the files of an environment, and the archive of a few files."""

import os
import subprocess
import tarfile

import pytest
from cli.calling import call

import cedr
from cedr import CedrError
from cedr.cli.pack import archive, default_name, environment


def quiet(*_, **__) -> None:
    """Reports nothing."""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return environment.environment_files(tmp_path_factory.mktemp("scratch"), ["duckdb"])


def packages(files) -> set[str]:
    home = f"{environment.home_of_packages()}/"
    return {name.removeprefix(home).split("/")[0] for name in files if name.startswith(home)}


def test_it_has_what_executors_need_and_no_more(files):
    assert {"bin/python", f"{environment.home_of_modules()}/os.py"} <= files.keys()
    found = packages(files)
    assert {"cedr", "polars", "pyarrow", "numba", "llvmlite", "numpy", "pandas", "lark", "duckdb"} <= found
    assert not found & {"pytest", "mypy", "mkdocs", "hypothesis", "ruff", "pyspark", "py4j", "typer", "matplotlib"}


def test_it_has_all_of_cedr(files):
    home, source = environment.home_of_packages(), environment.REPOSITORY / "src"
    there = [path for path in (source / "cedr").rglob("*") if path.suffix in (".py", ".lark")]
    assert there
    assert all(files[f"{home}/{path.relative_to(source)}"] == path for path in there)


def test_a_package_that_is_not_installed(tmp_path):
    with pytest.raises(CedrError, match="nothing-like-this is not installed here"):
        environment.with_dependencies(["nothing-like-this"])


def test_the_start_script_works_from_anywhere_and_through_links(tmp_path):
    """As on YARN, where the folder of an archive is a link."""
    start = environment.python_files(tmp_path)["bin/python"]
    real = tmp_path / "real" / "bin"
    real.mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    name = start.read_text().rsplit("/bin/", 1)[1].split('"')[0]
    (real / "python").write_bytes(start.read_bytes())
    (real / name).write_text('#!/bin/sh\necho "$LD_LIBRARY_PATH" "$PYTHONHOME" "$@"\n')
    for file in real.iterdir():
        file.chmod(0o755)
    done = subprocess.run(
        ["./link/bin/python", "-c", "a b"], cwd=tmp_path, env={"PYTHONHOME": "x"}, capture_output=True, text=True
    )
    assert done.stdout.split() == [f"{(tmp_path / 'real' / 'lib').resolve()}", "-c", "a", "b"]


@pytest.mark.parametrize("name", ["e.tar.gz", "e.tgz"])
def test_an_archive_keeps_contents_modes_and_times(tmp_path, name):
    """Compiled code names the time of its source to the nanosecond, or to what a float keeps of it."""
    for file, mode in {"program": 0o755, "text": 0o644}.items():
        (tmp_path / file).write_text(file)
        (tmp_path / file).chmod(mode)
    os.utime(tmp_path / "text", ns=(0, 1_763_569_528_123_456_789))
    archive.write_archive({"bin/p": tmp_path / "program", "t": tmp_path / "text"}, tmp_path / name, quiet)
    out = tmp_path / "out"
    out.mkdir()
    subprocess.run(["tar", "-xf", str(tmp_path / name), "-C", str(out)], check=True)
    assert (out / "t").stat().st_mtime == (tmp_path / "text").stat().st_mtime
    assert [oct((out / file).stat().st_mode & 0o777) for file in ("bin/p", "t")] == ["0o755", "0o644"]
    with tarfile.open(tmp_path / name) as opened:
        assert {info.uid for info in opened} == {0}


def test_a_python_that_does_not_work_is_an_error(tmp_path):
    (tmp_path / "python").write_text("#!/bin/sh\necho no module >&2\nexit 1\n")
    (tmp_path / "python").chmod(0o755)
    archive.write_archive({"bin/python": tmp_path / "python"}, tmp_path / "e.tar.gz", quiet)
    with pytest.raises(CedrError, match="does not work: no module"):
        archive.check_archive(tmp_path / "e.tar.gz", tmp_path / "check")


def test_what_is_there_is_not_overwritten(monkeypatch, capsys, tmp_path):
    (tmp_path / "e.tar.gz").write_text("mine")
    done = call(monkeypatch, capsys, "pack", tmp_path / "e.tar.gz")
    assert done.code == 2
    assert "exists; --force overwrites it" in done.err
    assert (tmp_path / "e.tar.gz").read_text() == "mine"
    assert "must end in .tar.gz" in call(monkeypatch, capsys, "pack", tmp_path / "e.tar").err


def test_the_command_prints_the_settings(monkeypatch, capsys, tmp_path):
    """With a few files; the whole archive takes half a minute."""
    monkeypatch.setattr(environment, "environment_files", lambda scratch, more: {"t": tmp_path / "t"})
    monkeypatch.setattr(archive, "check_archive", lambda target, folder: None)
    (tmp_path / "t").write_text("t")
    done = call(monkeypatch, capsys, "pack", tmp_path / "e.tar.gz")
    assert done.code == 0
    assert f"spark.archives={tmp_path}/e.tar.gz#environment\nspark.pyspark.python=./environment/bin/python" in done.out


def test_the_name_has_the_version():
    assert default_name().startswith(f"cedr-{cedr.__version__}-cp3")
    assert default_name().endswith(".tar.gz")
