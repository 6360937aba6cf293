"""Spark and cedr reach remote stores with the same settings, which nothing prints."""

import base64

import pytest

import cedr
from cedr.runtime.spark.driver.remote import check_connector, hadoop_settings, share_settings
from cedr.runtime.spark.reader.source import JOB, read_files
from cedr.secret import hidden
from cedr.storage import remote_settings
from cedr.temporal import CedrError

ENDPOINT, KEY, SECRET = "http://127.0.0.1:9", "a-key-of-the-environment", "the secret of the environment"
NAMES = ("endpoint", "access.key", "secret.key", "endpoint.region", "path.style.access")


@pytest.fixture
def hadoop(spark):
    """Hadoop's settings of the session; those of S3 are taken back."""
    found = hadoop_settings(spark)
    before = {f"fs.s3a.{name}": found.get(f"fs.s3a.{name}") for name in NAMES}
    ours = remote_settings.current()
    yield found
    for name, value in before.items():
        found.unset(name) if value is None else found.set(name, value)
    remote_settings.use(ours.values)


def test_spark_gets_what_only_the_environment_has(spark, hadoop, monkeypatch):
    for name, value in {"ACCESS_KEY_ID": KEY, "SECRET_ACCESS_KEY": SECRET, "ENDPOINT_URL": ENDPOINT}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    found = share_settings(spark).s3("bucket")
    assert (found["access_key_id"], found["secret_access_key"], found["endpoint"]) == (KEY, SECRET, ENDPOINT)
    assert [hadoop.get(f"fs.s3a.{n}") for n in NAMES[:3]] == [ENDPOINT, KEY, SECRET]
    assert hadoop.get("fs.s3a.path.style.access") == "true"
    assert hidden(f"{SECRET}!") == "***!"


def test_spark_s_keys_are_not_mixed_with_those_of_the_environment(spark, hadoop, monkeypatch):
    hadoop.set("fs.s3a.access.key", "spark-has-this-key")
    hadoop.set("fs.s3a.secret.key", "and this secret")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a token of the environment")
    found = share_settings(spark).s3("bucket")
    assert found["access_key_id"] == "spark-has-this-key"
    assert "session_token" not in found


def test_spark_does_not_print_the_job_of_a_source(spark, hadoop, tmp_path):
    hadoop.set("fs.s3a.secret.key", SECRET)
    share_settings(spark)
    (tmp_path / "a.csv").write_text("ts\n1\n")
    source = cedr.source("feed", {"ts": int}, vs="ts").plan
    frame = read_files(spark, cedr.files(tmp_path, "csv"), source, list, "value int")
    shown = frame._jdf.queryExecution().toString()
    for start in range(3):  # wherever it begins in a group of three bytes
        assert base64.b64encode(SECRET.encode()[start : start + 24])[:-4].decode() not in shown
    assert "secret" in JOB, "Spark does not print such options"


def test_a_missing_connector_is_named(spark, tmp_path):
    check_connector(spark, str(tmp_path))
    with pytest.raises(CedrError, match=r"Spark has no connector for .*://.*; .* when you start the session"):
        check_connector(spark, "gs://bucket/checkpoint")
