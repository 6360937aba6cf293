"""Bytewax answers one question: `python run.py hopping FOLDER OUT`, by the contract of `peers/turn.py`.

Two processes of one worker each, as threads would share one interpreter. Each reads the rows of
every other key, in order of arrival: the readers of Bytewax do not wait for each other, and a key that two of them
read would see events that are later than 5 s. The clock of a key is 5 s behind its latest event and does not move
between events: the input is historical, so the time of day plays no role.
"""

import json
import socket
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
from auctions import UNABLE
from bytewax.testing import cluster_main
from flows import flow

PROCESSES = 2


def addresses() -> list[str]:
    """Free ports of this machine, one for each process."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(PROCESSES)]
    found = [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]
    for s in sockets:
        s.close()
    return found


def process(number: int, name: str, places: list[dict[str, str]]) -> None:
    """One of the processes, through all passes; returns when it first read and when it was done."""
    emitted = []
    for place in places:
        out = Path(place["out"]) / f"{number}.parquet"
        dataflow, clock = flow(name, Path(place["folder"]), out)
        cluster_main(dataflow, place["addresses"], number)
        emitted.append({"start": clock.first, "end": time.time()})
    print(json.dumps(emitted))


def main(name: str, folder: str, out: str) -> None:
    if name in UNABLE:
        print(json.dumps({"unable": UNABLE[name]}))
        return
    places = []
    for part in ("warm", "in"):
        (Path(out) / part).mkdir()
        places.append({"folder": f"{folder}/{part}", "out": f"{out}/{part}", "addresses": addresses()})
    command = [sys.executable, __file__, name, json.dumps(places)]
    running = [subprocess.Popen([*command, str(n)], stdout=subprocess.PIPE, text=True) for n in range(PROCESSES)]
    outputs = [program.communicate()[0] for program in running]
    if any(program.returncode for program in running):
        sys.exit("a process failed")
    last = [json.loads(text.splitlines()[-1])[-1] for text in outputs]
    seconds = max(emitted["end"] for emitted in last) - min(emitted["start"] for emitted in last)
    parts = [pyarrow.parquet.read_table(path) for path in sorted((Path(out) / "in").iterdir())]
    pyarrow.parquet.write_table(pa.concat_tables(parts), Path(out) / "answer.parquet")
    print(json.dumps({"seconds": seconds, "version": f"Bytewax {version('bytewax')}"}))


if __name__ == "__main__":
    if sys.argv[3].isdigit():
        process(int(sys.argv[3]), sys.argv[1], json.loads(sys.argv[2]))
    else:
        main(*sys.argv[1:])
