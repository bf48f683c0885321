"""Near duplicates of a DataFrame of Apache Spark, with the clusters that the program finds.

    from nearsift import spark as nearsift_spark
    found = nearsift_spark.dedup(df, text="text", id="url", work="s3a://bucket/work")
    found.kept.write.parquet("s3a://bucket/kept")

Executors sketch their rows: that takes nearly all of the processor's time. The sketches and packed texts are committed as Parquet below
`work`, and a job that failed goes on after the last stage that was committed. The driver decides, by the engine of the program, and needs
some 240 bytes of memory a document, and disk for the parts, about half of the bytes of the texts. The result does not depend on partitions,
but for the order of the documents: see `order_by`.

Only operations of DataFrames and `mapInArrow` are used: Spark 4, Spark Connect and Sail run it alike. Every worker needs the same version of
nearsift.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearsift import _cluster, _settings
from nearsift._errors import InputError, SettingError
from nearsift._settings import ClusterRule, Method, PathLike

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Deduplicated", "dedup", "main"]

#: The columns of the stage of chunks.
_CHUNKS = "ordinal int, first string, part string, file string, number int, content binary"
#: Ranges of rows that are sketched by a task each, where nothing else is asked.
PARTS = 64
#: A column that no data has.
_ORDINAL = "__nearsift_ordinal"


@dataclass(frozen=True)
class Deduplicated:
    """What :func:`dedup` decided."""

    #: All rows, with the columns `cluster`, `cluster_size`, `representative`, `score`, `kept` and `reason`.
    marked: DataFrame
    #: The rows that stay, as they were.
    kept: DataFrame
    #: The rows that go, with these columns.
    removed: DataFrame
    #: The summary of the engine, as of a run of the program.
    summary: dict[str, Any]


def dedup(
    df: DataFrame,
    text: str = "text",
    id: str = "id",
    *,
    work: str,
    order_by: str | None = None,
    parts: int | None = None,
    results: PathLike | None = None,
    local: PathLike | None = None,
    method: Method | None = None,
    min_score: float | None = None,
    max_distance: int | None = None,
    recipe: str | None = None,
    verify: bool | None = None,
    keep: str = "first",
    source: str | None = None,
    cluster: ClusterRule | None = None,
    max_cluster: int | None = None,
    mark_names: Mapping[str, str] | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
) -> Deduplicated:
    """Finds the near duplicates of a DataFrame.

    Args:
        df: The rows. Ids must be unique and not null; a row without a text stays.
        text: The column of the texts.
        id: The column of the ids, strings or whole numbers.
        work: A folder that driver and executors share, for the stages of this DataFrame and no other.
        order_by: The column by whose order documents count, such as the id: of equal ones the first stays. Without it documents count in
            the order of their partitions, which another read of the data may change.
        parts: With `order_by`, into how many ranges the rows are parted, each sketched by a task. Default: 64.
        results: A folder of the driver for the tables and the report of a run of the program, which :class:`nearsift.Run` reads.
        local: A folder of the driver for the parts while they are joined; the system's for temporary files without it.
        method, min_score, max_distance, recipe, verify, keep, source, cluster, max_cluster: As of :func:`nearsift.dedup`.
        mark_names: Other names for the columns that are added.
        threads, memory: Of the driver.

    Raises:
        InputError: A null id or one that is not unique, or no row with a text.
        SettingError: A column that is not there or is there already.
    """
    sketching = _sketching(df, text, id, _cluster.sketched_by(method, max_distance, recipe), verify, keep, source)
    matching = _settings.matching(method=method, min_score=min_score, max_distance=max_distance, verify=verify)
    names = _cluster.mark_names(mark_names, df.columns)
    wanted = _wanted(df, sketching, order_by, parts)
    spark = df.sparkSession
    chunks = _stage(work, "sketches", sketching.digest, order_by)
    decisions = _stage(work, "decisions", sketching.digest, order_by, sorted(matching.items()), cluster, max_cluster)
    if not _is_committed(spark, chunks):
        _check_ids(df, id)
        wanted.mapInArrow(_task(sketching, order_by), _CHUNKS).write.mode("overwrite").parquet(chunks)
    if results is not None or not _is_committed(spark, decisions):
        with tempfile.TemporaryDirectory(prefix="nearsift-", dir=local) as folder:
            options = {"threads": threads, "memory": memory, "cluster": cluster, "max_cluster": max_cluster}
            _decide(spark, chunks, decisions, Path(folder), matching, options)
            if results is not None:
                shutil.copytree(Path(folder) / "joined", results)
    decided = spark.read.parquet(decisions)
    summary = json.loads(decided.filter("summary is not null").select("summary").collect()[0][0])
    return _result(df, id, decided.filter("summary is null").drop("summary"), names, summary)


def _stage(work: str, name: str, *settings: Any) -> str:
    """The path of a stage: another one for other settings."""
    digest = hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:16]
    return f"{work.rstrip('/')}/{name}-{digest}"


def _sketching(df: DataFrame, text: str, id: str, *settings: Any) -> _cluster.Sketching:
    """How rows are sketched, once all columns are known to be there."""
    matching, verify, keep, source = settings
    sketching = _cluster.Sketching(text, id, matching, keep, source, texts=verify is not False)
    for column in sketching.columns:
        if column not in df.columns:
            raise SettingError(f"no column {column!r}: the columns are {', '.join(df.columns)}")
    kind = dict(df.dtypes)[id]
    if kind not in {"string", "bigint", "int", "smallint", "tinyint"}:
        raise SettingError(f"id={id!r} is of type {kind}: expected strings or whole numbers; cast it")
    return sketching


def _wanted(
    df: DataFrame, sketching: _cluster.Sketching, order_by: str | None, parts: int | None
) -> DataFrame:
    """The columns that are sketched, in the order in which documents count, with the number of the part that each row belongs to."""
    from pyspark.sql import functions as F

    columns: list[str] = sketching.columns
    if order_by is not None and order_by not in columns:
        columns.append(order_by)
    wanted = df.select(*columns)
    if dict(df.dtypes)[sketching.id] != "string":
        wanted = wanted.withColumn(sketching.id, F.col(sketching.id).cast("bigint"))
    if order_by is None:
        return wanted.withColumn(_ORDINAL, F.spark_partition_id())
    # Not every engine parts by ranges where it is asked to, or keeps rows sorted up to the task: all bring equal numbers together.
    bounds = _bounds(df, order_by, parts or PARTS)
    ordinal = F.when(F.col(order_by).isNull(), F.lit(0))
    for number, bound in enumerate(bounds):
        ordinal = ordinal.when(F.col(order_by) <= F.lit(bound), F.lit(number))
    wanted = wanted.withColumn(_ORDINAL, ordinal.otherwise(F.lit(len(bounds))).cast("int"))
    return wanted.repartition(len(bounds) + 1, _ORDINAL)


def _bounds(df: DataFrame, order_by: str, parts: int) -> list[Any]:
    """The largest value of each part but the last, from a sample that the values decide."""
    from pyspark.sql import functions as F

    sample = df.select(order_by).filter(F.col(order_by).isNotNull()).orderBy(F.xxhash64(order_by)).limit(64 * parts)
    values = sorted(row[0] for row in sample.collect())
    return sorted({values[len(values) * number // parts] for number in range(1, parts)}) if values else []


def _check_ids(df: DataFrame, id: str) -> None:
    from pyspark.sql import functions as F

    nulls = df.filter(F.col(id).isNull()).limit(1).count()
    if nulls:
        raise InputError(f"column {id!r} has rows without an id: fill them, or leave these rows out")


def _task(sketching: _cluster.Sketching, order_by: str | None) -> Any:
    """The work of a task. It is sent by value: a worker without nearsift says so."""

    def sketch(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import socket
        import uuid

        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            from nearsift import _cluster
        except ImportError as error:
            raise RuntimeError(
                f"{socket.gethostname()} has no nearsift ({error}): install nearsift=={version} on every worker"
            ) from error
        schema = pa.schema(
            [
                ("ordinal", pa.int32()),
                ("first", pa.string()),
                ("part", pa.string()),
                ("file", pa.string()),
                ("number", pa.int32()),
                ("content", pa.binary()),
            ]
        )
        rows = [batch for batch in batches if batch.num_rows]
        if not rows:
            return
        table = pa.Table.from_batches(rows)
        for ordinal in sorted(table[ordinal_column].unique().to_pylist()):
            own = table.filter(pc.field(ordinal_column) == ordinal).drop_columns(ordinal_column)
            if order_by is not None:
                own = own.sort_by([(order_by, "ascending"), (settings.id, "ascending")])
            first, part = str(own[settings.id][0].as_py()), str(uuid.uuid4())
            for file, number, content in _cluster.chunks_of(own.to_batches(), settings):
                row = [ordinal, first, part, file, number, content]
                cells = [pa.array([cell], kind.type) for cell, kind in zip(row, schema, strict=True)]
                yield pa.RecordBatch.from_arrays(cells, schema=schema)

    settings, version, ordinal_column = sketching, sketching.version, _ORDINAL
    return sketch


def _is_committed(spark: SparkSession, path: str) -> bool:
    """Whether a stage was written whole: a write that failed leaves no file with a name."""
    try:
        return len(spark.read.parquet(path).columns) > 0
    except Exception:  # noqa: BLE001  # each engine has its own class for it
        return False


def _decide(
    spark: SparkSession,
    chunks: str,
    decisions: str,
    folder: Path,
    matching: dict[str, object],
    options: dict[str, Any],
) -> None:
    """Joins the parts on the driver, and commits what was decided."""
    import pyarrow as pa

    parts = _cluster.Parts(folder / "parts")
    for row in spark.read.parquet(chunks).toLocalIterator():
        parts.add(row.part, (row.ordinal, row.first), row.file, row.number, bytes(row.content))
    joined = folder / "joined"
    summary = parts.join(joined, matching, options)
    decided = _cluster.one_table(parts.decisions(joined))
    decided = decided.append_column("summary", pa.nulls(decided.num_rows, pa.string()))
    last = {name: [None] for name in decided.column_names} | {"summary": [json.dumps(summary)]}
    decided = pa.concat_tables([decided, pa.table(last, schema=decided.schema)])
    spark.createDataFrame(decided).write.mode("overwrite").parquet(decisions)


def _result(
    df: DataFrame, id: str, decided: DataFrame, names: dict[str, str], summary: dict[str, Any]
) -> Deduplicated:
    from pyspark.sql import functions as F

    own = "__nearsift_id"
    decided = decided.withColumnRenamed("id", own)
    for column in _cluster.MARKS:
        decided = decided.withColumnRenamed(column, f"__nearsift_{column}")
    joined = df.join(decided, df[id].eqNullSafe(decided[own]), "left")
    # A row without a text is like no other.
    absent = {"cluster_size": F.lit(1), "representative": F.col(id), "kept": F.lit(True), "reason": F.lit("unreadable")}
    missing = F.col(own).isNull()
    marks = [
        F.when(missing, absent[column]).otherwise(F.col(f"__nearsift_{column}")).alias(name)
        if column in absent
        else F.col(f"__nearsift_{column}").alias(name)
        for column, name in names.items()
    ]
    marked = joined.select(*[df[column] for column in df.columns], *marks)
    return Deduplicated(
        marked=marked,
        kept=marked.filter(F.col(names["kept"])).select(*df.columns),
        removed=marked.filter(~F.col(names["kept"])),
        summary=summary,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """The program `nearsift-spark`, for spark-submit: reads a table, and writes what stays, or all rows with what was decided."""
    parser = argparse.ArgumentParser(prog="nearsift-spark", description=main.__doc__)
    parser.add_argument("input", help="the path of the table")
    parser.add_argument("--output", "-o", required=True, help="the path for the rows")
    parser.add_argument("--work", required=True, help="a folder that driver and executors share, for the stages of this table")
    parser.add_argument("--format", default="parquet", help="the format of both tables, as Spark names it")
    parser.add_argument("--text", default="text", help="the column of the texts")
    parser.add_argument("--id", default="id", help="the column of the ids")
    parser.add_argument("--order-by", help="the column by whose order documents count")
    parser.add_argument("--keep", default="first", help="which member of a group stays, as of nearsift dedup")
    parser.add_argument("--min-score", type=float, help="the smallest score of near duplicates")
    parser.add_argument("--max-distance", type=int, help="SimHash: the largest Hamming distance")
    parser.add_argument("--mark", action="store_true", help="write all rows, with columns that say what was decided")
    parser.add_argument("--results", help="a folder of the driver for the tables and the report")
    given = parser.parse_args(arguments)

    from pyspark.sql import SparkSession

    spark = SparkSession.builder.appName("nearsift").getOrCreate()
    found = dedup(
        spark.read.format(given.format).load(given.input),
        given.text,
        given.id,
        work=given.work,
        order_by=given.order_by,
        keep=given.keep,
        min_score=given.min_score,
        max_distance=given.max_distance,
        results=given.results,
    )
    rows = found.marked if given.mark else found.kept
    rows.write.format(given.format).save(given.output)
    removed = found.summary["removed"]
    print(f"{found.summary['documents']} documents: {found.summary['kept']} kept, {removed['exact'] + removed['near']} removed")


if __name__ == "__main__":
    main()
