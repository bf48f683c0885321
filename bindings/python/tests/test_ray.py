"""Data sets of Ray: the rows that stay are those of the engine on one machine.

Ray listens on all interfaces: these tests run where there is none but loopback.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import nearsift as ns
from conftest import edited_documents

pa = pytest.importorskip("pyarrow")
ray = pytest.importorskip("ray")
pytest.importorskip("ray.data")

def has_network() -> bool:
    """Whether there is a way to another host. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return False
    return True


if has_network():
    pytest.skip("there is a network, on which Ray would listen", allow_module_level=True)


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, _node_ip_address="127.0.0.1", log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


def check_same(found: Any, table: Any, expected: Any) -> None:
    rows = pa.concat_tables(ray.get(found.marked.to_arrow_refs())).sort_by("at")
    assert rows["text"].to_pylist() == table["text"].to_pylist()
    for column in expected.column_names:
        assert rows[column].to_pylist() == expected[column].to_pylist(), column
    assert found.kept.count() == found.summary["kept"] == sum(expected["kept"].to_pylist())
    assert found.removed.count() == table.num_rows - found.summary["kept"]


@pytest.mark.parametrize(("count", "settings"), [(200_000, {"max_distance": 3}), (30_000, {})])
def test_rows_are_those_of_one_machine(tmp_path: Path, count: int, settings: dict[str, Any]) -> None:
    from nearsift import ray as of_ray

    table = edited_documents(count)
    expected = ns.dedup(table, id="id", **settings).table.to_pyarrow()
    data = ray.data.from_arrow([table.slice(start, 10_000) for start in range(0, count, 10_000)]).random_shuffle(seed=1)
    found = of_ray.dedup(data, order_by="at", results=tmp_path / "results", **settings)
    check_same(found, table, expected)
    assert ns.Run(tmp_path / "results").summary["kept"] == found.summary["kept"]


def test_a_worker_that_is_killed_costs_nothing() -> None:
    from nearsift import ray as of_ray

    table = edited_documents(60_000)
    expected = ns.dedup(table, id="id").table.to_pyarrow()
    data = ray.data.from_arrow([table.slice(start, 3_000) for start in range(0, 60_000, 3_000)])
    killed: list[int] = []

    def kill() -> None:
        for _ in range(2000):
            time.sleep(0.005)
            for process in Path("/proc").iterdir():
                try:
                    name = (process / "cmdline").read_bytes()
                except OSError:
                    continue
                if b"ray::" in name and b"MapBatches(_sketch)" in name:
                    os.kill(int(process.name), signal.SIGKILL)
                    killed.append(int(process.name))
                    return

    killer = threading.Thread(target=kill)
    killer.start()
    found = of_ray.dedup(data)
    killer.join()
    assert killed, "a worker was killed while it sketched"
    check_same(found, table, expected)


def test_what_cannot_be_is_said() -> None:
    from nearsift import ray as of_ray

    def check(columns: dict[str, list[Any]], says: str, kind: type[Exception], **settings: Any) -> None:
        with pytest.raises(kind, match=re.escape(says)):
            of_ray.dedup(ray.data.from_arrow(pa.table(columns)), **settings)

    two = {"id": ["a", "b"], "text": ["今天北京晴，气温十度。", "明天上海有雨，气温九度。"]}
    check(two | {"id": ["a", None]}, "column 'id' has rows without an id: fill them", ns.InputError)
    check(two | {"id": ["a", "a"]}, "1 rows have an id that another row has, too", ns.InputError)
    check(two, "no column 'body': the columns are id, text", ns.SettingError, text="body")
    check(two | {"kept": [1, 2]}, "mark_names: there is a column 'kept' already", ns.SettingError)
    check(two | {"text": pa.array([None, None], pa.string())}, "no row has a text", ns.InputError)
