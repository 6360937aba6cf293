"""Remote storage, on a real S3 server: what files in a bucket promise, whose settings count, and what errors say."""

import pickle
import socket
import threading
import time

import pytest
from s3_server import KEY, SECRET

from cedr.secret import hidden
from cedr.storage import remote_settings
from cedr.storage.folder import Folder
from cedr.storage.remote import RemoteError, for_spark, store_of
from cedr.storage.remote_settings import RemoteSettings
from cedr.temporal import CedrError
from cedr.temporal.errors import DamagedFileError

NOBODY_LISTENS = "http://127.0.0.1:9"


@pytest.fixture
def settings():
    """Settings of this process, which the test may change."""
    before = remote_settings.current()
    yield remote_settings.use
    remote_settings.use(before.values)


def test_a_folder_has_files_and_folders(bucket):
    folder = Folder(f"{bucket}/a", label="a")
    assert (folder.names(), folder.subfolders(), folder.path_is_there) == ([], [], False)
    folder.make()
    folder.write("x", b"one")
    folder.sub("b").write("y", b"two")
    folder.sub("b").sub("c").write("z", b"three")
    assert (folder.names(), folder.subfolders(), folder.path_is_there) == (["x"], ["b"], True)
    assert folder.sub("b").names() == ["y"]
    assert folder.has("x")
    assert not folder.has("b")
    assert folder.sub("b/c").read("z") == b"three"
    folder.remove(["x", "missing"])
    assert folder.find("x") is None
    assert Folder(bucket.replace("s3a", "s3") + "/a/b", label="a/b").read("y") == b"two"


def test_of_many_that_create_a_file_at_once_one_does(bucket):
    """Each writer has its own connections, as other machines have. The content is large, so that the puts overlap."""
    store, path = store_of(f"{bucket}/many")
    for round_ in range(5):
        won: list[int] = []
        start = threading.Barrier(8)

        def write(number: int, file: str = f"{path}/{round_}", won: list[int] = won, start=start) -> None:
            start.wait()
            if store.create(file, b"%d" % number * 200_000):
                won.append(number)

        writers = [threading.Thread(target=write, args=(n,)) for n in range(8)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert len(won) == 1
        assert store.read(f"{path}/{round_}") == b"%d" % won[0] * 200_000


def test_damage_is_noticed(bucket):
    folder = Folder(f"{bucket}/a")
    folder.write("x", b"content")
    folder.write_plain("x", folder.find_plain("x").replace(b"content", b"contend"))
    with pytest.raises(DamagedFileError, match=rf"damaged file {bucket}/a/x: its content does not match"):
        folder.read("x")


def test_what_others_left_is_swept(bucket):
    folder = Folder(f"{bucket}/a")
    hidden_name = f".x.{'0' * 32}"
    folder.sub("b").write_plain(hidden_name, b"half")
    folder.sub("b").write_plain("x", b"whole")
    folder.sweep()
    assert folder.sub("b").find_plain(hidden_name) is None
    assert folder.sub("b").find_plain("x") == b"whole"


def test_a_folder_that_is_pickled_has_no_keys(bucket):
    folder = Folder(f"{bucket}/a")
    folder.write("x", b"one")
    sent = pickle.dumps(folder)
    assert SECRET.encode() not in sent
    assert pickle.loads(sent).read("x") == b"one"


# --- settings --------------------------------------------------------------------------------------------------------


def test_settings_apply_where_they_are_unpickled(settings):
    sent = pickle.dumps(RemoteSettings({"fs.s3a.access.key": KEY, "fs.s3a.secret.key": SECRET}))
    assert remote_settings.current().s3("b").get("access_key_id") != KEY
    pickle.loads(sent)
    assert remote_settings.current().s3("b")["access_key_id"] == KEY
    assert SECRET not in repr(remote_settings.current())
    assert hidden(f"the secret is {SECRET}") == "the secret is ***"


def test_spark_s_settings_precede_the_environment(settings, monkeypatch):
    for name, value in {
        "ACCESS_KEY_ID": "theirs",
        "SECRET_ACCESS_KEY": "their secret",
        "SESSION_TOKEN": "token",
    }.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", NOBODY_LISTENS)
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    settings({})
    assert remote_settings.current().s3("b") == {
        "access_key_id": "theirs",
        "secret_access_key": "their secret",
        "session_token": "token",
        "endpoint": NOBODY_LISTENS,
        "region": "eu-central-1",
    }
    settings({"fs.s3a.access.key": KEY, "fs.s3a.secret.key": SECRET, "fs.s3a.bucket.b.endpoint.region": "us-east-2"})
    ours = {"access_key_id": KEY, "secret_access_key": SECRET, "endpoint": NOBODY_LISTENS}
    assert remote_settings.current().s3("b") == {**ours, "region": "us-east-2"}
    assert remote_settings.current().s3("c") == {**ours, "region": "eu-central-1"}


def test_settings_of_a_session_to_come(settings):
    conf = {"spark.hadoop.fs.s3a.access.key": KEY, "spark.hadoop.fs.s3a.fast.upload": "true", "spark.master": "local"}
    assert remote_settings.of_spark(conf) == {"fs.s3a.access.key": KEY}


def test_endpoints_without_a_scheme(settings):
    settings({"fs.s3a.endpoint": "localhost:9000"})
    assert remote_settings.current().s3("b")["endpoint"] == "https://localhost:9000"
    settings({"fs.s3a.endpoint": "localhost:9000", "fs.s3a.connection.ssl.enabled": "false"})
    assert remote_settings.current().s3("b")["endpoint"] == "http://localhost:9000"
    settings({"fs.s3a.endpoint": "s3.eu-central-1.amazonaws.com", "fs.s3a.endpoint.region": "eu-central-1"})
    assert "endpoint" not in remote_settings.current().s3("b")


def test_keys_of_azure_and_google(settings):
    host = "acc.dfs.core.windows.net"
    settings({f"fs.azure.account.key.{host}": "a2V5", "fs.gs.auth.service.account.json.keyfile": "/k.json"})
    assert remote_settings.current().azure("acc", "box") == {"account_name": "acc", "account_key": "a2V5"}
    assert remote_settings.current().azure("other", "box") == {"account_name": "other"}
    assert remote_settings.current().gs() == {"service_account": "/k.json"}
    assert store_of(f"abfss://box@{host}/a//b/")[1] == "a/b"


def test_keys_in_a_uri(s3, settings):
    name = s3.new_bucket()
    settings({"fs.s3a.endpoint": s3.url})
    folder = Folder(f"s3://{KEY}:{SECRET.replace(' ', '%20')}@{name}/a")
    folder.write("x", b"one")
    assert folder.read("x") == b"one"
    with pytest.raises(DamagedFileError) as caught:
        raise folder.damaged("x", "it is not")
    assert SECRET not in str(caught.value)
    assert "s3://***@" in str(caught.value)


def test_spark_knows_s3_as_s3a():
    assert for_spark("s3://bucket/s3://x") == "s3a://bucket/s3://x"
    assert for_spark("gs://bucket/x") == "gs://bucket/x"
    assert for_spark("/s3/x") == "/s3/x"


# --- errors ----------------------------------------------------------------------------------------------------------


def every_use(place: str):
    folder = Folder(place)
    return [
        folder.names,
        lambda: folder.read("x"),
        lambda: folder.write("x", b"1"),
        lambda: folder.write_once("x", b"1"),
        folder.sweep,
    ]


def test_a_missing_bucket_is_named(s3, settings):
    settings(s3.hadoop)
    for use in every_use("s3a://no-such-bucket/a"):
        with pytest.raises(RemoteError, match=rf"no-such-bucket/a.* no such bucket at {s3.url}; create it"):
            use()


@pytest.mark.parametrize(
    ("key", "wrong", "code"),
    [("secret.key", "another secret", "SignatureDoesNotMatch"), ("access.key", "somebody", "UserNotFound")],
)
def test_wrong_credentials_are_refused(s3, settings, key, wrong, code):
    name = s3.new_bucket()
    settings({**s3.hadoop, f"fs.s3a.{key}": wrong})
    for use in every_use(f"s3a://{name}/a"):
        with pytest.raises(RemoteError) as caught:
            use()
        assert "refuses the credentials" in str(caught.value)
        assert code in str(caught.value)
        assert "another secret" not in str(caught.value)


def test_an_endpoint_that_does_not_answer_is_named(s3, settings):
    settings({**s3.hadoop, "fs.s3a.endpoint": NOBODY_LISTENS})
    begin = time.monotonic()
    with pytest.raises(RemoteError, match=f"there is no answer from {NOBODY_LISTENS}; check the network, and the end"):
        Folder("s3a://bucket/a").names()
    assert time.monotonic() - begin < 30


def test_missing_credentials_are_reported_with_the_machine(s3, settings, monkeypatch):
    """Which may be that of an executor."""
    for names in remote_settings.S3_ENVIRONMENT.values():
        for name in names:
            monkeypatch.delenv(name, raising=False)
    settings({"fs.s3a.endpoint": s3.url})
    with pytest.raises(
        RemoteError, match=rf"there are no credentials for it on {socket.gethostname()}, neither in Spa"
    ):
        Folder("s3a://bucket/a").names()


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("s3:///a", "it has the form s3://bucket/path"),
        ("abfss://box/a", "it has the form abfss://container@account.dfs.core.windows.net/path"),
        ("s3://bucket/a?region=eu", r"cannot have the character '\?'"),
        ("hdfs://localhost/a", "HDFS is reached through Arrow, which needs libhdfs of a Hadoop installation on every"),
        ("ftp://host/a", "cannot be used"),
    ],
)
def test_places_that_are_none(place, message):
    with pytest.raises(CedrError, match=message):
        Folder(place).names()
