"""DataFrames of Spark, by Sail: the rows that stay are those of the engine on one machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import nearsift as ns
from conftest import edited_documents

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pysail")
pytest.importorskip("pyspark")

@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from pysail.spark import SparkConnectServer
    from pyspark.sql import SparkSession

    server = SparkConnectServer()
    server.start()
    _, port = server.listening_address
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_REMOTE", f"sc://localhost:{port}")
        session = SparkSession.builder.getOrCreate()
        yield session
        session.stop()
    server.stop()


def frame(spark: Any, folder: Path, table: Any, files: int = 4) -> Any:
    """A DataFrame of files, whose rows are in no order."""
    import pyarrow.parquet as pq

    folder.mkdir()
    for number in range(files):
        rows = list(range(number, table.num_rows, files))
        pq.write_table(table.take(rows[::-1]), folder / f"{number}.parquet")
    return spark.read.parquet(str(folder))


@pytest.mark.parametrize(
    ("count", "settings"),
    [(200_000, {"max_distance": 3}), (34_000, {}), (3_000, {"keep": "longest", "min_score": 0.8, "cluster": "star"})],
)
def test_rows_are_those_of_one_machine(spark: Any, tmp_path: Path, count: int, settings: dict[str, Any]) -> None:
    from nearsift import spark as of_spark

    table = edited_documents(count)
    expected = ns.dedup(table, id="id", **settings).table.to_pyarrow()
    df = frame(spark, tmp_path / "in", table)
    found = of_spark.dedup(df, work=str(tmp_path / "work"), order_by="at", **settings)
    marked = found.marked.orderBy("at").toArrow()
    assert marked["text"].to_pylist() == table["text"].to_pylist()
    for column in expected.column_names:
        assert marked[column].to_pylist() == expected[column].to_pylist(), column
    assert found.kept.columns == table.column_names
    assert found.kept.count() == found.summary["kept"] == sum(expected["kept"].to_pylist())
    assert found.removed.count() == count - found.summary["kept"]


def test_stages_are_committed_and_taken_up(spark: Any, tmp_path: Path) -> None:
    from nearsift import spark as of_spark

    df = frame(spark, tmp_path / "in", edited_documents(300))
    work, results = tmp_path / "work", tmp_path / "results"
    first = of_spark.dedup(df, work=str(work), order_by="at", results=results)
    assert ns.Run(results).summary["kept"] == first.summary["kept"]
    stages = {stage.name: sorted(path.name for path in stage.iterdir()) for stage in work.iterdir()}
    assert sorted(name.partition("-")[0] for name in stages) == ["decisions", "sketches"]
    # Another threshold joins the same sketches.
    other = of_spark.dedup(df, work=str(work), order_by="at", min_score=0.95)
    assert other.summary["kept"] >= first.summary["kept"]
    again = {stage.name: sorted(path.name for path in stage.iterdir()) for stage in work.iterdir()}
    assert {name: again[name] for name in stages} == stages
    assert len(again) == 3


def test_rows_without_a_text_stay(spark: Any, tmp_path: Path) -> None:
    from nearsift import spark as of_spark

    table = pa.table({"n": [1, 2, 3, 4], "body": ["今天北京晴，气温十度。", None, "今天北京晴,气温十度", None]})
    df = spark.createDataFrame(table)
    names = {"kept": "stays", "cluster": "group"}
    found = of_spark.dedup(df, "body", "n", work=str(tmp_path / "work"), order_by="n", mark_names=names)
    rows = {row.n: row.asDict() for row in found.marked.collect()}
    assert {n: (row["stays"], row["reason"], row["representative"]) for n, row in rows.items()} == {
        1: (True, None, 1),
        2: (True, "unreadable", 2),
        3: (False, "exact-duplicate", 1),
        4: (True, "unreadable", 4),
    }
    assert rows[1]["group"] == 1
    assert sorted(row.n for row in found.kept.collect()) == [1, 2, 4]


def test_what_cannot_be_is_said(spark: Any, tmp_path: Path) -> None:
    from nearsift import spark as of_spark

    def check(columns: dict[str, list[Any]], says: str, kind: type[Exception], **settings: Any) -> None:
        df = spark.createDataFrame(pa.table(columns))
        number = len(list(tmp_path.iterdir()))
        with pytest.raises(kind, match=re.escape(says)):
            of_spark.dedup(df, work=str(tmp_path / f"{number}"), **settings)
        (tmp_path / f"{number}").mkdir(exist_ok=True)

    two = {"id": ["a", "b"], "text": ["今天北京晴，气温十度。", "明天上海有雨，气温九度。"]}
    check(two | {"id": ["a", None]}, "column 'id' has rows without an id: fill them", ns.InputError)
    check(two | {"id": ["a", "a"]}, "1 rows have an id that another row has, too", ns.InputError)
    check(two | {"id": [1.5, 2.5]}, "id='id' is of type double: expected strings or whole numbers", ns.SettingError)
    check(two, "no column 'body': the columns are id, text", ns.SettingError, text="body")
    check(two | {"kept": [1, 2]}, "mark_names: there is a column 'kept' already", ns.SettingError)
    check(two, "mark_names: no column 'group': expected cluster", ns.SettingError, mark_names={"group": "g"})
    check(two | {"text": pa.array([None, None], pa.string())}, "no row has a text", ns.InputError)


def test_a_worker_with_another_version_is_named(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nearsift import _cluster
    from nearsift import spark as of_spark

    made = _cluster.Sketching.__init__

    def older(self: Any, *arguments: Any, **settings: Any) -> None:
        made(self, *arguments, version="0.0.1", **settings)

    monkeypatch.setattr(_cluster.Sketching, "__init__", older)
    df = spark.createDataFrame(pa.table({"id": ["a"], "text": ["今天北京晴，气温十度。"]}))
    with pytest.raises(Exception, match=r"and the driver 0\.0\.1: install nearsift==0\.0\.1 on every worker"):
        of_spark.dedup(df, work=str(tmp_path / "work"))


def test_the_program(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from nearsift import spark as of_spark

    table = edited_documents(60)
    frame(spark, tmp_path / "in", table)
    paths = [str(tmp_path / name) for name in ["in", "out", "work"]]
    of_spark.main([paths[0], "-o", paths[1], "--work", paths[2], "--order-by", "at", "--mark"])
    said = capsys.readouterr().out
    kept = ns.dedup(table, id="id").summary["kept"]
    assert said.startswith(f"60 documents: {kept} kept, {60 - kept} removed")
    assert spark.read.parquet(paths[1]).filter("kept").count() == kept
