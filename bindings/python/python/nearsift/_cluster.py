"""What Spark and Ray share: documents sketched where they are, decided about on one machine, by the engine of the program.

A task sketches its rows into a part and hands its files over in chunks, as rows of a table. The machine that decides puts the parts
together again and joins them, and hands out what was decided as a table by id.
"""

from __future__ import annotations

import json
import socket
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearsift import _native, _settings
from nearsift._dedup import _grouping, _joining
from nearsift._errors import InputError, SettingError
from nearsift._settings import Method

if TYPE_CHECKING:
    import pyarrow as pa

#: The bytes of a chunk.
CHUNK = 4 << 20

#: The columns of what was decided, behind the id.
MARKS = ("cluster", "cluster_size", "representative", "score", "kept", "reason")


@dataclass(frozen=True)
class Sketching:
    """How the rows of a task become a part."""

    text: str
    id: str
    matching: dict[str, object]
    keep: str
    source: str | None
    texts: bool
    version: str = _native.VERSION

    @property
    def columns(self) -> list[str]:
        """The columns that are read, the id first."""
        policy, _, named = self.keep.partition(":")
        wanted = [self.id, self.text, named.partition("=")[0] if policy != "first" else "", self.source or ""]
        return list(dict.fromkeys(name for name in wanted if name))

    @property
    def digest(self) -> str:
        """What tells the parts of one plan from those of another."""
        said = [self.text, self.id, sorted(self.matching.items()), self.keep, self.source, self.texts, self.version]
        return sha256(json.dumps(said, default=str).encode()).hexdigest()[:16]


def sketched_by(method: Method | None, max_distance: int | None, recipe: str | None) -> dict[str, object]:
    """What decides sketches or fingerprints, of all that decides which documents are near."""
    return _settings.matching(method="simhash" if max_distance is not None else method, recipe=recipe)


def chunks_of(batches: Iterable[pa.RecordBatch], sketching: Sketching) -> Iterator[tuple[str, int, bytes]]:
    """Sketches the rows of a task into a part, and yields its files: name, number of the chunk, bytes."""
    import pyarrow as pa

    if _native.VERSION != sketching.version:
        raise RuntimeError(
            f"{socket.gethostname()} has nearsift {_native.VERSION}, and the driver {sketching.version}: "
            f"install nearsift=={sketching.version} on every worker"
        )
    table = pa.Table.from_batches(batches)
    if table.num_rows == table[sketching.text].null_count:
        return
    with tempfile.TemporaryDirectory(prefix="nearsift-") as folder:
        part = Path(folder) / "part"
        _native.sketch_part(
            table,
            None,
            _settings.reading(text=sketching.text, id=sketching.id),
            sketching.matching,
            {"part": part, "keep": sketching.keep, "source": sketching.source, "texts": sketching.texts},
            _settings.options(threads=1, scratch=folder),
        )
        for path in sorted(part.iterdir()):
            with path.open("rb") as file:
                for number, content in enumerate(iter(lambda: file.read(CHUNK), b"")):
                    yield path.name, number, content


@dataclass
class Parts:
    """Parts on the machine that decides, put together from their chunks in any order."""

    folder: Path
    #: By the name of a part, what it is ordered by.
    order: dict[str, tuple[Any, ...]] = field(default_factory=dict)

    def add(self, part: str, order: tuple[Any, ...], file: str, number: int, content: bytes) -> None:
        """Takes a chunk."""
        folder = self.folder / part
        folder.mkdir(parents=True, exist_ok=True)
        self.order[part] = order
        path = folder / Path(file).name
        path.touch()
        with path.open("r+b") as target:
            target.seek(number * CHUNK)
            target.write(content)

    @property
    def folders(self) -> list[Path]:
        """The parts, in the order in which their documents count."""
        return [self.folder / part for part in sorted(self.order, key=lambda part: (self.order[part], part))]

    def join(self, output: Path, matching: dict[str, object], options: dict[str, Any]) -> dict[str, Any]:
        """Decides about all documents, and returns the summary.

        Raises:
            InputError: There is no document, or an id is there more than once.
        """
        if not self.order:
            raise InputError("no row has a text: name the column of the texts by text=")
        grouping = _grouping("first", options.pop("cluster"), options.pop("max_cluster"), None, ())
        joining = _joining(output)
        _native.join_parts(self.folders, matching, grouping, joining, _settings.options(**options))
        summary: dict[str, Any] = json.loads((output / "summary.json").read_text(encoding="utf-8"))
        if summary["duplicate_ids"] > 0:
            raise InputError(
                f"{summary['duplicate_ids']} rows have an id that another row has, too: decisions are joined by id; "
                "give a column of unique ids by id="
            )
        return summary

    def decisions(self, output: Path) -> Iterator[pa.Table]:
        """What was decided, a table for each part: the id, and the columns of :data:`MARKS`."""
        for folder in self.folders:
            yield _native.part_decisions(folder, output, _settings.options()).to_pyarrow()


def one_table(tables: Iterable[pa.Table]) -> pa.Table:
    """The decisions about all parts: ids are strings where some are, else numbers."""
    import pyarrow as pa

    tables = list(tables)
    strings = any(pa.types.is_string(table.schema.field("id").type) for table in tables)
    kind = pa.string() if strings else pa.int64()

    def of_kind(table: pa.Table) -> pa.Table:
        for name in ["id", "representative"]:
            table = table.set_column(table.column_names.index(name), name, table[name].cast(kind))
        return table

    return pa.concat_tables([of_kind(table) for table in tables])


def mark_names(given: Mapping[str, str] | None, columns: Iterable[str]) -> dict[str, str]:
    """The names of the columns of what was decided.

    Raises:
        SettingError: A name that is not one of them, or a column that is there already.
    """
    names = dict.fromkeys(MARKS, "")
    for column, name in (given or {}).items():
        if column not in names:
            raise SettingError(f"mark_names: no column {column!r}: expected {', '.join(MARKS)}")
        names[column] = name
    names = {column: name or column for column, name in names.items()}
    there = set(columns)
    if taken := [name for name in names.values() if name in there]:
        raise SettingError(f"mark_names: there is a column {taken[0]!r} already: give the added one another name")
    if len(set(names.values())) < len(names):
        raise SettingError("mark_names: two columns have one name")
    return names
