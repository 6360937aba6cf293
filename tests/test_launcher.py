"""The launcher, without network: its copy runs in a small checkout where python, pip, java and apt-get are stand-ins.

The stand-in Python makes a real virtual environment, with a pip that only writes down what it was asked. The PATH
holds nothing but the stand-ins and the few tools the script calls, so what is not given is not there.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import cedr
from cedr import cli

REPOSITORY = Path(__file__).parents[1]
TOOLS = ["bash", "cmp", "cp", "dirname", "flock", "head", "readlink", "rm", "sed"]

MAIN = """
import json, os, sys
import cedr
names = ["JAVA_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE"]
env = {name: os.environ.get(name) for name in names}
print(json.dumps({"args": sys.argv[1:], "cwd": os.getcwd(), "from": cedr.__file__, "env": env}))
"""

PIP = """
import os, sys, time
open(os.environ["LOG"], "a").write("pip " + " ".join(sys.argv[1:]) + "\\n")
while "PIP_WAITS_FOR" in os.environ and not os.path.exists(os.environ["PIP_WAITS_FOR"]):
    time.sleep(0.02)
if "PIP_FAILS" in os.environ:
    sys.exit("no route to the index")
"""

# Python as Debian has it: without its venv package (file `no_venv` next to it), `-m venv` refuses.
PYTHON = """
case "$1" in
    --version) echo "Python {version}" ;;
    -c) [[ {version} != 3.9.2 ]] ;;
    -m)
        if [[ -e "$(dirname "$0")/no_venv" ]]; then
            echo "ensurepip is not available" && exit 1
        fi
        {real} -m venv --without-pip "$3" && {real} -c "{add_pip}" "$3" ;;
esac
"""

ADD_PIP = """
import pathlib, sys
pip = next(pathlib.Path(sys.argv[1]).glob('lib/*/site-packages')) / 'pip'
pip.mkdir()
(pip / '__main__.py').write_text(pathlib.Path('{source}').read_text())
"""

JAVA = """
echo 'openjdk version "{version}.0.1"'
[[ $1 != -XshowSettings* ]] || printf '    %s\\n' "java.home = {home}" "java.specification.version = {version}"
"""


@dataclass
class Checkout:
    """A folder with the launcher and what it needs, and a PATH it alone decides about."""

    base: Path

    @property
    def root(self) -> Path:
        return self.base / "a checkout"

    @property
    def path(self) -> Path:
        return self.base / "bin"

    @property
    def jvms(self) -> Path:
        return self.base / "jvm"

    @property
    def servers(self) -> Path:
        """Where Debian has the programs of PostgreSQL's servers, by version."""
        return self.base / "postgresql"

    @property
    def log(self) -> list[str]:
        """Which stand-ins were called so far, and how."""
        file = self.base / "log"
        return file.read_text().splitlines() if file.exists() else []

    def calls(self, what: str) -> list[str]:
        return [line for line in self.log if line.startswith(what)]

    def set_up(self) -> None:
        (self.root / "src/cedr").mkdir(parents=True)
        (self.root / "src/cedr/__init__.py").touch()
        (self.root / "src/cedr/__main__.py").write_text(MAIN)
        (self.root / "requirements.lock").write_text("one==1.0\n")
        script = (REPOSITORY / "cedr").read_text()
        for place, ours in (("/usr/lib/jvm", self.jvms), ("/usr/lib/postgresql", self.servers)):
            assert script.count(place) == 1
            script = script.replace(place, str(ours))
        (self.root / "cedr").write_text(script)
        (self.root / "cedr").chmod(0o755)
        self.path.mkdir()
        for tool in TOOLS:
            (self.path / tool).symlink_to(shutil.which(tool) or f"/missing/{tool}")
        self.stand_in("id", "echo 1000")

    def stand_in(self, name: str, body: str, folder: Path | None = None) -> Path:
        """A program that writes its call into the log, then does `body`."""
        program = (folder or self.path) / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f'#!{shutil.which("bash")}\necho "{name} $*" >>"{self.base}/log"\n{body}\n')
        program.chmod(0o755)
        return program

    def python(self, name: str = "python3.11", version: str = "3.11.2") -> None:
        pip = self.base / "pip_main.py"
        pip.write_text(PIP)
        self.stand_in(name, PYTHON.format(version=version, real=sys.executable, add_pip=ADD_PIP.format(source=pip)))

    def java(self, version: int, home: Path | None = None) -> Path:
        home = home or self.jvms / f"java-{version}"
        self.stand_in("java", JAVA.format(version=version, home=home), home / "bin")
        return home

    def apt_get(self, body: str) -> None:
        """We are root, and `apt-get install` does `body`."""
        self.stand_in("id", "echo 0")
        self.stand_in("apt-get", f"[[ $1 == install ]] || exit 0\n{body}\n")

    def environment(self, **more: str) -> dict[str, str]:
        return {"PATH": str(self.path), "LOG": str(self.base / "log"), "HOME": str(self.base), **more}

    def run(self, *args: str, script: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        command = [str(script or self.root / "cedr"), *args]
        here = self.base / "somewhere else"
        here.mkdir(exist_ok=True)
        return subprocess.run(
            command, cwd=here, env=self.environment(**env), capture_output=True, text=True, check=False
        )

    def start(self, *args: str, script: Path | None = None, **env: str) -> dict[str, Any]:
        """Run it and read what the command line was given."""
        done = self.run(*args, script=script, **env)
        assert done.returncode == 0, done.stderr
        seen: dict[str, Any] = json.loads(done.stdout)
        return seen


@pytest.fixture
def bare(tmp_path: Path) -> Checkout:
    """Nothing installed, and we are not root."""
    checkout = Checkout(tmp_path)
    checkout.set_up()
    return checkout


@pytest.fixture
def checkout(bare: Checkout) -> Checkout:
    """Python and Java are there, .venv is not."""
    bare.python()
    bare.java(17)
    return bare


def test_both_scripts_are_executable_bash() -> None:
    for script in (REPOSITORY / "cedr", REPOSITORY / ".ci/run"):
        assert os.access(script, os.X_OK)
        subprocess.run(["bash", "-n", str(script)], check=True)


# --- packages ------------------------------------------------------------------------------------------------------


def test_the_first_start_installs_and_the_second_does_nothing(checkout: Checkout) -> None:
    first = checkout.run("--version")
    assert "installing the packages" in first.stderr
    (installed,) = checkout.calls("pip")
    assert installed.startswith("pip install --no-deps --quiet")
    assert installed.endswith("requirements.lock")
    before = checkout.log
    second = checkout.run("--version")
    assert second.stderr == ""
    assert checkout.log == before, "nothing was called again"


def test_it_runs_from_anywhere_through_a_link(checkout: Checkout) -> None:
    link = checkout.base / "links/cedr"
    link.parent.mkdir()
    link.symlink_to(checkout.root / "cedr")
    others = {"SPARK_HOME": "/another/spark", "PYTHONPATH": "/another", "PYTHONDONTWRITEBYTECODE": "1"}
    seen = checkout.start("test", "-k", "two words", script=link, **others)
    assert seen["args"] == ["test", "-k", "two words"]
    assert seen["cwd"] == str(checkout.base / "somewhere else")
    assert seen["from"] == str(checkout.root / "src/cedr/__init__.py")
    python = str(checkout.root / ".venv/bin/python")
    assert seen["env"] == {
        "JAVA_HOME": str(checkout.jvms / "java-17"),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "SPARK_HOME": None,
        "PYTHONPATH": None,
        "PYTHONDONTWRITEBYTECODE": None,
    }


def test_nothing_is_imported_from_the_current_folder(checkout: Checkout) -> None:
    decoy = checkout.base / "somewhere else/cedr"
    decoy.mkdir(parents=True)
    (decoy / "__init__.py").write_text("raise SystemExit('the decoy was imported')")
    assert checkout.start("--version")["from"] == str(checkout.root / "src/cedr/__init__.py")


def test_a_changed_lock_installs_again_into_the_same_venv(checkout: Checkout) -> None:
    checkout.start("--version")
    lock = checkout.root / "requirements.lock"
    lock.write_text("one==2.0\n")
    checkout.start("--version")
    assert len(checkout.calls("pip")) == 2
    assert len(checkout.calls("python3.11 -m venv")) == 1
    assert (checkout.root / ".venv/installed.lock").read_text() == "one==2.0\n"


def test_a_moved_folder_gets_a_new_venv(checkout: Checkout, tmp_path: Path) -> None:
    checkout.start("--version")
    moved = tmp_path / "moved"
    checkout.root.rename(moved)
    seen = checkout.start("--version", script=moved / "cedr")
    assert seen["from"] == str(moved / "src/cedr/__init__.py")
    assert len(checkout.calls("python3.11 -m venv")) == 2


def test_a_venv_whose_python_is_gone_is_made_again(checkout: Checkout) -> None:
    checkout.start("--version")
    python = checkout.root / ".venv/bin/python"
    python.unlink()
    python.symlink_to("/nowhere/python")
    checkout.start("--version")
    assert len(checkout.calls("python3.11 -m venv")) == 2


def test_when_pip_fails_its_output_is_shown_and_the_next_start_tries_again(checkout: Checkout) -> None:
    failed = checkout.run("--version", PIP_FAILS="yes")
    assert failed.returncode == 1
    assert failed.stdout == ""
    assert "error: pip could not install" in failed.stderr
    assert "no route to the index" in failed.stderr
    assert not (checkout.root / ".venv/installed.lock").exists()
    checkout.start("--version")


def test_a_failed_update_is_not_taken_for_the_lock_before_it(checkout: Checkout) -> None:
    checkout.start("--version")
    lock = checkout.root / "requirements.lock"
    lock.write_text("one==2.0\n")
    assert checkout.run("--version", PIP_FAILS="yes").returncode == 1
    lock.write_text("one==1.0\n")
    checkout.start("--version")
    assert len(checkout.calls("pip")) == 3, "pip may have changed half of it, so it has to look again"


def test_of_two_starts_at_once_one_installs_and_the_other_waits(checkout: Checkout) -> None:
    """pip continues only when the second start has reported that it waits."""
    waiting = checkout.base / "waiting"
    command, env = [str(checkout.root / "cedr"), "--version"], checkout.environment(PIP_WAITS_FOR=str(waiting))
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=env, **pipes) as one:
        assert "installing the packages" in one.stderr.readline()
        with subprocess.Popen(command, env=env, **pipes) as other:
            line = other.stderr.readline()
            waiting.touch()
            assert "waiting for another start" in line
            assert "installing" not in other.communicate()[1]
        one.communicate()
    assert [one.returncode, other.returncode] == [0, 0]
    assert len(checkout.calls("pip")) == 1


# --- Python --------------------------------------------------------------------------------------------------------


def test_an_old_python_is_named(bare: Checkout) -> None:
    bare.python("python3", "3.9.2")
    done = bare.run("--version")
    assert done.returncode == 1
    assert "needs Python 3.11 or newer, found: Python 3.9.2" in done.stderr
    assert "apt-get install python3 python3-venv" in done.stderr


def test_no_python_at_all(bare: Checkout) -> None:
    assert "needs Python 3.11 or newer, found: none" in bare.run("--version").stderr


def test_a_newer_python_will_do(bare: Checkout) -> None:
    bare.python("python3", "3.9.2")
    bare.python("python3.13", "3.13.1")
    bare.start("--version")


def test_root_gets_python_from_apt(bare: Checkout) -> None:
    bare.python("python3")
    ready = (bare.path / "python3").rename(bare.base / "python_of_debian")
    bare.apt_get(f'cp "{ready}" "{bare.path}/python3"')
    bare.start("--version")
    assert bare.calls("apt-get update")
    assert bare.calls("apt-get install")[0].endswith("python3 python3-venv")


def test_root_gets_the_venv_module_from_apt(checkout: Checkout) -> None:
    missing = checkout.path / "no_venv"
    missing.touch()
    checkout.apt_get(f'rm "{missing}"')
    checkout.start("--version")
    assert checkout.calls("apt-get install")[0].endswith(" python3.11-venv")


def test_others_get_the_command_that_installs_the_venv_module(checkout: Checkout) -> None:
    (checkout.path / "no_venv").touch()
    done = checkout.run("--version")
    assert done.returncode == 1
    assert "apt-get install python3.11-venv" in done.stderr
    assert not (checkout.root / ".venv").exists()


# --- Java ----------------------------------------------------------------------------------------------------------


def test_without_java_commands_report_what_to_do(bare: Checkout) -> None:
    bare.python()
    done = bare.run("test")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "needs Java 17 or 21 for Spark, found: none" in done.stderr
    assert "apt-get install openjdk-17-jre-headless" in done.stderr
    assert not bare.calls("apt-get")


def test_without_java_options_work(bare: Checkout) -> None:
    bare.python()
    assert bare.start("--help")["args"] == ["--help"]


@pytest.mark.parametrize(
    "command", ["prompt", "check job.toml", "doctor", "run job.toml --local", "history changes.csv", "state checkpoint"]
)
def test_without_java_commands_that_need_none_work(bare: Checkout, command: str) -> None:
    bare.python()
    assert bare.start(*command.split())["args"] == command.split()


def test_without_java_a_job_on_spark_reports_what_to_do(bare: Checkout) -> None:
    bare.python()
    assert "needs Java 17 or 21 for Spark" in bare.run("run", "job.toml").stderr


def test_a_java_that_does_not_fit_is_named(bare: Checkout) -> None:
    bare.python()
    bare.java(25)
    assert 'found: openjdk version "25.0.1"' in bare.run("demo").stderr


def test_java_home_then_path_then_the_usual_folder(checkout: Checkout) -> None:
    own = checkout.java(21, checkout.base / "own java")
    assert checkout.start("demo", JAVA_HOME=str(own))["env"]["JAVA_HOME"] == str(own)
    on_path = checkout.java(21, checkout.base / "java on path")
    wrapper = checkout.stand_in("java", f'exec "{on_path}/bin/java" "$@"')
    assert checkout.start("demo")["env"]["JAVA_HOME"] == str(on_path)
    wrapper.unlink()
    shutil.rmtree(on_path)
    assert checkout.start("demo")["env"]["JAVA_HOME"] == str(checkout.jvms / "java-17")


def test_java_of_another_version_is_passed_over(checkout: Checkout) -> None:
    new = checkout.java(25, checkout.base / "new java")
    assert checkout.start("demo", JAVA_HOME=str(new))["env"]["JAVA_HOME"] == str(checkout.jvms / "java-17")


def test_java_is_asked_once(checkout: Checkout) -> None:
    """Not even by a cedr that was started by cedr, as the tests do it: two of them would wait for each other aloud."""
    home = checkout.start("demo")["env"]["JAVA_HOME"]
    asked = len(checkout.calls("java"))
    checkout.start("demo")
    checkout.start("demo", JAVA_HOME=home)
    checkout.start("demo")
    assert len(checkout.calls("java")) == asked > 0


@pytest.mark.parametrize("version", [17, 21])
def test_root_gets_java_from_apt(bare: Checkout, version: int) -> None:
    """Debian 12 has 17; where apt has only 21, that is taken."""
    bare.python()
    ready = bare.java(version)
    kept = ready.rename(bare.base / "java_of_debian")
    bare.apt_get(f'[[ "$*" == *openjdk-{version}-jre-headless ]] || exit 100; cp -r "{kept}" "{ready}"')
    assert bare.start("test")["env"]["JAVA_HOME"] == str(ready)


# --- PostgreSQL ----------------------------------------------------------------------------------------------------


def test_root_gets_postgresql_from_apt_for_the_tests(checkout: Checkout) -> None:
    initdb = checkout.servers / "15/bin/initdb"
    checkout.apt_get(f'mkdir -p "{initdb.parent}" && echo >"{initdb}"')
    (checkout.path / "mkdir").symlink_to(shutil.which("mkdir") or "/missing/mkdir")
    checkout.start("demo")
    assert not checkout.calls("apt-get"), "only the tests need it"
    checkout.start("test")
    assert checkout.calls("apt-get install")[0].endswith(" postgresql")
    checkout.start("test")
    assert len(checkout.calls("apt-get install")) == 1


def test_a_postgresql_on_the_path_will_do(checkout: Checkout) -> None:
    checkout.apt_get("exit 100")
    checkout.stand_in("initdb", "")
    checkout.start("test")
    assert not checkout.calls("apt-get")


def test_without_postgresql_the_tests_run_and_report_what_is_missing(checkout: Checkout) -> None:
    assert checkout.start("test", "-x")["args"] == ["test", "-x"]
    assert not checkout.calls("apt-get")
    checkout.apt_get("echo no such package; exit 100")
    done = checkout.run("test")
    assert done.returncode == 0
    assert "apt-get could not install postgresql; its output:\nno such package" in done.stderr


# --- an S3 server --------------------------------------------------------------------------------------------------


def test_the_tests_get_an_s3_server_and_run_without_one(checkout: Checkout) -> None:
    script = checkout.root / "tests" / "fetch_s3.py"
    script.parent.mkdir()
    script.write_text('import os, sys\nopen(os.environ["LOG"], "a").write("fetch\\n")\nsys.exit("no route")\n')
    checkout.start("demo")
    assert not checkout.calls("fetch"), "only the tests need it"
    assert checkout.start("test", "-x")["args"] == ["test", "-x"]
    assert checkout.calls("fetch")


# --- the command line it hands over to ---------------------------------------------------------------------------


def command_line(monkeypatch: pytest.MonkeyPatch, *args: str) -> int | str | None:
    """Run the command line in this process; its exit code."""
    monkeypatch.setattr(sys, "argv", ["cedr", *args])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code


def test_it_prints_its_version(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"cedr {cedr.__version__}\n"


def test_what_follows_test_goes_to_pytest(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda program, args: given.append(args))
    monkeypatch.chdir(REPOSITORY)  # the command goes there itself; this brings us back afterwards
    assert command_line(monkeypatch, "test", "-k", "join and not slow", "-xvs", "--durations=3", "tests/papers") == 0
    assert given[0][:3] == [sys.executable, "-m", "pytest"]
    assert given[0][-5:] == ["-k", "join and not slow", "-xvs", "--durations=3", "tests/papers"]


def test_a_mistake_of_the_user_is_reported_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(sys.modules["cedr.cli.test"], "REPOSITORY", tmp_path)
    assert command_line(monkeypatch, "test") == 2
    errors = capsys.readouterr().err
    assert errors.startswith(f"error: {tmp_path} contains no tests; ")
    assert "Traceback" not in errors
