"""Makes Parquet files with odd columns, and compares what the program kept of them with what pyarrow reads.

    round_trip.py make FOLDER     writes FOLDER/in
    round_trip.py compare FOLDER  compares FOLDER/in with FOLDER/out
"""

import datetime
import decimal
import itertools
import json
import pathlib
import random
import sys
import uuid

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 90
SYLLABLES = ["ka", "ro", "mi", "ten", "sul", "vor", "pa", "lin", "黄", "河", "山", "海", "云", "星"]


def text(name, row):
    # Every third text is one that came before, but for its end.
    number = row - 30 if row % 3 == 0 and row >= 30 else row
    words = random.Random(f"{name} {number}")
    pick = lambda: "".join(words.choice(SYLLABLES) for _ in range(words.randint(1, 4)))
    return " ".join(pick() for _ in range(120)) + f" {row}"


def nulls(make, every=7):
    return [None if row % every == 3 else make(row) for row in range(ROWS)]


def columns():
    day = datetime.datetime(2024, 2, 29, 12, 30, 15, 123456)
    step = datetime.timedelta(hours=7, microseconds=1)
    point = pa.struct([("x", pa.float64()), ("tags", pa.list_(pa.string()))])
    yield "id", pa.array([f"row-{row}" for row in range(ROWS)])
    yield "text", pa.array([""] * ROWS, pa.large_string())
    yield "int8", pa.array(nulls(lambda r: r - 45), pa.int8())
    yield "uint64", pa.array(nulls(lambda r: 2**64 - 1 - r), pa.uint64())
    yield "float16", pa.array(nulls(lambda r: r / 2), pa.float32()).cast(pa.float16())
    yield "double", pa.array(nulls(lambda r: [0.1 * r, float("nan"), float("-inf"), -0.0][r % 4]))
    yield "decimal", pa.array(nulls(lambda r: decimal.Decimal(r) / 100), pa.decimal128(9, 2))
    yield "wide decimal", pa.array(nulls(lambda r: decimal.Decimal(10**40 + r)), pa.decimal256(50, 0))
    yield "date", pa.array(nulls(lambda r: day.date() + datetime.timedelta(days=r)))
    yield "time", pa.array(nulls(lambda r: (day + r * step).time()), pa.time64("us"))
    yield "zoned", pa.array(nulls(lambda r: day + r * step), pa.timestamp("us", "Asia/Shanghai"))
    yield "local", pa.array(nulls(lambda r: r * 1_000_003), pa.timestamp("ms"))
    yield "nanoseconds", pa.array(nulls(lambda r: r * 1_000_000_007), pa.timestamp("ns", "UTC"))
    yield "duration", pa.array(nulls(lambda r: r * 1_000), pa.duration("us"))
    yield "bool", pa.array(nulls(lambda r: r % 2 == 0))
    yield "binary", pa.array(nulls(lambda r: bytes(range(r))), pa.binary())
    yield "fixed", pa.array(nulls(lambda r: uuid.UUID(int=r).bytes), pa.binary(16))
    yield "dictionary", pa.array(nulls(lambda r: f"category {r % 4}")).dictionary_encode()
    yield "list", pa.array(nulls(lambda r: [None if i % 3 == 1 else i for i in range(r % 5)]), pa.list_(pa.int32()))
    yield "lists", pa.array(nulls(lambda r: [[], None, [f"{r}", None]][: r % 4]), pa.list_(pa.list_(pa.string())))
    yield "map", pa.array(nulls(lambda r: [(f"k{i}", i) for i in range(r % 3)]), pa.map_(pa.string(), pa.int64()))
    yield "struct", pa.array(nulls(lambda r: {"x": r / 3, "tags": ["a"] * (r % 3)}), point)
    yield "structs", pa.array(nulls(lambda r: [{"x": None, "tags": None}] * (r % 3)), pa.list_(point))
    yield "nothing", pa.nulls(ROWS)
    yield "none there", pa.array([None] * ROWS, pa.string())
    yield "a.dot and 空格", pa.array(range(ROWS), pa.int64())


def make(folder):
    names, arrays = zip(*columns())
    metadata = {"origin": "a test", "说明": "保留", "bytes": "\x01"}
    fields = [
        pa.field(name, array.type, nullable=name != "id", metadata={"unit": "m"} if name == "double" else None)
        for name, array in zip(names, arrays)
    ]
    schema = pa.schema(fields, metadata=metadata)
    table = pa.Table.from_arrays(list(arrays), schema=schema)
    (folder / "in").mkdir(parents=True)
    codecs = ["none", "snappy", "gzip", "brotli", "lz4", "zstd"]
    for codec, version in itertools.product(codecs, ["1.0", "2.0"]):
        # Each file has texts of its own, so that only rows within a file repeat each other.
        texts = [text(f"{codec} {version}", row) for row in range(ROWS)]
        ids = [f"{codec}-{version}-{value}" for value in table["id"].to_pylist()]
        here = table.set_column(0, schema.field(0), pa.array(ids))
        here = here.set_column(1, schema.field(1), pa.array(texts, pa.large_string()))
        pq.write_table(
            here,
            folder / "in" / f"{codec}-{version}.parquet",
            compression=codec,
            data_page_version=version,
            row_group_size=25,
            use_dictionary=version == "1.0",
            write_page_index=version == "2.0",
            store_schema=True,
        )


def compare(folder):
    removed = set()
    with open(folder / "out" / "removed.jsonl", encoding="utf-8") as lines:
        removed.update(json.loads(line)["id"] for line in lines)
    files = sorted((folder / "in").iterdir())
    kept = 0
    for path in files:
        written = folder / "out" / "kept" / path.name
        before, after = pq.read_table(path), pq.read_table(written)
        stays = pa.array([value not in removed for value in before["id"].to_pylist()])
        expected = before.filter(stays)
        # NaN is no reason to differ: columns are compared by their values as text.
        assert after.schema.equals(before.schema, check_metadata=True), f"{path.name}: another schema"
        assert after.num_rows == expected.num_rows, f"{path.name}: {after.num_rows} rows"
        for name in before.column_names:
            a, b = expected[name].combine_chunks(), after[name].combine_chunks()
            if name == "double":
                a, b = (pa.array(map(repr, x.to_pylist())) for x in (a, b))
            if name == "dictionary":
                a, b = (x.cast(pa.string()) for x in (a, b))
            assert a.equals(b), f"{path.name}: the column {name!r} differs"
        old, new = pq.ParquetFile(path), pq.ParquetFile(written)
        assert old.metadata.metadata == new.metadata.metadata, f"{path.name}: other key-value metadata"
        assert old.schema.equals(new.schema), f"{path.name}: another Parquet schema"
        for group in range(new.num_row_groups):
            for column in range(new.metadata.num_columns):
                a = old.metadata.row_group(0).column(column)
                b = new.metadata.row_group(group).column(column)
                assert a.compression == b.compression, f"{path.name}: {b.path_in_schema} in {b.compression}"
        kept += after.num_rows
    assert removed and kept, "some rows go and some stay"
    print(f"{len(files)} files, {len(before.column_names)} columns, {kept} rows kept, {len(removed)} removed")


if __name__ == "__main__":
    {"make": make, "compare": compare}[sys.argv[1]](pathlib.Path(sys.argv[2]))
