"""Test sets in training text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nearsift import _native, _settings
from nearsift._settings import Language, PathLike, Progress


def _paths(given: PathLike | Sequence[PathLike]) -> list[Path]:
    if isinstance(given, (str, Path)) or not isinstance(given, Sequence):
        given = [given]
    return [Path(path) for path in given]


def decontaminate(
    inputs: PathLike | Sequence[PathLike],
    benchmarks: PathLike | Sequence[PathLike],
    output: PathLike,
    *,
    benchmark_fields: Sequence[str] | None = None,
    benchmark_id_field: str = "id",
    save_index: PathLike | None = None,
    min_coverage: float | None = None,
    min_weight: float | None = None,
    mark: bool | Mapping[str, str] = False,
    dry_run: bool = False,
    source: str | None = None,
    text: str = "text",
    id: str = "id",
    format: str | None = None,
    charset: str | None = None,
    overwrite: bool = False,
    language: Language = "en",
    threads: int | None = None,
    memory: int | str | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Finds the items of benchmarks in the documents of files and folders, and removes the documents that have any.

    The folder `output` gets what `nearsift decontaminate` writes, byte for byte: `kept/`, `hits.jsonl` with a line for each passage,
    `report.html`, `summary.json`. Returns the summary.

    >>> import json, nearsift as ns, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> question = "Which physicist proposed the exclusion principle for electrons in 1925?"
    >>> bench, docs = folder / "bench.jsonl", folder / "docs.jsonl"
    >>> _ = bench.write_text(json.dumps({"id": "q1", "question": question}))
    >>> texts = ["A walk along the river.", f"A quiz for physicists: {question.upper()}"]
    >>> _ = docs.write_text("\\n".join(json.dumps({"id": n, "text": text}) for n, text in enumerate(texts)))
    >>> ns.decontaminate(docs, bench, folder / "out")["contaminated"]
    1
    >>> [json.loads(line)["id"] for line in (folder / "out/kept/docs.jsonl").open()]
    [0]

    Args:
        inputs: Files and folders of documents.
        benchmarks: Files of items, or files that `save_index` wrote.
        output: The folder for the results; it must be empty or not exist.
        benchmark_fields: The fields of an item that hold texts; those with usual names without it.
        benchmark_id_field: The field of an item's id.
        save_index: Also saves the items in a new file, to be given as `benchmarks` later.
        min_coverage: How much of a text's weight a passage has at least, from 0.05 to 1. Default: 0.6.
        min_weight: How much a passage weighs at least, in bits. Default: 20.
        mark: Removes nothing: `marked/` has every document, with the columns `contaminated`, `hits`, `benchmark`, `item` and
            `coverage`. A mapping gives them other names.
        dry_run: Writes no documents.
        source: The field that says where a document comes from.
        text, id, format, charset: Of the documents.
        overwrite: Replaces the results of an earlier run in that folder.
        language: Of `report.html`: `en` or `zh`.
        threads: The threads; all processors without it. The result never depends on it.
        memory: The most memory, such as `4GB`.
        progress: `True` for bars of tqdm, or a function of phase, done, total and unit.

    Raises:
        ValueError: `mark` and `dry_run` together, or a bound out of range.
        SettingError: A benchmark without the named fields, or without items.
        InputError: An input or a benchmark that cannot be read, or an output folder that is not empty.
        MemoryLimitError: `memory` is too small.
    """
    if mark is not False and dry_run:
        raise ValueError("mark and dry_run exclude each other: give one")
    action = "mark" if mark is not False else "dry_run" if dry_run else "remove"
    summary = _native.decontaminate_files(
        _paths(inputs),
        _settings.reading(text=text, id=id, format=format, charset=charset),
        {
            "output": Path(output),
            "benchmarks": _paths(benchmarks),
            "fields": None if benchmark_fields is None else list(benchmark_fields),
            "id_field": benchmark_id_field,
            "save_index": None if save_index is None else Path(save_index),
            "min_coverage": min_coverage,
            "min_weight": min_weight,
            "action": action,
            "names": list(mark.items()) if isinstance(mark, Mapping) else [],
            "source": source,
            "overwrite": overwrite,
            "language": language,
        },
        _settings.options(threads=threads, memory=memory, progress=progress),
    )
    found: dict[str, Any] = json.loads(summary)
    return found
