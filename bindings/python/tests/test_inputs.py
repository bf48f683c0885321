"""Tables of other libraries, lists and files go one way in; what cannot be used is said."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import duckdb
import numpy
import pandas
import polars
import pyarrow
import pytest

import nearsift as ns
from conftest import TEXTS

KEPT = [True, True, False]


def tables() -> dict[str, Any]:
    table = pyarrow.table({"doc": [7, 8, 9], "body": TEXTS})
    reader = pyarrow.RecordBatchReader.from_batches(table.schema, iter(table.to_batches()))
    large = table.set_column(1, "body", table["body"].cast(pyarrow.large_string()))
    views = table.set_column(1, "body", table["body"].cast(pyarrow.string_view()))
    coded = table.set_column(1, "body", table["body"].combine_chunks().dictionary_encode())
    chunked = pyarrow.concat_tables([table.slice(0, 1), table.slice(1, 0), table.slice(1, 2)])
    longer = pyarrow.concat_tables([pyarrow.table({"doc": [1], "body": ["x"]}), table])
    frame = pandas.DataFrame({"doc": [7, 8, 9], "body": TEXTS})
    return {
        "pyarrow table": table,
        "record batch": table.to_batches()[0],
        "reader": reader,
        "large strings": large,
        "string views": views,
        "dictionary": coded,
        "chunks, one empty": chunked,
        "slice": longer.slice(1),
        "pandas": frame,
        "pandas categorical": frame.astype({"body": "category"}),
        "polars": polars.DataFrame({"doc": [7, 8, 9], "body": TEXTS}),
        "polars categorical": polars.DataFrame({"doc": [7, 8, 9], "body": TEXTS}).with_columns(
            polars.col("body").cast(polars.Categorical)
        ),
        "duckdb": duckdb.sql("select * from frame"),
        "mapping": {"doc": [7, 8, 9], "body": TEXTS},
        "rows": [{"doc": doc, "body": text} for doc, text in zip([7, 8, 9], TEXTS)],
    }


@pytest.mark.parametrize("name", tables())
def test_a_table_of_any_library(name: str) -> None:
    found = ns.dedup(tables()[name], text="body", id="doc")
    assert found.keep_mask == KEPT
    assert found.table["id"].to_pylist() == [7, 8, 9]
    assert found.table["representative"].to_pylist() == [7, 8, 7]


def columns() -> dict[str, Any]:
    return {
        "list": TEXTS,
        "tuple": tuple(TEXTS),
        "pyarrow array": pyarrow.array(TEXTS),
        "chunked array": pyarrow.chunked_array([TEXTS[:1], TEXTS[1:]]),
        "polars series": polars.Series(TEXTS),
        "pandas series": pandas.Series(TEXTS),
        "numpy objects": numpy.array(TEXTS, dtype=object),
    }


@pytest.mark.parametrize("name", columns())
def test_a_column_of_any_library(name: str) -> None:
    assert ns.dedup(columns()[name]).keep_mask == KEPT
    numbers = ns.fingerprint(columns()[name]).to_pylist()
    assert numbers == [ns.fingerprint(text) for text in TEXTS]


def test_what_has_no_text_is_a_row_all_the_same() -> None:
    found = ns.dedup([TEXTS[0], None, math.nan, "", TEXTS[2], "\ud800"])
    assert found.keep_mask == [True, False, False, True, False, True]
    assert found.table["reason"].to_pylist() == [None, "unreadable", "unreadable", None, "near-duplicate", None]
    assert found.summary["unreadable"] == 2


def test_rows_are_named_as_python_counts(caplog: pytest.LogCaptureFixture) -> None:
    ns.dedup([TEXTS[0], None])
    assert "row 1: no text" in caplog.text and "nearsift-" not in caplog.text.replace("nearsift:", "")


def test_no_rows() -> None:
    assert len(ns.dedup([])) == 0
    assert len(ns.fingerprint([])) == 0


def check(error: type[Exception], message: str, data: Any, **settings: Any) -> None:
    with pytest.raises(ns.NearsiftError, match=message) as raised:
        ns.dedup(data, **settings)
    assert isinstance(raised.value, error)


def test_what_cannot_be_used_is_said() -> None:
    table = pyarrow.table({"doc": [7, 8, 9], "body": TEXTS})
    check(ValueError, "no column \"text\": the columns are doc, body; did you mean text=", table)
    check(ValueError, "did you mean text=\"body\"", table, text="Body")
    check(ValueError, "no column \"url\".*did you mean id=", table, text="body", id="url")
    check(TypeError, "column \"doc\" is of type Int64, expected strings", table, text="doc")
    check(TypeError, "text 1 is of type bytes, expected str or None: decode it first", [TEXTS[0], b"x"])
    check(TypeError, "text 1 is of type int", [TEXTS[0], 3])
    check(TypeError, "got one str", TEXTS[0])
    check(TypeError, "got int", 3)
    raw = pyarrow.table({"text": [text.encode() for text in TEXTS]})
    check(TypeError, "column \"text\" is of type Binary, expected strings: decode the bytes", raw)
    nulls = pyarrow.table({"doc": [7, None, None], "body": TEXTS})
    check(ValueError, "column \"doc\" has no id in row 1, and in 1 more", nulls, text="body", id="doc")
    check(ValueError, "min_score=1.5: expected a number from 0 to 1", TEXTS, min_score=1.5)
    check(ValueError, "method=\"minhash\": expected \"sketch\" or \"simhash\"", TEXTS, method="minhash")
    check(ValueError, "max_distance is of method simhash", TEXTS, method="sketch", max_distance=3)
    check(ValueError, "keep=\"best\"", TEXTS, keep="best")
    check(ValueError, "threads=0", TEXTS, threads=0)
    check(ValueError, "memory='much': expected a size", TEXTS, memory="much")
    check(ValueError, "recipe", TEXTS, recipe="simhash65")
    check(ValueError, "not there|not found|no such file|No such file", Path("/nowhere/at/all.jsonl"))
    check(ValueError, "2 rows, and the first one has 3", {"a": [1, 2, 3], "text": ["x", "y"]})


def test_a_huge_text_and_many_columns() -> None:
    text = "一篇很长的文章。" * 500_000
    found = ns.dedup({"text": [text, text + "完", TEXTS[0]]} | {f"c{i}": [1, 2, 3] for i in range(500)})
    assert found.keep_mask == [True, False, True]


def test_ids_that_are_not_unique_are_told(caplog: pytest.LogCaptureFixture) -> None:
    found = ns.dedup({"id": ["a", "a", "b"], "text": TEXTS}, id="id")
    assert found.summary["duplicate_ids"] == 1
    assert found.representative_rows.to_pylist() == [0, 1, 0]


def test_results_go_to_any_library() -> None:
    found = ns.dedup(TEXTS)
    names = ["id", "cluster", "cluster_size", "representative", "score", "kept", "reason"]
    assert found.table.column_names == names
    assert found.table.to_pyarrow().column_names == names
    assert list(found.table.to_pandas().columns) == names
    frame = polars.DataFrame(found.table)
    assert frame.columns == names
    assert frame["kept"].to_list() == KEPT
    result = pyarrow.table(found.table)  # noqa: F841 DuckDB finds it by its name
    assert duckdb.sql("select count(*) from result where kept").fetchall() == [(2,)]
    assert pandas.DataFrame({"text": TEXTS})[found.keep_mask]["text"].tolist() == TEXTS[:2]


def test_a_dataset_of_hugging_face() -> None:
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_dict({"doc": [6, 7, 8, 9], "body": ["x", *TEXTS]})
    found = ns.dedup(data.select([1, 2, 3]), text="body", id="doc")
    assert found.keep_mask == KEPT
    assert found.table["id"].to_pylist() == [7, 8, 9]


def test_a_table_of_daft() -> None:
    daft = pytest.importorskip("daft")
    found = ns.dedup(daft.from_pydict({"doc": [7, 8, 9], "body": TEXTS}), text="body", id="doc")
    assert found.keep_mask == KEPT
