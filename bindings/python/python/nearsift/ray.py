"""Near duplicates of a data set of Ray, with the clusters that the program finds.

    from nearsift import ray as nearsift_ray
    found = nearsift_ray.dedup(ray.data.read_parquet("in"), text="text", id="url")
    found.kept.write_parquet("kept")

Workers sketch the blocks, which takes nearly all of the processor's time. The driver decides, by the engine of the program, and needs some
240 bytes of memory a document, and disk for the parts, about half of the bytes of the texts. Every worker needs the same version of
nearsift.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearsift import _cluster, _settings
from nearsift._errors import InputError, SettingError
from nearsift._settings import ClusterRule, Method, PathLike

if TYPE_CHECKING:
    import pyarrow as pa
    from ray.data import Dataset  # pyright: ignore[reportMissingImports]

__all__ = ["Deduplicated", "dedup"]


@dataclass(frozen=True)
class Deduplicated:
    """What :func:`dedup` decided."""

    #: All rows, with the columns `cluster`, `cluster_size`, `representative`, `score`, `kept` and `reason`.
    marked: Dataset
    #: The rows that stay, as they were.
    kept: Dataset
    #: The rows that go, with these columns.
    removed: Dataset
    #: The summary of the engine, as of a run of the program.
    summary: dict[str, Any]


def dedup(
    ds: Dataset,
    text: str = "text",
    id: str = "id",
    *,
    order_by: str | None = None,
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
    """Finds the near duplicates of a data set.

    Args:
        ds: The rows. Ids must be unique and not null; a row without a text stays.
        text: The column of the texts.
        id: The column of the ids, strings or whole numbers.
        order_by: The column by whose order documents count, such as the id: of equal ones the first stays. Without it documents count in
            the order of the blocks.
        results: A folder of the driver for the tables and the report of a run of the program, which :class:`nearsift.Run` reads.
        local: A folder of the driver for the parts while they are joined; the system's for temporary files without it.
        method, min_score, max_distance, recipe, verify, keep, source, cluster, max_cluster: As of :func:`nearsift.dedup`.
        mark_names: Other names for the columns that are added.
        threads, memory: Of the driver.

    Raises:
        InputError: A null id or one that is not unique, or no row with a text.
        SettingError: A column that is not there or is there already.
    """
    ray: Any = import_module("ray")
    columns = ds.columns() or []
    sketched_by = _cluster.sketched_by(method, max_distance, recipe)
    sketching = _cluster.Sketching(text, id, sketched_by, keep, source, texts=verify is not False)
    for column in [*sketching.columns, *([order_by] if order_by else [])]:
        if column not in columns:
            raise SettingError(f"no column {column!r}: the columns are {', '.join(columns)}")
    names = _cluster.mark_names(mark_names, columns)
    matching = _settings.matching(method=method, min_score=min_score, max_distance=max_distance, verify=verify)
    wanted = ds.select_columns(list(dict.fromkeys([*sketching.columns, *([order_by] if order_by else [])])))
    if order_by is not None:
        wanted = wanted.sort(order_by)
    with tempfile.TemporaryDirectory(prefix="nearsift-", dir=local) as folder:
        parts = _cluster.Parts(Path(folder) / "parts")
        chunks = wanted.map_batches(_sketch, fn_kwargs={"sketching": sketching}, batch_size=None, batch_format="pyarrow")
        # A data set has the settings of the time at which it was made.
        chunks.context.execution_options.preserve_order = True
        ordinals: dict[str, int] = {}
        for row in chunks.iter_rows():
            if row["part"] == _NULL_ID:
                raise InputError(f"column {id!r} has rows without an id: fill them, or leave these rows out")
            ordinal = ordinals.setdefault(row["part"], len(ordinals))
            parts.add(row["part"], (ordinal,), row["file"], row["number"], row["content"])
        joined = Path(results) if results is not None else Path(folder) / "joined"
        options = {"threads": threads, "memory": memory, "cluster": cluster, "max_cluster": max_cluster}
        summary = parts.join(joined, matching, options)
        decisions = ray.put(_cluster.one_table(parts.decisions(joined)))
    settings = {"id": id, "names": names, "decisions": decisions}
    marked = ds.map_batches(_mark, fn_kwargs=settings, batch_size=None, batch_format="pyarrow")
    kept, stays = names["kept"], list(columns)
    return Deduplicated(
        marked=marked,
        kept=marked.map_batches(_where, fn_args=[kept, True, stays], batch_size=None, batch_format="pyarrow"),
        removed=marked.map_batches(_where, fn_args=[kept, False, None], batch_size=None, batch_format="pyarrow"),
        summary=summary,
    )


#: Stands for a part whose rows lack an id.
_NULL_ID = "null id"


def _sketch(block: pa.Table, sketching: _cluster.Sketching) -> pa.Table:
    """A block as the chunks of a part."""
    import uuid

    import pyarrow as pa

    part = str(uuid.uuid4())
    rows: list[tuple[str, int, bytes]] = []
    if block.num_rows and block[sketching.id].null_count:
        part, rows = _NULL_ID, [("", 0, b"")]
    elif block.num_rows:
        rows = list(_cluster.chunks_of(block.to_batches(), sketching))
    files, numbers, contents = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        {
            "part": pa.array([part] * len(rows), pa.string()),
            "file": pa.array(files, pa.string()),
            "number": pa.array(numbers, pa.int32()),
            "content": pa.array(contents, pa.binary()),
        }
    )


def _mark(block: pa.Table, id: str, names: dict[str, str], decisions: Any) -> pa.Table:
    """A block with what was decided about its rows."""
    import pyarrow as pa

    # What is in these modules no checker of types knows.
    ray: Any = import_module("ray")
    compute: Any = import_module("pyarrow.compute")
    decided = ray.get(decisions)
    if not block.num_rows:
        return block
    kind = decided["id"].type
    places = compute.index_in(block[id].cast(kind), value_set=decided["id"].combine_chunks())
    # A row without a text is like no other.
    absent = {
        "cluster_size": pa.scalar(1, pa.int64()),
        "representative": block[id].cast(kind),
        "kept": pa.scalar(True),
        "reason": pa.scalar("unreadable"),
    }
    missing = places.is_null()
    for column, name in names.items():
        cells = decided[column].take(places)
        if column in absent:
            cells = compute.if_else(missing, absent[column], cells)
        block = block.append_column(name, cells)
    return block


def _where(block: pa.Table, column: str, value: bool, columns: list[str] | None) -> pa.Table:
    """The rows of a block with a value, and some of its columns."""
    import pyarrow.compute as pc

    if not block.num_rows:
        return block
    rows = block.filter(pc.field(column) == value)
    return rows if columns is None else rows.select(columns)
