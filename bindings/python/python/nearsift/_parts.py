"""A deduplication cut in parts: sketched anywhere, joined on one machine, applied anywhere."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from nearsift import _native, _settings
from nearsift._dedup import Run, _grouping, _joining
from nearsift._settings import ClusterRule, Language, PathLike, Progress


def sketch_part(
    inputs: PathLike | Sequence[PathLike],
    part: PathLike,
    *,
    text: str = "text",
    id: str = "id",
    format: str | None = None,
    charset: str | None = None,
    recipe: str | None = None,
    user_dictionary: PathLike | None = None,
    stop_words: PathLike | None = None,
    keep: str = "first",
    source: str | None = None,
    texts: bool = True,
    threads: int | None = None,
    memory: int | str | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Makes a part of a corpus, a folder with what :func:`join_parts` needs of some files, on any machine.

    A part has a sketch or fingerprint, an id and, unless `texts` is false, the packed text of every document. The files are read once
    and never changed. A job that was stopped goes on where it was when it is begun again. Returns what the part has.

    >>> import json, nearsift as ns, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> story = "Two metro lines stood still for three hours after the heavy rain of last night."
    >>> for name in ["monday", "tuesday"]:
    ...     _ = (folder / f"{name}.jsonl").write_text(json.dumps({"id": name, "text": story}))
    ...     _ = ns.sketch_part(folder / f"{name}.jsonl", folder / "parts" / name)
    >>> run = ns.join_parts([folder / "parts/monday", folder / "parts/tuesday"], folder / "joined")
    >>> run.removed[0]["id"], run.removed[0]["representative"]
    ('tuesday', 'monday')
    >>> ns.apply_part(folder / "parts/tuesday", folder / "joined", folder / "tuesday")["kept"]
    0

    Raises:
        InputError: An input that cannot be read, or a folder that holds something else.
        SettingError: `keep` or `source` names a field that is not there.
    """
    paths = [inputs] if isinstance(inputs, (str, Path)) or not isinstance(inputs, Sequence) else list(inputs)
    summary = _native.sketch_part(
        None,
        [Path(path) for path in paths],
        _settings.reading(text=text, id=id, format=format, charset=charset),
        _settings.matching(recipe=recipe, user_dictionary=user_dictionary, stop_words=stop_words),
        {"part": Path(part), "keep": keep, "source": source, "texts": texts},
        _settings.options(threads=threads, memory=memory, progress=progress),
    )
    found: dict[str, Any] = json.loads(summary)
    return found


def join_parts(
    parts: Sequence[PathLike],
    output: PathLike,
    *,
    resume: bool = False,
    tables: Literal["jsonl", "parquet"] = "jsonl",
    language: Language = "en",
    date: str | None = None,
    recipe: str | None = None,
    user_dictionary: PathLike | None = None,
    stop_words: PathLike | None = None,
    min_score: float | None = None,
    max_distance: int | None = None,
    verify: bool | None = None,
    cluster: ClusterRule | None = None,
    max_cluster: int | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
    progress: Progress | None = None,
) -> Run:
    """Decides about the documents of parts, as :func:`dedup_files` does of all their files, in the order of the parts.

    No file is read but the parts. `language` and `date` are those of the report, as of :func:`dedup_files`. Returns the folder's reader; :func:`apply_part` writes by it what stays of the files of each part.

    Raises:
        InputError: A part that is not complete, damaged, given twice, or made by other settings than the first.
        MemoryLimitError: `memory` is too small.
    """
    _native.join_parts(
        [Path(part) for part in parts],
        _settings.matching(
            recipe=recipe,
            user_dictionary=user_dictionary,
            stop_words=stop_words,
            min_score=min_score,
            max_distance=max_distance,
            verify=verify,
        ),
        _grouping("first", cluster, max_cluster, None, ()),
        _joining(output, resume=resume, tables=tables, language=language, date=date),
        _settings.options(threads=threads, memory=memory, progress=progress),
    )
    return Run(output)


def apply_part(
    part: PathLike,
    decisions: PathLike,
    output: PathLike,
    *,
    inputs: Sequence[PathLike] = (),
    resume: bool = False,
    mark: bool | Mapping[str, str] = False,
    output_format: str | None = None,
    output_compression: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Writes what stays of the files of a part, by what :func:`join_parts` decided into the folder `decisions`.

    With `mark` every document is written, with the columns of :func:`dedup_files`. `inputs` names the files where they are not any more
    where they were. Returns the summary.

    Raises:
        InputError: The part was not among those that were joined, or the files are not those that were read.
    """
    summary = _native.apply_part(
        Path(part),
        Path(decisions),
        {
            "inputs": [Path(path) for path in inputs],
            "output": Path(output),
            "resume": resume,
            "mark": None if mark is False else list(({} if mark is True else mark).items()),
            "output_format": output_format,
            "output_compression": output_compression,
        },
        _settings.options(threads=threads, progress=progress),
    )
    found: dict[str, Any] = json.loads(summary)
    return found
