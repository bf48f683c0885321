"""Spark standalone on this machine: a master and two workers of the program `spark-class`, one of which is killed at work.

    python standalone.py --fingerprints 2000000 --texts 1000000

Every row must get what the engine decides on one machine, also when a worker and its executor are killed and the folders of the worker are
removed; then at least one task must have been attempted again. Everything listens on loopback.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
from conftest import LETTERS, edited_documents

import nearsift as ns
from nearsift import spark as of_spark

MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"


def fingerprinted(count: int) -> Any:
    """Documents with one text that a twentieth of them have, and a chain of a fiftieth, each like the next."""
    same, chain = count // 20, count // 50
    draw = random.Random(9)
    roll = "".join(draw.choice(LETTERS) for _ in range(chain + 64))
    texts = [roll[:64]] * same + [roll[at : at + 64] for at in range(chain)]
    plain = edited_documents(count - len(texts))
    texts += plain["text"].to_pylist()
    order = list(range(count))
    draw.shuffle(order)
    return pa.table({"id": list(range(count)), "text": pa.array(texts).take(order), "at": list(range(count))})


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A master and two workers, each with a core and a folder of its own."""
    spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"spark://127.0.0.1:{port}"

    def start(name: str, *arguments: str) -> subprocess.Popen[bytes]:
        home = folder / name
        home.mkdir()
        environment = os.environ | {
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(home / "local"),
            "PYSPARK_PYTHON": sys.executable,
        }
        log = (home / "log").open("wb")
        return subprocess.Popen([spark_class, *arguments], env=environment, stdout=log, stderr=log, start_new_session=True)

    processes = [start("master", MASTER, "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")]
    time.sleep(5)
    for name in ["worker-0", "worker-1"]:
        more = ["--cores", "1", "--memory", "3g", "--work-dir", str(folder / name / "work"), "--webui-port", "0"]
        processes.append(start(name, WORKER, "--host", "127.0.0.1", *more, url))
    try:
        yield url, processes[1:]
    finally:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def events(folder: Path) -> list[dict[str, Any]]:
    """What happened so far."""
    lines = [line for path in sorted(folder.rglob("*")) if path.is_file() for line in path.read_text(errors="replace").splitlines()]
    found = []
    for line in lines:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return [event for event in found if isinstance(event, dict)]


def executors_of(worker: subprocess.Popen[bytes]) -> list[int]:
    """The processes that a worker has started."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid"], check=True, capture_output=True, text=True).stdout.split("\n")[1:]
    parents = {int(pid): int(parent) for pid, parent in (line.split() for line in listed if line.strip())}
    own = {worker.pid}
    while more := {pid for pid, parent in parents.items() if parent in own} - own:
        own |= more
    return sorted(own)


def kill_at_work(worker: subprocess.Popen[bytes], home: Path, work: Path) -> None:
    """Kills a worker and its executor, and removes its folders, once the first parts are being written."""
    while not any(work.glob("sketches-*/_temporary/**/part-*")):
        time.sleep(0.02)
    for process in executors_of(worker):
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue
    shutil.rmtree(home / "local", ignore_errors=True)
    shutil.rmtree(home / "work", ignore_errors=True)


def check(table: Any, settings: dict[str, Any], killing: bool) -> dict[str, Any]:
    """One deduplication, beside that of the engine on one machine."""
    from pyspark.sql import SparkSession

    begun = time.monotonic()
    expected = ns.dedup(table, id="id", **settings).table.to_pyarrow()
    took = {"rows": table.num_rows, "one_machine_seconds": round(time.monotonic() - begun, 1), "killed": killing}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").mkdir()
        (folder / "log").mkdir()
        for number in range(8):
            pq.write_table(table.take(list(range(number, table.num_rows, 8))), folder / f"in/{number}.parquet")
        with cluster(folder) as (url, workers):
            begun = time.monotonic()
            builder = SparkSession.builder.master(url).config("spark.driver.host", "127.0.0.1")
            of_run = {
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.ui.enabled": "false",
                "spark.eventLog.enabled": "true",
                "spark.eventLog.compress": "false",
                "spark.eventLog.rolling.enabled": "false",
                "spark.eventLog.dir": f"file://{folder}/log",
                "spark.executor.memory": "2g",
                "spark.driver.memory": "3g",
                "spark.driver.maxResultSize": "4g",
                "spark.sql.execution.arrow.pyspark.enabled": "true",
                "spark.network.timeout": "60s",
                "spark.executor.heartbeatInterval": "5s",
            }
            for setting, value in of_run.items():
                builder = builder.config(setting, value)
            spark = builder.getOrCreate()
            took["session_seconds"] = round(time.monotonic() - begun, 1)
            if killing:
                arguments = (workers[0], folder / "worker-0", folder / "work")
                threading.Thread(target=kill_at_work, args=arguments, daemon=True).start()
            begun = time.monotonic()
            df = spark.read.parquet(f"file://{folder}/in")
            found = of_spark.dedup(df, work=f"file://{folder}/work", order_by="at", parts=16, **settings)
            took["decided_seconds"] = round(time.monotonic() - begun, 1)
            found.marked.write.parquet(f"file://{folder}/marked")
            took["written_seconds"] = round(time.monotonic() - begun, 1)
            spark.stop()
        rows = pq.read_table(folder / "marked").sort_by("at")
        assert rows["text"].to_pylist() == table["text"].to_pylist()
        for column in expected.column_names:
            assert rows[column].to_pylist() == expected[column].to_pylist(), column
        ended = [event for event in events(folder / "log") if event.get("Event") == "SparkListenerTaskEnd"]
        attempts = [event["Task Info"]["Attempt"] + event["Stage Attempt ID"] for event in ended]
        took["tasks"] = len(ended)
        took["attempted_again"] = sum(attempt > 0 for attempt in attempts)
        took["kept"] = found.summary["kept"]
        assert not killing or took["attempted_again"] > 0, "a task was attempted again"
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fingerprints", type=int, default=2_000_000, help="rows of the run by SimHash")
    parser.add_argument("--texts", type=int, default=1_000_000, help="rows of the runs by sketches")
    given = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    for table, settings, killing in [
        (fingerprinted(given.fingerprints), {"max_distance": 3}, False),
        (fingerprinted(given.fingerprints), {"max_distance": 3}, True),
        (edited_documents(given.texts), {}, True),
    ]:
        print(json.dumps(check(table, settings, killing)), flush=True)


if __name__ == "__main__":
    main()
