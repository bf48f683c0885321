"""Adapters, each with the real library."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import nearsift as ns
from conftest import TEXTS

FINGERPRINTS = [ns.fingerprint(text) for text in TEXTS]


def test_polars() -> None:
    import polars as pl

    import nearsift.polars  # noqa: F401

    frame = pl.DataFrame({"text": [*TEXTS, None]})
    made = frame.select(pl.col("text").nearsift.fingerprint()).to_series()
    assert made.to_list() == [*FINGERPRINTS, None]
    assert made.dtype == pl.UInt64
    wide = frame.lazy().select(pl.col("text").nearsift.fingerprint(bits=128)).collect().to_series()
    assert [len(value) for value in wide if value is not None] == [16, 16, 16]
    sketches = frame.select(pl.col("text").nearsift.sketch()).to_series().to_list()
    assert sketches == [*(ns.sketch(text) for text in TEXTS), None]
    assert frame.filter(pl.col("text").nearsift.keep())["text"].to_list() == TEXTS[:2]


def test_duckdb() -> None:
    import duckdb

    import nearsift.duckdb

    connection = duckdb.connect()
    nearsift.duckdb.register(connection)
    connection.sql("create table texts as select unnest($texts) as text", params={"texts": [*TEXTS, None]})
    made = connection.sql("select nearsift_fingerprint(text) from texts").fetchall()
    assert [value for (value,) in made] == [*FINGERPRINTS, None]
    distances = connection.sql(
        "select nearsift_distance(nearsift_fingerprint(a.text), nearsift_fingerprint(b.text)) from texts a, texts b"
        " where a.text < b.text order by 1"
    ).fetchall()
    assert len(distances) == 3
    assert distances[0][0] == min(ns.distance(FINGERPRINTS[i], FINGERPRINTS[j]) for i, j in [(0, 1), (0, 2), (1, 2)])
    with pytest.raises(ns.SettingError, match="256 bits"):
        nearsift.duckdb.register(connection, recipe="simhash256")


def test_datasets() -> None:
    datasets = pytest.importorskip("datasets")
    import nearsift.datasets

    data = datasets.Dataset.from_dict({"text": TEXTS})
    assert nearsift.datasets.dedup(data)["text"][:] == TEXTS[:2]
    added = data.map(nearsift.datasets.fingerprints(), batched=True)
    assert added["fingerprint"][:] == FINGERPRINTS
    lacking = datasets.Dataset.from_dict({"text": [*TEXTS, "x"]})
    added = lacking.with_format("arrow").map(nearsift.datasets.fingerprints(), batched=True)
    assert added.with_format(None)["fingerprint"][:] == [*FINGERPRINTS, None]
    with pytest.raises(ns.InputError, match="1 of 4 texts have no fingerprint"):
        lacking.map(nearsift.datasets.fingerprints(), batched=True)


def test_scikit_learn() -> None:
    pytest.importorskip("sklearn")
    from sklearn.base import clone

    from nearsift.sklearn import NearDuplicates

    estimator = clone(NearDuplicates(min_score=0.5))
    assert estimator.fit_predict(TEXTS).tolist() == [0, 1, 0]
    assert estimator.kept_.tolist() == [True, True, False]
    assert estimator.get_params()["min_score"] == 0.5


def test_scrapy(tmp_path: Path) -> None:
    pytest.importorskip("scrapy")
    for number, text in enumerate(TEXTS):
        (tmp_path / f"{number}.html").write_text(f"<p>{text}</p>", encoding="utf-8")
    spider = tmp_path / "spider.py"
    spider.write_text(
        "import scrapy, sys\n"
        "class Spider(scrapy.Spider):\n"
        "    name = 'files'\n"
        f"    start_urls = [{', '.join(repr((tmp_path / f'{n}.html').as_uri()) for n in range(3))}]\n"
        "    custom_settings = {'ITEM_PIPELINES': {'nearsift.scrapy.NearDuplicateFilter': 100}, 'CONCURRENT_REQUESTS': 1,\n"
        f"                       'NEARSIFT_INDEX': {str(tmp_path / 'seen')!r}, 'NEARSIFT_KEEP_TEXTS': True}}\n"
        "    def parse(self, response):\n"
        "        yield {'url': response.url, 'text': response.css('p::text').get()}\n",
        encoding="utf-8",
    )

    def crawl(output: str) -> list[str]:
        command = [sys.executable, "-m", "scrapy", "runspider", str(spider), "-o", str(tmp_path / output), "-L", "ERROR"]
        subprocess.run(command, check=True, cwd=tmp_path)
        content = (tmp_path / output).read_text(encoding="utf-8")
        return [row["text"] for row in json.loads(content or "[]")]

    assert len(crawl("first.json")) == 2
    # A second crawl finds nothing new: the index is still there.
    assert crawl("second.json") == []


def test_datatrove() -> None:
    pytest.importorskip("datatrove")
    from datatrove.data import Document

    from nearsift.datatrove import NearsiftDedup

    documents = [Document(text=text, id=str(number)) for number, text in enumerate(TEXTS)]
    block = NearsiftDedup()
    assert [document.id for document in block.run(iter(documents))] == ["0", "1"]
    assert block.stats.stats["near-duplicate"].total == 1


def test_data_juicer(tmp_path: Path) -> None:
    """By a configuration, as `dj-process` runs it, and alone."""
    pytest.importorskip("data_juicer")
    import nearsift.juicer

    rows = [{"text": text, "number": number} for number, text in enumerate(TEXTS)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    settings = {
        "dataset_path": str(tmp_path / "in.jsonl"),
        "export_path": str(tmp_path / "out.jsonl"),
        "work_dir": str(tmp_path),
        "np": 1,
        "use_cache": False,
        "open_tracer": True,
        "custom_operator_paths": [nearsift.juicer.__file__],
        "process": [{"nearsift_deduplicator": {"min_score": 0.5}}],
    }
    # JSON is YAML.
    (tmp_path / "settings.yaml").write_text(json.dumps(settings))
    program = Path(sys.executable).with_name("dj-process")
    ran = subprocess.run([program, "--config", tmp_path / "settings.yaml"], capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr[-3000:]
    kept = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["number"] for row in kept] == [0, 1]
    traced = next(tmp_path.rglob("duplicate-nearsift_deduplicator.jsonl")).read_text(encoding="utf-8")
    assert json.loads(traced.splitlines()[0]) == {"dup1": rows[0], "dup2": rows[2]}

    import datasets

    operator = nearsift.juicer.NearsiftDeduplicator(keep="longest", text_key="body")
    frame = datasets.Dataset.from_dict({"body": [TEXTS[2], TEXTS[1], TEXTS[0]]})
    assert operator.run(frame)["body"][:] == [TEXTS[1], TEXTS[0]]
