"""Deduplication gives what the program gives, stops when it is interrupted, and leaves nothing behind."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import datasets
import duckdb
import pandas as pd
import polars as pl
import pytest

import nearsift as ns
from conftest import TEXTS


def documents(count: int) -> list[str]:
    """Documents of some hundreds of letters; every fourth is near to one before."""
    words = ["河流", "城市", "会议", "报告", "学生", "天气", "经济", "音乐", "科学", "历史", "火车", "图书", "项目", "医院"]
    made = []
    for number in range(count):
        seed = (number // 4 if number % 4 else number * 7919) + 1
        text = []
        for _ in range(120):
            seed = seed * 6364136223846793005 % 2**64 + 1442695040888963407
            text.append(words[(seed >> 40) % 14])
        made.append("".join(text) + f"第{number}号")
    return made


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    "settings",
    [{}, {"min_score": 0.4}, {"max_distance": 6}, {"keep": "longest"}, {"cluster": "components"}, {"verify": False}],
    ids=str,
)
def test_a_table_gives_what_the_program_gives(corpus: Path, tmp_path: Path, settings: dict[str, Any]) -> None:
    run = ns.dedup_files(corpus, tmp_path / "out", **settings)
    found = ns.dedup(rows_of(corpus), id="id", **settings)
    removed = {row["id"]: row for row in found.table.to_pylist() if row["reason"]}
    assert removed.keys() == {line["id"] for line in run.removed}
    for line in run.removed:
        row = removed[line["id"]]
        assert (row["representative"], row["reason"]) == (line["representative"], line["reason"])
        assert row["score"] == line.get("score")
        assert row["cluster"] == line["cluster"]
    assert found.summary["groups"] == run.summary["groups"]
    pairs = {(pair["a"], pair["b"], pair["score"]) for pair in found.pairs.to_pylist()}
    assert pairs == {(pair["a"], pair["b"], pair["score"]) for pair in run.pairs}


def test_the_folder_is_that_of_the_program(corpus: Path, tmp_path: Path) -> None:
    ns.dedup_files(corpus, tmp_path / "here")
    program = [sys.executable, "-m", "nearsift", "dedup", str(corpus), "--output", str(tmp_path / "there"), "-q"]
    assert subprocess.run(program, check=False).returncode in (0, 3)
    for path in sorted((tmp_path / "there").rglob("*")):
        if path.is_file() and path.suffix != ".html":
            here = tmp_path / "here" / path.relative_to(tmp_path / "there")
            assert here.read_bytes() == path.read_bytes(), path.name


def test_the_report_is_in_the_language_that_is_asked(corpus: Path, tmp_path: Path) -> None:
    run = ns.dedup_files(corpus, tmp_path / "zh", language="zh", date="2026-11-28")
    ns.dedup_files(corpus, tmp_path / "en")
    html = [(tmp_path / name / "report.html").read_text(encoding="utf-8") for name in ("zh", "en")]
    assert '<html lang="zh-CN">' in html[0]
    assert "2026-11-28" in html[0]
    assert '<html lang="en">' in html[1]
    assert run.summary == ns.Run(tmp_path / "en").summary
    with pytest.raises(ValueError, match="language"):
        ns.dedup_files(corpus, tmp_path / "fr", language="fr")  # type: ignore[arg-type]


def test_the_result_does_not_depend_on_threads() -> None:
    texts = documents(400)
    one = ns.dedup(texts, threads=1).table.to_pylist()
    assert one == ns.dedup(texts, threads=5).table.to_pylist()
    assert sum(row["kept"] for row in one) < 400


def test_progress_and_notices(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[tuple[str, int, int, str]] = []
    ns.dedup(TEXTS, progress=lambda *call: calls.append(call))
    phases = [call[0] for call in calls]
    assert phases[0] == "fingerprints"
    assert all(done <= total for _, done, total, _ in calls)
    assert [call for call in calls if call[0] == "fingerprints"][-1][1] == calls[0][2]

    def fails(*_: object) -> None:
        raise ZeroDivisionError("of the callback")

    with pytest.raises(ZeroDivisionError, match="of the callback"):
        ns.dedup(documents(2000), progress=fails)


def test_a_bar_of_tqdm(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    ns.dedup(TEXTS, progress=True)
    assert "fingerprints" in capsys.readouterr().err


def test_ctrl_c_stops_within_a_second(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, nearsift as ns\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from test_dedup import documents\n"
        "texts = documents(300) * 400\n"
        "print('ready', flush=True)\n"
        "try:\n"
        "    for _ in range(1000): ns.dedup(texts, min_score=0.1)\n"
        "except KeyboardInterrupt:\n"
        "    print('stopped', flush=True)\n",
        encoding="utf-8",
    )
    running = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n"
    time.sleep(1.0)
    running.send_signal(signal.SIGINT)
    begun = time.monotonic()
    assert running.stdout.readline() == "stopped\n"
    # A second is promised; a busy machine gets more.
    assert time.monotonic() - begun < 10
    assert running.wait(30) == 0


def test_other_threads_go_on() -> None:
    counted = 0
    stop = threading.Event()

    def count() -> None:
        nonlocal counted
        while not stop.is_set():
            counted += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    ns.dedup(documents(1500))
    stop.set()
    thread.join()
    assert counted > 10


def _kept(texts: list[str]) -> list[bool]:
    return ns.dedup(texts, threads=2).keep_mask


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes(method: str) -> None:
    # A pool of threads is there before the fork.
    expected = _kept(TEXTS)
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        assert pool.map_async(_kept, [TEXTS] * 4).get(timeout=120) == [expected] * 4


def test_results_are_pickled() -> None:
    found = ns.dedup(TEXTS)
    again = pickle.loads(pickle.dumps(found))
    assert again.table.to_pylist() == found.table.to_pylist()
    assert again.summary == found.summary
    column = pickle.loads(pickle.dumps(ns.fingerprint(TEXTS)))
    assert column.to_pylist() == ns.fingerprint(TEXTS).to_pylist()
    with pytest.raises(ns.NearsiftError, match="pickled"):
        again.pairs


def test_files_are_resumed_and_refused(corpus: Path, tmp_path: Path) -> None:
    ns.dedup_files(corpus, tmp_path / "out")
    with pytest.raises(ns.NearsiftError, match="not empty"):
        ns.dedup_files(corpus, tmp_path / "out")
    with pytest.raises(ns.InputError, match="no results of nearsift dedup"):
        ns.Run(tmp_path)
    with pytest.raises(ns.SettingError, match="output_compression needs output_format"):
        ns.dedup_files(corpus, tmp_path / "other", output_compression="gzip")
    assert not (tmp_path / "other").exists()
    converted = ns.dedup_files(corpus, tmp_path / "parquet", output_format="parquet")
    assert [path.suffix for path in converted.kept] == [".parquet"]


def test_nothing_is_left_in_the_folder_for_temporary_files(tmp_path: Path) -> None:
    found = ns.dedup(TEXTS, scratch=tmp_path)
    assert len(found) == 3
    del found
    assert os.listdir(tmp_path) == []


def test_a_limit_of_memory() -> None:
    with pytest.raises((ns.MemoryLimitError, ns.NearsiftError)) as raised:
        ns.dedup(documents(500), memory="1KB")
    assert "memory" in str(raised.value)


def test_notices_go_to_logging(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"id": 1, "text": "%s"}\n{not json}\n' % TEXTS[0], encoding="utf-8")
    with caplog.at_level(logging.INFO, logger="nearsift"):
        ns.dedup_files(broken, tmp_path / "out")
    assert all(record.name == "nearsift" for record in caplog.records)


def test_why(corpus: Path, tmp_path: Path) -> None:
    run = ns.dedup_files(corpus, tmp_path / "out")
    found = ns.dedup(rows_of(corpus), id="id")
    pairs = {(pair["a"], pair["b"]): pair for pair in run.pairs}
    compared = 0
    for line in run.removed:
        why = found.why(line["id"])
        assert (why.kept, why.reason, why.representative) == (False, line["reason"], line["representative"])
        assert why.comparison is not None and line["id"] in why.members and why.representative in why.members
        pair = pairs.get((line["representative"], line["id"]))
        if pair and "differ" not in pair and pair["score"] < 1:
            # The run's own rarity: the figures are those of the pair.
            assert why.comparison.figures["verified"]["cosine"] == pair["cosine"]
            compared += 1
    assert compared > 5
    alone = found.why(next(row["id"] for row in found.table.to_pylist() if row["cluster"] is None))
    assert alone.kept and alone.comparison is None and alone.members == [alone.id]
    other = found.why(run.removed[0]["id"], alone.id)
    assert other.comparison is not None and not other.comparison.is_near
    with pytest.raises(ns.InputError, match="did you mean 'metro-exact'"):
        found.why("metro-exat")
    with pytest.raises(ns.InputError, match="2 rows have the id 'a': 0, 1"):
        ns.dedup({"id": ["a", "a", "b"], "text": TEXTS}, id="id").why("a")
    assert ns.dedup(corpus).why(run.removed[0]["id"]).reason == run.removed[0]["reason"]


def test_regrouping_is_a_run_with_the_other_settings(corpus: Path) -> None:
    found = ns.dedup(rows_of(corpus), id="id")
    for settings in ({"min_score": 0.8}, {"cluster": "components"}, {"keep": "longest"}, {"min_score": 0.5, "max_cluster": 3}):
        again = found.regroup(**settings)
        assert again.table.to_pylist() == ns.dedup(rows_of(corpus), id="id", **settings).table.to_pylist()
        assert again.regroup().table.to_pylist() == again.table.to_pylist()
    by_distance = ns.dedup(corpus, max_distance=8)
    assert by_distance.regroup(max_distance=3).table.to_pylist() == ns.dedup(corpus, max_distance=3).table.to_pylist()
    with pytest.raises(ns.SettingError):
        found.regroup(min_score=2)


def test_marks_and_questions_about_a_run(corpus: Path, tmp_path: Path) -> None:
    run = ns.dedup_files(corpus, tmp_path / "out", mark=True)
    assert not run.kept and len(run.marked) == 1
    rows = [json.loads(line) for line in run.marked[0].open(encoding="utf-8")]
    table = ns.dedup(rows_of(corpus), id="id").table
    for column in ("cluster", "cluster_size", "score", "kept", "reason"):
        assert [row[column] for row in rows] == table[column].to_pylist(), column
    assert [str(row["representative"]) for row in rows] == [str(id) for id in table["representative"].to_pylist()]

    removed = run.removed[0]
    [told] = [told for told in run.why(removed["id"]) if told["record"] == removed["record"]]
    assert told["removed"] == removed and not told["kept"]
    assert run.between(removed["id"], removed["representative"])["verdict"] == "together_as_pair"
    assert run.why("no such id") == []
    with pytest.raises(ns.NearsiftError, match="expected one document of the run, found 0"):
        run.between(removed["id"], "no such id")
    with pytest.raises(ns.NearsiftError, match="mark_names \"group\": the columns are cluster"):
        ns.dedup_files(corpus, tmp_path / "other", mark={"group": "x"})
    (tmp_path / "out" / "lookup.idx").unlink()
    with pytest.raises(ns.InputError, match="there is no lookup.idx"):
        run.why(1)


def test_marked_tables_open_everywhere(corpus: Path, tmp_path: Path) -> None:
    rows = [{"id": str(row["id"]), "text": row["text"]} for row in rows_of(corpus)]
    added = ["cluster", "cluster_size", "representative", "score", "kept", "reason"]

    data = datasets.Dataset.from_list(rows)
    data.save_to_disk(tmp_path / "set")
    assert datasets.load_from_disk(str(ns.dedup_files(tmp_path / "set", tmp_path / "kept").folder / "kept")).num_rows == 37
    marked = datasets.load_from_disk(str(ns.dedup_files(tmp_path / "set", tmp_path / "all", mark=True).folder / "marked"))
    assert marked.num_rows == len(rows) and marked.column_names == ["id", "text", *added]

    # A categorical column and an index of its own are in the metadata of the file.
    frame = pd.DataFrame(rows, index=range(5, 5 + len(rows)))
    frame["kind"] = pd.Categorical(["x"] * len(rows))
    frame.to_parquet(tmp_path / "frame.parquet")
    [path] = ns.dedup_files(tmp_path / "frame.parquet", tmp_path / "out", mark=True).marked
    read = pd.read_parquet(path)
    assert list(read.index) == list(frame.index) and read["kind"].dtype == frame["kind"].dtype
    assert list(read.columns) == ["id", "text", "kind", *added]
    assert pl.read_parquet(path)["kept"].sum() == 37
    [counted] = duckdb.sql(f"select count(distinct cluster), sum(kept::int) from '{path}'").fetchall()
    assert counted == (19, 37)
