"""Keywords as the compiled half takes them, and what all functions share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from nearsift import _native
from nearsift._errors import InputTypeError, SettingError

Method: TypeAlias = Literal["sketch", "simhash"]
ClusterRule: TypeAlias = Literal["majority", "components", "star"]
#: The language of a report.
Language: TypeAlias = Literal["en", "zh"]
PathLike: TypeAlias = str | os.PathLike[str]

#: Called with the phase, the work that is done, all of it, and its unit.
ProgressCallback: TypeAlias = Callable[[str, int, int, str], object]
#: `True` for a bar of tqdm.
Progress: TypeAlias = bool | ProgressCallback


class SupportsArrowStream(Protocol):
    """A table or column of any library that speaks Arrow: Polars, pandas, pyarrow, DuckDB, and others."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class HuggingFaceDataset(Protocol):
    """A data set of Hugging Face's library `datasets`."""

    @property
    def features(self) -> Any: ...
    def with_format(self, type: Any = None) -> Any: ...


class SupportsArrowArray(Protocol):
    """An array or record batch of any library that speaks Arrow."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...


#: A column of texts.
Texts: TypeAlias = SupportsArrowStream | SupportsArrowArray | Iterable[str | None]
#: A table with a column of texts, a list of texts, or paths.
Data: TypeAlias = (
    SupportsArrowStream
    | SupportsArrowArray
    | HuggingFaceDataset
    | Mapping[str, Sequence[Any]]
    | Sequence[str | None]
    | Sequence[Mapping[str, Any]]
    | Path
    | Sequence[Path]
)

Settings: TypeAlias = dict[str, object]


def matching(
    *,
    method: Method | None = None,
    recipe: str | None = None,
    bits: int | None = None,
    idf: PathLike | None = None,
    user_dictionary: PathLike | None = None,
    stop_words: PathLike | None = None,
    levels: PathLike | None = None,
    max_distance: int | None = None,
    min_score: float | None = None,
    preset: Literal["records"] | None = None,
    verify: bool | None = None,
) -> Settings:
    return {
        "method": method,
        "recipe": recipe,
        "bits": bits,
        "idf": None if idf is None else os.fspath(idf),
        "user_dictionary": user_dictionary,
        "stop_words": stop_words,
        "levels": levels,
        "max_distance": max_distance,
        "min_score": min_score,
        "preset": preset,
        "verify": verify,
    }


def reading(
    *,
    text: str = "text",
    id: str | None = None,
    format: str | None = None,
    charset: str | None = None,
    delimiter: str | None = None,
    follow_links: bool = False,
    max_record_bytes: int | None = None,
    max_file_bytes: int | None = None,
    max_ratio: int | None = None,
) -> Settings:
    return {
        "text": text,
        "id": id,
        "format": format,
        "charset": charset,
        "delimiter": delimiter,
        "follow_links": follow_links,
        "max_record_bytes": max_record_bytes,
        "max_file_bytes": max_file_bytes,
        "max_ratio": max_ratio,
    }


def options(
    *,
    threads: int | None = None,
    memory: int | str | None = None,
    scratch: PathLike | None = None,
    progress: Progress | None = None,
) -> Settings:
    return {
        "threads": threads,
        "memory": None if memory is None else bytes_of(memory),
        "scratch": scratch,
        "progress": callback(progress),
    }


def bytes_of(size: int | str) -> int:
    """The bytes of a size such as `4GB` or `512MiB`."""
    if isinstance(size, int):
        if size <= 0:
            raise SettingError(f"memory={size}: expected a number of bytes above 0")
        return size
    if (found := _native.parse_size(size)) is None:
        raise SettingError(f"memory={size!r}: expected a size such as 4GB or 512MiB")
    return found


def callback(progress: Progress | None) -> ProgressCallback | None:
    """A function that is called with progress; for `True` one that draws the bars of tqdm."""
    if progress is None or progress is False:
        return None
    if progress is not True:
        return progress
    try:
        from tqdm.auto import tqdm  # pyright: ignore[reportMissingModuleSource]
    except ImportError:
        raise SettingError(
            "progress=True draws bars by tqdm, which is not installed: pip install tqdm, or give a function"
        ) from None

    bars: dict[str, Any] = {}

    def advance(phase: str, done: int, total: int, unit: str) -> None:
        bar = bars.get(phase)
        if bar is None or done == 0:
            scale = unit == "bytes"
            bar = bars[phase] = tqdm(total=total, desc=phase, unit="B" if scale else unit, unit_scale=scale)
        bar.update(done - bar.n)
        if done >= total:
            bar.close()

    return advance


def given(data: object, text: str) -> tuple[Any, list[Path] | None]:
    """Splits what was given into a table and paths: one of the two is there."""
    if isinstance(data, Path):
        return None, [data]
    if isinstance(data, str):
        raise InputTypeError(
            f"got one str, expected texts or a table: for a file write Path({data[:60]!r}), for one text put it in a list"
        )
    if isinstance(data, Mapping):
        return _of_columns(data), None
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return data, None
    if (converted := _of_library(data)) is not None:
        return converted, None
    if isinstance(data, Sequence) and data:
        if isinstance(data[0], Path):
            return None, [_path(place, item) for place, item in enumerate(data)]
        if isinstance(data[0], Mapping):
            return _of_columns(_columns(data)), None
    return data, None


def _path(place: int, item: object) -> Path:
    if isinstance(item, Path):
        return item
    raise InputTypeError(f"item {place} is of type {type(item).__name__}, expected Path as the first is")


def _columns(rows: Sequence[Any]) -> dict[str, list[Any]]:
    """Rows as columns, by the keys of all rows."""
    names: dict[str, None] = {}
    for place, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InputTypeError(f"row {place} is of type {type(row).__name__}, expected a mapping as the first is")
        names.update(dict.fromkeys(row))
    return {name: [row.get(name) for row in rows] for name in names}


def _of_columns(columns: Mapping[str, Any]) -> Any:
    """A mapping of columns as a table."""
    return _native.table_of_columns(list(columns.items()))


def _of_library(data: Any) -> Any:
    """Tables of libraries that hand theirs out in another way."""
    # Hugging Face datasets: batches by their own format, whatever rows were selected.
    if hasattr(data, "with_format") and hasattr(data, "features"):
        return data.with_format("arrow")[:]
    # Daft, Ray, and others.
    for name in ("to_arrow", "to_arrow_table"):
        if hasattr(data, name):
            return getattr(data, name)()
    return None
