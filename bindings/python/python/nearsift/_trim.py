"""Exact repeats, cut out of files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from nearsift import _native, _settings
from nearsift._settings import PathLike, Progress


def trim_substrings(
    inputs: PathLike | Sequence[PathLike],
    output: PathLike,
    *,
    min_bytes: int = 500,
    unit: Literal["bytes", "letters"] = "bytes",
    widen: Literal["line", "sentence"] | None = None,
    narrow: Literal["line", "sentence"] | None = None,
    keep: str = "first",
    mark: bool | Mapping[str, str] = False,
    overwrite: bool = False,
    text: str = "text",
    id: str = "id",
    format: str | None = None,
    charset: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Cuts every stretch of `min_bytes` bytes and more that stands earlier out of the documents of files and folders.

    One copy of a stretch stays, and so does every other byte: the copy of the document that `keep` prefers (`first`, `longest`,
    `newest:FIELD`, `highest:FIELD` or `ranked:FIELD=VALUE,...`, as in `dedup_files`), and in it the first. `kept/` in the folder `output`
    has the files in their own formats, `removed.jsonl` a line for each cut. With `mark`, every document stays: `repeats.jsonl` lists the
    repeats, and `marked/` has all documents with the columns `repeats`, `repeated_bytes` and `only_repeats`; a mapping gives them other
    names. `overwrite` replaces the results of an earlier run in that folder. Returns the summary.

    >>> import json, nearsift as ns, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> notice = "Permission is granted to use, copy and sell this, if this notice is kept in all copies."
    >>> docs = folder / "docs.jsonl"
    >>> lines = [json.dumps({"id": n, "text": f"{name}. {notice}"}) for n, name in enumerate(["One", "Two"])]
    >>> _ = docs.write_text("\\n".join(lines))
    >>> ns.trim_substrings(docs, folder / "out", min_bytes=60)["repeats"]
    1
    >>> [json.loads(line)["text"] for line in (folder / "out/kept/docs.jsonl").open()][1]
    'Two'

    `unit="letters"` compares letters and digits whatever their case, width, punctuation and line ends, Traditional as Simplified.
    `widen` removes the lines or sentences in which a repeat begins and ends, too; `narrow` only those that it holds whole.

    Raises:
        ValueError: `min_bytes` is not from 32 to 65,535, `keep` is no policy, or `widen` and `narrow` are given together.
        SettingError: A name of a column that a file has already.
        InputError: An input that cannot be read or rewritten, or an output folder that is not empty.
    """
    paths = [inputs] if isinstance(inputs, (str, Path)) or not isinstance(inputs, Sequence) else list(inputs)
    summary = _native.trim_substrings(
        [Path(path) for path in paths],
        _settings.reading(text=text, id=id, format=format, charset=charset),
        {
            "output": Path(output),
            "min_bytes": min_bytes,
            "unit": unit,
            "widen": widen,
            "narrow": narrow,
            "keep": keep,
            "mark": mark is not False,
            "names": list(mark.items()) if isinstance(mark, Mapping) else [],
            "overwrite": overwrite,
        },
        _settings.options(threads=threads, progress=progress),
    )
    found: dict[str, Any] = json.loads(summary)
    return found
