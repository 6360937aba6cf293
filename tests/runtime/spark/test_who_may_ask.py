"""Who may talk to the process of a shard: tasks of the same user that know the secret, and nobody else.

The processes are real ones; only Spark is missing.
"""

import hashlib
import os
import pickle
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import polars as pl
import pytest

import cedr
from cedr.plan.nodes.level import Level
from cedr.plan.partitioning import staged
from cedr.runtime.spark.driver import job
from cedr.runtime.spark.driver.job import SparkJob, find_job, leave_job
from cedr.runtime.spark.reader.packer import Packer
from cedr.runtime.spark.shard import client, wire
from cedr.runtime.spark.shard.client import announce_query_end, executor_process, process_folder, request_answer
from cedr.runtime.spark.shard.state import SpillFile
from cedr.runtime.spark.shard.wire import RefusedError, accept, connect, listen
from cedr.storage.private import FolderError, check_private, make_private, read_private, secret_of

NOBODY = 65534
IS_ROOT = os.geteuid() == 0
OTHERS = ["mode", "link", "file", *(["owner"] if IS_ROOT else [])]
"""Ways in which a folder is not ours. Only root can give a folder to another user."""


@pytest.fixture
def folder():
    """Paths of sockets have to be short."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        yield Path(name)


@pytest.fixture
def packed(tmp_path, folder, monkeypatch):
    """A job whose shards listen in a folder of this test."""
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    query = cedr.source("readings", {"v": int}, vs="ts", delay=5).tumbling(10).agg(v=cedr.sum("v"))
    whole = SparkJob(
        staged(Level(query.plan)), 1, "run", "app", str(tmp_path), f"{tmp_path}/late", pl.Int64(), "changelog"
    )
    yield whole.packed()
    stop_shard(process_folder("app", executor_process()))


def packets(packed, batch):
    whole = packed.open()
    rows = pl.DataFrame({"ts": [20 * batch, 20 * batch + 12], "v": [1, 2]})
    return list(Packer(whole, "readings", 0, SpillFile(whole.folder, batch)).packets([rows]))


def shard_process(place):
    """The process that listens in a folder."""
    for found in Path("/proc").glob("[0-9]*"):
        try:
            if str(place / "0") in (found / "cmdline").read_text().split("\0"):
                return int(found.name)
        except OSError:
            continue
    return None


def stop_shard(place):
    if (process := shard_process(place)) is not None:
        os.kill(process, 9)


def taken_by_others(path, how, folder):
    """What an attacker has put where cedr wants a folder of its own."""
    match how:
        case "mode":
            path.mkdir()
            path.chmod(0o777)
        case "link":
            (folder / "elsewhere").mkdir(mode=0o700)
            path.symlink_to(folder / "elsewhere")
        case "file":
            path.touch()
        case "owner":
            path.mkdir(mode=0o700)
            os.chown(path, NOBODY, NOBODY)


@pytest.mark.parametrize("how", OTHERS)
def test_a_folder_that_others_have_prepared_is_refused(packed, folder, how):
    place = process_folder("app", executor_process())
    taken_by_others(place, how, folder)
    with pytest.raises(FolderError, match=rf"the folder {place} .*mode 0700\). Remove it, or set TMPDIR"):
        request_answer(packed, 1, 0, 0, packets(packed, 0))
    assert shard_process(place) is None
    announce_query_end("app", "run")  # does not connect there either


def test_a_shard_answers_and_its_folder_is_closed_to_others(packed):
    place = process_folder("app", executor_process())
    first = request_answer(packed, 1, 0, 0, packets(packed, 0))
    second = request_answer(packed, 1, 0, 1, packets(packed, 1))
    assert (first.metrics.rows_in, second.metrics.rows_in) == (2, 2)
    assert request_answer(packed, 1, 0, 1, packets(packed, 1)) == second
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) & 0o077 for file in place.glob("[0-9sj]*")} == {0}
    assert len(list(place.glob("job-*"))) == 1
    process = shard_process(place)
    announce_query_end("app", "run")
    assert list(place.glob("job-*")) == []
    assert request_answer(packed, 1, 0, 2, packets(packed, 2)).metrics.rows_in == 2
    assert shard_process(place) == process


def test_the_secret_is_random_and_nowhere_but_in_its_file(packed):
    request_answer(packed, 1, 0, 0, packets(packed, 0))
    place = process_folder("app", executor_process())
    secret, process = (place / "secret").read_bytes(), shard_process(place)
    assert len(secret) == 32
    for file in ("cmdline", "environ"):
        shown = Path(f"/proc/{process}/{file}").read_bytes()
        assert secret not in shown
        assert secret.hex().encode() not in shown
    derived = [
        hashlib.blake2b(place.name.encode(), digest_size=16).digest(),
        hashlib.sha256(place.name.encode()).digest(),
    ]
    assert not any(value in secret for value in derived)
    other = place.with_name("another")
    make_private(other)
    assert secret_of(other) != secret
    assert secret_of(other) == secret_of(other)


class Bomb:
    """Pickled, it creates a file when it is opened."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return (os.mkdir, (str(self.file),))


def test_pickles_are_opened_neither_before_nor_after_the_proof(packed, folder):
    """In every place of a message where bytes can be, and from a task that knows the secret, too."""
    request_answer(packed, 1, 0, 0, packets(packed, 0))
    place, boom = process_folder("app", executor_process()), folder / "boom"
    bomb, address, secret = pickle.dumps(Bomb(boom)), place / "0", secret_of(place)
    process = shard_process(place)
    with socket.socket(socket.AF_UNIX) as raw:  # what `multiprocessing` sends
        raw.connect(str(address))
        raw.sendall(len(bomb).to_bytes(4, "big") + bomb)
    column = [[1], [0], ["progress"], [-1], [0], [0], [0]]
    digest = hashlib.sha256(bomb).hexdigest()
    for head, parts in [
        (["work", "run", packed.digest, 1, 0, 1, column], [bomb, bomb]),
        (["work", "new", digest, 1, 0, 1, column], [bomb, bomb]),
        (["work", "new", "../../boom", 1, 0, 1, column], [bomb, bomb]),
        (["open", bomb.hex()], [bomb]),
    ]:
        with connect(address, secret) as connection:
            connection.send(head, parts)
            try:
                answer, _ = connection.receive()
            except EOFError:
                answer = ["closed"]
            assert answer[0] in ("error", "job?", "closed")
    sizes = [(len(bomb), 0), (2**32 - 1, 0), (0, 2**32 - 1)]  # the last ones are larger than anything that is allowed
    for size, count in sizes:
        with connect(address, secret) as connection:
            connection.connection.sendall(connection.first + wire._counts.pack(size, count) + bomb)
            with pytest.raises((EOFError, ConnectionError)):
                connection.receive()
    assert shard_process(place) == process
    assert request_answer(packed, 1, 0, 1, packets(packed, 1)).metrics.rows_in == 2
    stop_shard(place)  # what has reached the log is read again
    assert request_answer(packed, 1, 0, 2, packets(packed, 2)).metrics.rows_in == 2
    assert not boom.exists()
    pickle.loads(bomb)
    assert boom.exists()


def listening(folder, secret, accepted):
    """A process of a shard that takes one connection."""
    make_private(folder)
    listener = listen(folder / "0")

    def run():
        with listener:
            try:
                with accept(listener, secret) as connection:
                    accepted.append(connection.receive())
                    connection.send(["answer"])
            except (OSError, EOFError) as e:
                accepted.append(e)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_a_wrong_secret_is_refused_by_both_sides(folder):
    accepted = []
    thread = listening(folder / "s", b"a" * 32, accepted)
    assert connect(folder / "s" / "0", b"b" * 32) is None  # the task does not trust that process
    thread.join()
    assert isinstance(accepted[0], EOFError)
    accepted = []
    (folder / "s" / "0").unlink()
    thread = listening(folder / "s", b"a" * 32, accepted)
    with socket.socket(socket.AF_UNIX) as raw:
        raw.connect(str(folder / "s" / "0"))
        raw.sendall(b"x" * 32)
        raw.recv(64)
        raw.sendall(b"x" * 32)  # the process does not trust that task
        assert raw.recv(1) == b""
    thread.join()
    assert isinstance(accepted[0], RefusedError)


def test_an_answer_to_a_challenge_is_of_no_use_to_the_other_side(folder):
    """Who knows nothing sends back what it has got."""
    accepted = []
    thread = listening(folder / "s", b"a" * 32, accepted)
    with socket.socket(socket.AF_UNIX) as raw:
        raw.connect(str(folder / "s" / "0"))
        raw.sendall(b"x" * 32)
        answer = raw.recv(64)
        raw.sendall(answer[32:])
        assert raw.recv(1) == b""
    thread.join()
    assert isinstance(accepted[0], RefusedError)


INTRUDER = """
import os, socket, sys
os.setgid({nobody}); os.setuid({nobody})
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(b"x" * 32)
print(len(s.recv(64)))
"""


@pytest.mark.skipif(not IS_ROOT, reason="only root can start a process of another user")
def test_other_users_are_refused_even_where_they_can_reach_the_socket(folder):
    accepted = []
    thread = listening(folder / "s", b"a" * 32, accepted)
    for path in (folder, folder / "s", folder / "s" / "0"):
        path.chmod(0o777)
    script = INTRUDER.format(nobody=NOBODY)
    done = subprocess.run(
        [sys.executable, "-c", script, folder / "s" / "0"], capture_output=True, text=True, check=False
    )
    thread.join()
    assert done.stdout.strip() in ("0", "")
    assert str(accepted[0]) == f"the other end belongs to user {NOBODY}"


@pytest.mark.skipif(not IS_ROOT, reason="only root can start a process of another user")
def test_a_process_of_another_user_is_not_asked(folder):
    """It listens where ours should, and answers."""
    folder.chmod(0o777)
    script = (
        f"import os, socket\nos.setgid({NOBODY}); os.setuid({NOBODY})\ns = socket.socket(socket.AF_UNIX)\n"
        f"s.bind('{folder}/0'); s.listen()\nprint('ready', flush=True)\nc, _ = s.accept()\nprint(c.recv(32))"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "ready\n"
        assert connect(folder / "0", b"a" * 32) is None
        assert other.stdout.read().strip() == "b''"


def test_messages_come_through_whole(folder):
    accepted = []
    parts = [b"", b"a", bytes(3_000_000), *(b"%d" % n for n in range(2_000))]
    thread = listening(folder / "s", b"a" * 32, accepted)
    with connect(folder / "s" / "0", b"a" * 32) as connection:
        connection.send(["work", {"é": [1, None]}], parts)
        assert connection.receive() == (["answer"], [])
    thread.join()
    assert accepted == [(["work", {"é": [1, None]}], parts)]


def test_messages_that_are_too_large_are_not_sent(folder, monkeypatch):
    monkeypatch.setattr(wire, "MAX_PART", 10)
    with pytest.raises(cedr.CedrError, match="2 parts of up to 11 bytes, and the maximum is 10: use more shards"):
        wire.Wire(None).send([], [b"", b"x" * 11])


@pytest.mark.parametrize("how", ["mode", "link", "size", *(["owner"] if IS_ROOT else [])])
def test_a_secret_that_others_know_is_refused(folder, how):
    make_private(folder / "s")
    secret_of(folder / "s")
    file = folder / "s" / "secret"
    match how:
        case "mode":
            file.chmod(0o644)
        case "link":
            file.rename(folder / "secret")
            file.symlink_to(folder / "secret")
        case "size":
            file.write_bytes(b"")
        case "owner":
            os.chown(file, NOBODY, NOBODY)
    with pytest.raises(
        OSError, match=r"symbolic link" if how == "link" else r"remove the folder .*; cedr creates it again"
    ):
        secret_of(folder / "s")


def test_only_a_job_that_was_left_whole_is_opened(folder, packed):
    make_private(folder / "s")
    assert find_job(folder / "s", "run", packed.digest) is None
    leave_job(folder / "s", packed)
    leave_job(folder / "s", packed)
    assert find_job(folder / "s", "run", packed.digest).content == packed.content
    assert [file.name for file in (folder / "s").iterdir()] == [f"job-{packed.digest}"]
    file = job.job_file(folder / "s", packed.digest)
    file.write_bytes(b"other")
    assert find_job(folder / "s", "run", packed.digest) is None
    file.chmod(0o666)
    with pytest.raises(FolderError, match="has mode 0666"):
        find_job(folder / "s", "run", packed.digest)


def test_a_folder_of_ours_is_accepted_again(folder):
    make_private(folder / "s")
    make_private(folder / "s")
    check_private(folder / "s")
    (folder / "s").chmod(0o2700)  # as in a folder whose group is inherited
    check_private(folder / "s")
    with pytest.raises(FileNotFoundError):
        read_private(folder / "s" / "nothing")


def test_names_of_folders_cannot_be_guessed():
    assert client.unguessable_name("app-1") == client.unguessable_name("app-1")
    assert len(client.unguessable_name("app-1")) == len("app-1-") + 16
    assert client.unguessable_name("app-1") != client.unguessable_name("app-2").replace("2", "1", 1)


def test_a_folder_that_was_removed_is_made_again(packed):
    """As by a program that removes old temporary files. The process that nobody can find any more ends."""
    request_answer(packed, 1, 0, 0, packets(packed, 0))
    place = process_folder("app", executor_process())
    lost = shard_process(place)
    shutil.rmtree(place)
    assert request_answer(packed, 1, 0, 1, packets(packed, 1)).metrics.rows_in == 2
    wait_for_end(lost)


def wait_for_end(process):
    """Of a process that was started by this one: it takes note of the end."""
    os.waitpid(process, 0)
