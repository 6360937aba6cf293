"""Passwords, tokens and keys appear nowhere: not in what commands print, not in errors, not in files they write.

Each test uses a password that occurs nowhere else and searches all output for it.
"""

import copy
import json
import pickle
import traceback

import pytest
from cli.calling import call
from job.files import JOB, put
from postgres_server import postgres as postgres
from pyspark import cloudpickle

from cedr import Secret, sinks
from cedr.job.job import read
from cedr.job.mistake import JobError
from cedr.secret import KNOWN, concealed, hidden, is_secret_name, known_forms, without_credentials
from cedr.sinks.base import SinkError
from cedr.storage.folder import Folder
from cedr.temporal.errors import CedrError

MARKER = "hunter2-marker"
QUERY_AND_SOURCE = JOB[: JOB.index("[sinks.hot]")]
KAFKA = f"""
[sources.more]
kafka."kafka.bootstrap.servers" = "localhost:9"
kafka.subscribe = "t"
kafka.kafka.sasl.jaas.config = "x password='{MARKER}';"
columns = {{ machine = "str", load = "float" }}
vs = "start"
"""


@pytest.fixture(autouse=True)
def nothing_known():
    """Each test is the first to learn of the password."""
    KNOWN.clear()
    known_forms.cache_clear()


@pytest.fixture
def cedr(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)

    def run(job, *args):
        put(tmp_path, job)
        done = call(monkeypatch, capsys, *args)
        assert MARKER not in done.out + done.err
        assert "hunter2" not in done.out + done.err
        for file in tmp_path.rglob("*"):
            if file.is_file() and file.name not in ("job.toml", "password"):
                assert b"hunter2" not in file.read_bytes(), file
        return done

    return run


def to_postgres(dsn: str, more: str = "") -> str:
    return f'{QUERY_AND_SOURCE}[sinks.hot]\npostgres = "{dsn}"\n{more}\n[spark]\nmaster = "local[2]"\nshards = 2\n'


def uri(server, password: str = MARKER) -> str:
    """As a URI, with a password that the server does not ask for."""
    host = server.dsn.split()[0].removeprefix("host=").replace("/", "%2F")
    return f"postgresql://cedr:{password}@{host}/postgres"


COMMANDS = {
    "check": ("check", "job.toml"),
    "check --json": ("check", "job.toml", "--json"),
    "explain": ("explain", "job.toml"),
    "run --local": ("run", "job.toml", "--local"),
    "run --local --json": ("run", "job.toml", "--local", "--json"),
    "plot": ("plot", "job.toml", "-o", "p.svg"),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
@pytest.mark.parametrize("form", ["uri", "query of a uri", "settings"])
def test_no_command_shows_a_password(cedr, postgres, command, form):
    schema = postgres.fresh_schema()
    dsn = {
        "uri": uri(postgres),
        "query of a uri": f"postgresql:///postgres?{postgres.dsn.replace(' ', '&')}&password={MARKER}",
        "settings": f"{postgres.dsn} password='{MARKER}'",
    }[form]
    done = cedr(to_postgres(dsn, f'table = "{schema}.hot"'), *command)
    assert (done.code, done.err) == (0, "")
    if command[0] in ("check", "run"):
        assert "dbname=postgres user=cedr" in done.out


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["lines", "json"])
def test_a_run_on_spark_shows_and_keeps_no_password(spark, cedr, postgres, options):
    table = f"{postgres.fresh_schema()}.hot"
    done = cedr(to_postgres(uri(postgres), f'table = "{table}"'), "run", "job.toml", "--once", *options)
    assert (done.code, done.err) == (0, "")
    assert postgres.execute(f"SELECT count(*) > 0 FROM {table}") == [(True,)]


@pytest.mark.parametrize("command", [*COMMANDS.values(), ("run", "job.toml", "--once")], ids=str)
def test_nor_does_an_error_of_a_server_that_is_not_there(request, cedr, command):
    if command[-1] == "--once":
        request.getfixturevalue("spark")
    done = cedr(to_postgres(f"postgresql://me:{MARKER}@127.0.0.1:9/db?connect_timeout=1"), *command)
    assert done.code == (0 if command[0] in ("check", "explain", "plot") else 2)


MALFORMED = {
    "a space": f"postgresql://me:{MARKER} x@localhost/db",
    "an @": f"postgresql://me:a@{MARKER}@localhost/db",
    "a slash": f"postgresql://me:a/{MARKER}@localhost/db",
    "a percent": f"postgresql://me:{MARKER}%zz@localhost/db",
    "a port": f"postgresql://localhost:{MARKER}/db?x",
    "no key": f"host=localhost password=a {MARKER}",
    "a key that is none": f"host=localhost password=a {MARKER}=b",
    "a quote": f"host=localhost password='{MARKER}",
    "a misspelt key": f"host=localhost pasword={MARKER}",
}


@pytest.mark.parametrize("dsn", MALFORMED.values(), ids=MALFORMED.keys())
@pytest.mark.parametrize("command", [("check", "job.toml"), ("run", "job.toml", "--local")], ids=["check", "run"])
def test_nor_do_errors_of_malformed_connection_strings(cedr, dsn, command):
    done = cedr(to_postgres(dsn.replace('"', '\\"')), *command)
    assert done.code == 2
    assert done.err.startswith("error: job.toml:21: sinks.hot.postgres: the connection string cannot be read: ")


@pytest.mark.parametrize("dsn", MALFORMED.values(), ids=MALFORMED.keys())
def test_nor_do_tracebacks_of_programs(dsn):
    with pytest.raises(SinkError) as raised:
        sinks.postgres(dsn, "t")
    shown = "".join(traceback.format_exception(raised.value))
    assert "hunter2" not in shown
    assert "hunter2" not in repr(raised.value)


WRONG_PLACES = {
    "a list": (f'postgres = ["postgresql://me:{MARKER}@h/db"]', "sinks.hot.postgres: [***] is not a string"),
    "a misspelt key": (f'postgress = "postgresql://me:{MARKER}@h/db"', "there is no such key"),
    "another key": (
        f'parquet = "a"\ntable = "postgresql://me:{MARKER}@h/db"',
        "table applies only to duckdb and postgres",
    ),
    "a statement": (
        f'parquet = "a"\nstatement = "postgresql://me:{MARKER}@h/db"',
        "no statement 'postgresql://me:***@h/db'",
    ),
    "a password of files": (f'parquet = "a"\npassword = "{MARKER}"', "password applies only to postgres"),
    "two passwords": (f'postgres = "password=a{MARKER}"\npassword = "{MARKER}"', "leave one of them out"),
}


@pytest.mark.parametrize(("lines", "problem"), WRONG_PLACES.values(), ids=WRONG_PLACES.keys())
def test_nor_do_mistakes_about_other_keys(cedr, lines, problem):
    done = cedr(f"{QUERY_AND_SOURCE}[sinks.hot]\n{lines}\n", "check", "job.toml")
    assert done.code == 2
    assert problem in done.err


def test_nor_does_what_spark_refuses_of_a_source(spark, cedr):
    job = JOB.replace("ANY(readings r)", "ANY(more r)") + KAFKA
    for command in (("check", "job.toml"), ("check", "job.toml", "--json"), ("run", "job.toml", "--once")):
        cedr(job, *command)


def test_nor_do_the_parts_of_a_job(tmp_path):
    job = to_postgres(f"postgresql://me:{MARKER}@h/db") + KAFKA
    job += f'[sinks.other]\nparquet = "s3://key:{MARKER}@bucket/a"\n'
    made = read(put(tmp_path, job.replace("[spark]", f'[spark]\ncheckpoint = "s3://key:{MARKER}@bucket/c"')))
    assert "hunter2" not in repr(made) + str(made.sinks) + str(made.sources) + repr(made.spark)
    assert "checkpoint='s3://***@bucket/c'" in repr(made.spark)
    assert str(made.sinks["other"]) == "parquet s3://***@bucket/a"
    assert str(made.sinks["hot"]) == "postgres host=h dbname=db user=me"


def test_settings_of_spark_may_be_secret(tmp_path):
    job = JOB + f'conf = {{ "spark.hadoop.fs.s3a.secret.key" = "{MARKER}", spark.x.token = "{MARKER}" }}\n'
    made = read(put(tmp_path, job))
    assert "hunter2" not in repr(made)
    assert {key: value.reveal() for key, value in made.spark.conf.items()} == {
        "spark.hadoop.fs.s3a.secret.key": MARKER,
        "spark.x.token": MARKER,
    }


# --- variables -----------------------------------------------------------------------------------------------------


def test_a_password_comes_from_the_environment_or_a_file(cedr, postgres, monkeypatch, tmp_path):
    awkward = f"{MARKER} @/:'\\%"
    monkeypatch.setenv("PG_PASSWORD", awkward)
    (tmp_path / "password").write_text(f"{awkward}\n")
    for place in ("${PG_PASSWORD}", "${file:password}", f"${{file:{tmp_path}/password}}"):
        table = f"{postgres.fresh_schema()}.hot"
        job = to_postgres(postgres.dsn, f'password = "{place}"\ntable = "{table}"')
        assert cedr(job, "run", "job.toml", "--local").code == 0
        assert read("job.toml").sinks["hot"].password.reveal() == awkward
        assert postgres.execute(f"SELECT count(*) > 0 FROM {table}") == [(True,)]


def test_any_text_may_have_variables(tmp_path, monkeypatch):
    monkeypatch.setenv("FOLDER", "data")
    monkeypatch.setenv("LIMIT", "0.8")
    job = JOB.replace("data/*.csv", "${FOLDER}/*.csv").replace("r.load > 0.5", "r.load > ${LIMIT}")
    made = read(put(tmp_path, job.replace("out/hot", "out/$${FOLDER}/${FOLDER}")))
    assert str(made.sources["readings"]) == f"files {tmp_path}/data/*.csv"
    assert made.sinks["hot"].target == f"{tmp_path}/out/${{FOLDER}}/data"
    assert "0.8" in made.streams["Hot"].explain()


MISTAKES = {
    "missing": ("${NOT_SET}", "13: sources.readings.vs: the environment variable NOT_SET is not set; set it"),
    "open": ("${NOT_SET", "13: sources.readings.vs: there is no } after ${; write ${NAME}"),
    "no name": ("${a b}", "13: sources.readings.vs: ${a b} is not a variable; write ${NAME}"),
    "no file": ("${file:nowhere}", "13: sources.readings.vs: ${file:nowhere}: "),
    "a folder": ("${file:data}", "13: sources.readings.vs: ${file:data}: "),
}


@pytest.mark.parametrize(("text", "problem"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_variable_that_is_missing_is_a_mistake_with_its_line(cedr, monkeypatch, text, problem):
    monkeypatch.delenv("NOT_SET", raising=False)
    done = cedr(JOB.replace('vs = "start"', f'vs = "{text}"'), "check", "job.toml")
    assert done.code == 2
    assert done.err.startswith(f"error: job.toml:{problem}")


@pytest.mark.parametrize("variable", ["${MY_TOKEN}", "${file:password}"])
def test_a_query_cannot_hold_a_secret(cedr, monkeypatch, tmp_path, variable):
    monkeypatch.setenv("MY_TOKEN", MARKER)
    (tmp_path / "password").write_text(MARKER)
    done = cedr(JOB.replace("r.load > 0.5", f"r.machine = '{variable}'"), "explain", "job.toml")
    assert done.code == 2
    assert f"job.toml:3: query.text: {variable} is a secret" in done.err


# --- the type ------------------------------------------------------------------------------------------------------


def test_a_secret_is_shown_nowhere():
    secret = Secret(MARKER)
    assert {str(secret), repr(secret), f"{secret}", f"{secret!r}", json.dumps(secret, default=str)} == {
        "***",
        '"***"',
    }
    assert f"{secret:>5}" == "  ***"
    assert (secret.reveal(), bool(secret), bool(Secret(""))) == (MARKER, True, False)
    assert (secret == Secret(MARKER), secret == MARKER, len({secret, Secret(MARKER)})) == (True, False, 1)
    assert copy.deepcopy(secret) is copy.copy(secret) is secret
    for dumps in (pickle.dumps, cloudpickle.dumps):
        with pytest.raises(TypeError, match="cannot be pickled"):
            dumps(secret)


def test_what_travels_to_shards_has_no_password():
    sink = sinks.postgres(Secret(f"postgresql://me:{MARKER}@h/db"), "t")
    sent = cloudpickle.dumps(sink)
    assert MARKER.encode() not in sent
    assert str(pickle.loads(sent)) == 'PostgreSQL table "t" at host=h dbname=db user=me'


def test_options_of_a_changelog_are_not_shown():
    sink = sinks.changelog("kafka", **{"kafka.sasl.jaas.config": f"password='{MARKER}'", "topic": "alerts"})
    assert "hunter2" not in repr(sink)
    assert "alerts" in repr(sink)


def test_errors_of_cedr_hide_secrets_that_others_put_in():
    Secret(MARKER)
    assert str(CedrError(f"the driver: cannot open x:{MARKER}@h")) == "the driver: cannot open x:***@h"
    assert "hunter2" not in repr(JobError("job.toml", 1, "k", f"about {MARKER}"))
    assert hidden(f"{Secret('true').reveal()} {Secret('1000').reveal()}") == "true 1000"
    Secret("abcd")
    assert hidden("abcd, abcde, xabcd") == "***, abcde, xabcd"


NAMES = "kafka.sasl.jaas.config sslPassword password spark.hadoop.fs.s3a.access.key SECRET auth_token a.key"
PLAIN = (
    "subscribe topic kafka.bootstrap.servers key.deserializer startingOffsets compass passive keys maxOffsetsPerTrigger"
)


def test_names_of_secrets():
    assert [name for name in NAMES.split() if not is_secret_name(name)] == []
    assert [name for name in PLAIN.split() if is_secret_name(name)] == []
    assert isinstance(concealed({"auth_token": "x"})["auth_token"], Secret)


def test_places_are_shown_without_credentials():
    assert without_credentials("s3://AKIA:wJalr/XU@bucket/a?region=eu&secret_key=abc") == (
        "s3://***@bucket/a?region=eu&secret_key=***"
    )
    assert without_credentials("out/a=b/hot") == "out/a=b/hot"
    with pytest.raises(CedrError) as raised:
        Folder(f"nofs://me:{MARKER}@bucket/a")
    assert "hunter2" not in "".join(traceback.format_exception(raised.value))
    assert str(raised.value).startswith("nofs://***@bucket/a cannot be used: ")
