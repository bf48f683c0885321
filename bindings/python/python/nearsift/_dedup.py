"""Deduplication of tables, lists and files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from nearsift import _native, _settings
from nearsift._errors import InputError, NearsiftError
from nearsift._settings import ClusterRule, Data, Language, Method, PathLike, Progress
from nearsift._texts import Comparison


class Why(NamedTuple):
    """What was decided about a row, and on what."""

    id: Any
    #: Its row, from 0.
    row: int
    kept: bool
    #: As in :attr:`Deduplicated.table`.
    reason: str | None
    #: The id of the row that stays for it: its own where it stays.
    representative: Any
    #: What decided, from 0 to 1, where the two were compared with each other.
    score: float | None
    #: The ids of its cluster, itself included.
    members: list[Any]
    #: It and its representative, or the other row that was asked about, by every measure; `None` where it stays by itself.
    comparison: Comparison | None


class Deduplicated:
    """What :func:`dedup` decided: which rows stay, and why the others go."""

    def __init__(
        self,
        table: _native.Table,
        summary: dict[str, Any],
        decided: _native.Decided | None,
        settings: tuple[_settings.Settings, _settings.Settings, _settings.Settings] | None = None,
    ) -> None:
        self._table = table
        self._summary = summary
        self._decided = decided
        self._settings = settings

    @property
    def table(self) -> _native.Table:
        """One row a document, in the order of the input: `id`, `cluster`, `cluster_size`, `representative`, `score`, `kept`, `reason`.

        `cluster` is null for a document that is like no other. `score` is how alike a removed document and its representative
        are, from 0 to 1, and null where they were not compared with each other. `reason` is null for what stays, else
        `exact-duplicate`, `near-duplicate`, one of these `-of-reference`, or `unreadable` for a row without a text.
        """
        return self._table

    @cached_property
    def keep_mask(self) -> list[bool]:
        """Whether each row stays: for filtering without a join."""
        return self._table["kept"].to_pylist()

    @property
    def summary(self) -> dict[str, Any]:
        """Everything that was counted: what `summary.json` of the program has."""
        return self._summary

    @property
    def representative_rows(self) -> _native.Column:
        """For each row the row that stays for it: itself where it stays. Exact even where ids are not unique."""
        return self._alive().representative_rows()

    @property
    def pairs(self) -> _native.Table:
        """The pairs that hold the clusters together: `a`, `b`, `score`."""
        return self._alive().pairs()

    @cached_property
    def _rows(self) -> dict[Any, list[int]]:
        rows: dict[Any, list[int]] = {}
        for row, id in enumerate(self._table["id"].to_pylist()):
            rows.setdefault(id, []).append(row)
        return rows

    def _row(self, id: Any) -> int:
        rows = self._rows.get(id, [])
        if len(rows) == 1:
            return rows[0]
        if not rows:
            # It takes as long to import as all the rest.
            import difflib

            near = difflib.get_close_matches(str(id), [str(known) for known in self._rows], n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise InputError(f"no row has the id {id!r}{hint}")
        shown = ", ".join(map(str, rows[:5])) + (", ..." if len(rows) > 5 else "")
        raise InputError(f"{len(rows)} rows have the id {id!r}: {shown}; make the ids unique, or leave id= out and ask by the row")

    def why(self, id: Any, other: Any = None) -> Why:
        """Why a row stays or goes: its partner, every figure as the job weighed it, and the marked differences.

        >>> import nearsift as ns
        >>> texts = ["今天下午，市图书馆举办了一场面向儿童的绘本阅读活动。", "今天下午，市图书馆举办了一场儿童绘本阅读活动。"]
        >>> why = ns.dedup(texts).why(1)
        >>> why.reason, why.representative, why.comparison.marked()
        ('near-duplicate', 0, '今天下午，市图书馆举办了一场[-面向-]儿童[-的-]绘本阅读活动。')

        Args:
            id: The id of the row, or its number where the table has no ids.
            other: Another row, that it is compared with in place of its representative.

        Raises:
            InputError: No row or several have the id.
        """
        decided, row = self._alive(), self._row(id)
        found = {name: self._table[name][row] for name in ("kept", "reason", "representative", "score")}
        partner = self._row(other) if other is not None else self._representative_row(row)
        comparison = None
        if partner != row:
            figures = decided.compare(partner, row, self._job()[2])
            comparison = Comparison(json.loads(figures))
        ids = self._table["id"]
        return Why(id=id, row=row, members=[ids[member] for member in decided.members(row)], comparison=comparison, **found)

    def _representative_row(self, row: int) -> int:
        number: int = self._alive().representative_rows()[row]
        return number

    def regroup(
        self,
        *,
        min_score: float | None = None,
        max_distance: int | None = None,
        cluster: ClusterRule | None = None,
        max_cluster: int | None = None,
        keep: str | None = None,
        progress: Progress | None = None,
    ) -> Deduplicated:
        """Decides again with other settings; those that are left out stay as they were.

        The result is that of :func:`dedup` with these settings. The table is not read again: what the job needs of it is kept in a
        temporary file as long as a result lives. It takes the time of a job.
        """
        matching, grouping, options = (dict(part) for part in self._job())
        if min_score is not None:
            matching |= {"min_score": min_score, "preset": None}
        if max_distance is not None:
            matching |= {"max_distance": max_distance}
        changes = {"cluster": cluster, "max_cluster": max_cluster, "keep": keep}
        grouping |= {name: value for name, value in changes.items() if value is not None}
        options |= {"progress": _settings.callback(progress)}
        decided = self._alive().again(matching, grouping, options)
        settings = (matching, grouping, options)
        return Deduplicated(decided.table(), json.loads(decided.summary()), decided, settings)

    def _job(self) -> tuple[_settings.Settings, _settings.Settings, _settings.Settings]:
        self._alive()
        assert self._settings is not None
        return self._settings

    def __len__(self) -> int:
        return len(self._table)

    def __repr__(self) -> str:
        kept = sum(self.keep_mask)
        return f"Deduplicated({len(self)} rows: {kept} kept, {len(self) - kept} removed)"

    def _alive(self) -> _native.Decided:
        if self._decided is None:
            raise NearsiftError("the result was pickled, and what it was made of stayed behind: run dedup again")
        return self._decided

    def __reduce__(self) -> tuple[Any, ...]:
        return (Deduplicated, (self._table, self._summary, None))


def dedup(
    data: Data,
    *,
    text: str = "text",
    id: str | None = None,
    method: Method | None = None,
    min_score: float | None = None,
    max_distance: int | None = None,
    preset: Literal["records"] | None = None,
    recipe: str | None = None,
    bits: int | None = None,
    idf: PathLike | None = None,
    user_dictionary: PathLike | None = None,
    stop_words: PathLike | None = None,
    levels: PathLike | None = None,
    verify: bool | None = None,
    keep: str = "first",
    cluster: ClusterRule | None = None,
    max_cluster: int | None = None,
    source: str | None = None,
    against: Sequence[PathLike] = (),
    against_kept_only: bool = False,
    format: str | None = None,
    charset: str | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
    scratch: PathLike | None = None,
    progress: Progress | None = None,
) -> Deduplicated:
    """Finds near duplicates among documents, groups them, and chooses what stays.

    >>> import nearsift as ns
    >>> texts = ["今天下午，市图书馆举办了一场面向儿童的绘本阅读活动。", "本报讯：昨天的大雨使两条地铁线路停运了三个小时。",
    ...          "今天下午，市图书馆举办了一场儿童绘本阅读活动。"]
    >>> ns.dedup(texts).keep_mask
    [True, True, False]

    Args:
        data: A table of any library that speaks Arrow, a mapping of columns, a list of texts, or `Path` objects of files and
            folders.
        text: The column of the texts.
        id: The column of the ids; without it rows are named by their numbers from 0.
        method: `sketch` (the default) compares the texts of likely pairs exactly; `simhash` goes by the Hamming distance of
            fingerprints, and is meant by `max_distance`, `bits` or a recipe of fingerprints.
        min_score: The smallest score of near duplicates, inclusive, from 0 to 1. Default: 0.63.
        max_distance: The largest Hamming distance, inclusive, in bits.
        preset: The smallest score for a kind of text: `records` for records of one form.
        recipe: What decides a fingerprint, as `nearsift recipes` lists them.
        bits: The width of fingerprints: 32, 64, 128 or 256.
        idf: How rare each feature is: `corpus` counts it over the documents, else a file of `token idf` lines.
        user_dictionary, stop_words, levels: Files for recipes of words.
        verify: `False` lets the scores of sketches decide alone.
        keep: Which document of a group stays: `first`, `longest`, `newest:FIELD`, and more; `nearsift dedup --help` lists them.
        cluster: How pairs become groups: `majority` (the default of sketches), `components` or `star`.
        max_cluster: With majority link, the most different texts that a document stands for.
        source: The column that says where a document comes from.
        against: Outputs of earlier runs, files or indexes: what these have goes.
        against_kept_only: Of earlier runs only the documents count that stayed.
        format, charset: Of files.
        threads: The threads; all processors without it. The result never depends on it.
        memory: The most memory, such as `4GB`.
        scratch: The folder for temporary files.
        progress: `True` for bars of tqdm, or a function of phase, done, total and unit.

    Raises:
        InputError: A column that is not there, a row without an id, no row with a text.
        SettingError: A setting with a value that it cannot have.
        MemoryLimitError: `memory` is too small.
        KeyboardInterrupt: Ctrl-C; the job stops at the next batch of documents.
    """
    table, paths = _settings.given(data, text)
    reading = _settings.reading(text=text, id=id, format=format, charset=charset)
    matching = _settings.matching(
        method=method,
        recipe=recipe,
        bits=bits,
        idf=idf,
        user_dictionary=user_dictionary,
        stop_words=stop_words,
        levels=levels,
        max_distance=max_distance,
        min_score=min_score,
        preset=preset,
        verify=verify,
    )
    grouping = _grouping(keep, cluster, max_cluster, source, against, against_kept_only)
    options = _settings.options(threads=threads, memory=memory, scratch=scratch, progress=progress)
    decided = _native.find_duplicates(table, paths, reading, matching, grouping, options)
    options["progress"] = None
    settings = (matching, grouping, options)
    return Deduplicated(decided.table(), json.loads(decided.summary()), decided, settings)


def _joining(
    output: PathLike,
    *,
    resume: bool = False,
    tables: Literal["jsonl", "parquet"] = "jsonl",
    language: Language = "en",
    date: str | None = None,
) -> dict[str, object]:
    return {
        "output": Path(output),
        "resume": resume,
        "parquet_tables": tables == "parquet",
        "language": language,
        "date": date,
    }


def _grouping(
    keep: str,
    cluster: str | None,
    max_cluster: int | None,
    source: str | None,
    against: Sequence[PathLike],
    against_kept_only: bool = False,
) -> dict[str, object]:
    if isinstance(against, (str, Path)):
        against = [against]
    return {
        "keep": keep,
        "cluster": cluster,
        "max_cluster": max_cluster,
        "source": source,
        "against": list(against),
        "against_kept_only": against_kept_only,
    }


class Run:
    """The folder that :func:`dedup_files` or the program wrote, read again."""

    def __init__(self, folder: PathLike) -> None:
        """Opens the folder of a finished run.

        Raises:
            InputError: The folder is none of a finished run.
        """
        self.folder = Path(folder)
        summary = self.folder / "summary.json"
        try:
            self.summary: dict[str, Any] = json.loads(summary.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            raise InputError(
                f"{self.folder}: no results of nearsift dedup: expected summary.json in the folder"
            ) from None
        except ValueError as error:
            raise InputError(f"{summary}: damaged: {error}; run nearsift dedup again") from None

    def _lines(self, name: str) -> list[dict[str, Any]]:
        path = self.folder / name
        try:
            with path.open(encoding="utf-8") as lines:
                return [json.loads(line) for line in lines]
        except FileNotFoundError:
            raise InputError(f"{path}: not there; the run wrote no such file") from None
        except ValueError as error:
            raise InputError(f"{path}: damaged: {error}; run nearsift dedup again") from None

    @property
    def removed(self) -> list[dict[str, Any]]:
        """The documents that went, each with its reason, its representative and its score."""
        return self._lines("removed.jsonl")

    @property
    def pairs(self) -> list[dict[str, Any]]:
        """The pairs that hold the clusters together, with every figure."""
        return self._lines("pairs.jsonl")

    @property
    def clusters(self) -> list[dict[str, Any]]:
        """The clusters of two documents and more."""
        return self._lines("clusters.jsonl")

    @property
    def kept(self) -> list[Path]:
        """The files of the documents that stay."""
        return sorted(path for path in (self.folder / "kept").rglob("*") if path.is_file())

    @property
    def marked(self) -> list[Path]:
        """The files of all documents, of a run with `mark`."""
        return sorted(path for path in (self.folder / "marked").rglob("*") if path.is_file())

    def why(self, id: str | int | float) -> list[dict[str, Any]]:
        """What the run decided about the documents of an id, in the order of the input: ids need not be unique.

        Each has its `id`, its `record`, counted from 1, `kept`, its line of `removed`, of `clusters` where it is like another
        document, and of `pairs` where it was compared with its representative. No document is read: an answer takes as long on
        a run of a hundred documents as of a hundred million.

        Raises:
            InputError: The run's files are damaged, or of an earlier version.
        """
        found: list[dict[str, Any]] = json.loads(_native.explain_document(self.folder, str(id)))
        return found

    def between(self, id: str | int | float, other: str | int | float) -> dict[str, Any]:
        """Why two documents are together, or are not: a `verdict` and the `pairs` of the two.

        The verdict is `same_document`, `together_as_pair`, `together_through_others`, `apart_by_rule`, or `no_pair`, where they
        were no candidates or too little alike.

        Raises:
            InputError: The run's files are damaged, or of an earlier version.
            ValueError: The run has no document, or several, of an id.
        """
        found: dict[str, Any] = json.loads(_native.explain_pair(self.folder, str(id), str(other)))
        return found

    def regroup(
        self,
        output: PathLike,
        *,
        min_score: float | None = None,
        cluster: ClusterRule | None = None,
        max_cluster: int | None = None,
        keep: str | None = None,
        tables: Literal["jsonl", "parquet"] = "jsonl",
        language: Language = "en",
        date: str | None = None,
        resume: bool = False,
        threads: int | None = None,
        memory: int | str | None = None,
        progress: Progress | None = None,
    ) -> Run:
        """Decides anew about the documents of a run with `keep_pairs_from`, as :func:`dedup_files` with these settings would.

        What is left out stays as it was; `keep` is `first` or the policy of the run. No input is read. The folder gets the tables and
        the report; :func:`apply_part` of this run's folder writes by it what stays.

        Raises:
            InputError: The run left nothing for other decisions, or it is damaged.
            SettingError: The run has no values of the policy `keep`.
        """
        _native.regroup_run(
            self.folder,
            {"min_score": min_score, "cluster": cluster, "max_cluster": max_cluster, "keep": keep},
            _joining(output, resume=resume, tables=tables, language=language, date=date),
            _settings.options(threads=threads, memory=memory, progress=progress),
        )
        return Run(output)

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"


def dedup_files(
    inputs: PathLike | Sequence[PathLike],
    output: PathLike,
    *,
    resume: bool = False,
    dry_run: bool = False,
    partial: bool = False,
    keep_state: bool = False,
    keep_pairs_from: float | None = None,
    mark: bool | Mapping[str, str] = False,
    tables: Literal["jsonl", "parquet"] = "jsonl",
    output_format: str | None = None,
    output_compression: str | None = None,
    output_file: PathLike | None = None,
    overwrite: bool = False,
    language: Language = "en",
    date: str | None = None,
    text: str = "text",
    id: str = "id",
    format: str | None = None,
    charset: str | None = None,
    delimiter: str | None = None,
    follow_links: bool = False,
    max_record_bytes: int | None = None,
    max_file_bytes: int | None = None,
    max_ratio: int | None = None,
    method: Method | None = None,
    min_score: float | None = None,
    max_distance: int | None = None,
    preset: Literal["records"] | None = None,
    recipe: str | None = None,
    bits: int | None = None,
    idf: PathLike | None = None,
    user_dictionary: PathLike | None = None,
    stop_words: PathLike | None = None,
    levels: PathLike | None = None,
    verify: bool | None = None,
    keep: str = "first",
    cluster: ClusterRule | None = None,
    max_cluster: int | None = None,
    source: str | None = None,
    against: Sequence[PathLike] = (),
    against_kept_only: bool = False,
    threads: int | None = None,
    memory: int | str | None = None,
    progress: Progress | None = None,
) -> Run:
    """Deduplicates files and folders into a folder, as the program `nearsift dedup` does, byte for byte.

    Everything gets its final name at once, at the end. With `resume`, a run over a large input that was stopped or killed goes on
    where it was.

    >>> import json, nearsift as ns, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> news = folder / "news.jsonl"
    >>> _ = news.write_text('{"id": 1, "text": "Two metro lines stood still for three hours after the rain."}\\n' * 2)
    >>> run = ns.dedup_files(news, folder / "out")
    >>> run.summary["kept"], run.removed[0]["reason"]
    (1, 'exact-duplicate')

    With `mark` every document stays, in the input's format and order, with the columns `cluster`, `cluster_size`, `representative`,
    `score`, `kept` and `reason`; a mapping gives some of them other names.

    >>> marked = ns.dedup_files(news, folder / "all", mark={"kept": "near_kept"})
    >>> [json.loads(line)["near_kept"] for line in marked.marked[0].open()]
    [True, False]
    >>> run.why(1)[1]["removed"]["reason"]
    'exact-duplicate'

    With `tables="parquet"`, `removed`, `pairs` and `clusters` are written as Parquet beside the JSON lines. `output_file` is one file
    for what is kept, or marked, of all inputs, whose ending tells its format. `overwrite` replaces the results of an earlier run in that
    folder, once the new ones are complete.

    `report.html` is in English, or in Chinese with `language="zh"`, whatever the locale is. It names a day only where `date` gives one, as
    `YYYY-MM-DD`: the same input gives the same report.

    With `keep_state` a later run `against` this one need not read its input again; with `keep_pairs_from` the folder has, too, what
    :meth:`Run.regroup` needs to decide anew.

    >>> kept = ns.dedup_files(news, folder / "kept", keep_pairs_from=0.5)
    >>> kept.regroup(folder / "strict", min_score=0.9).summary["kept"]
    1

    The keywords are those of :func:`dedup` and the options of the program. Returns the folder's reader.

    Raises:
        InputError: An input that cannot be read, or an output folder that is not empty.
    """
    paths = [inputs] if isinstance(inputs, (str, Path)) or not isinstance(inputs, Sequence) else list(inputs)
    _native.dedup_files(
        [Path(path) for path in paths],
        _settings.reading(
            text=text,
            id=id,
            format=format,
            charset=charset,
            delimiter=delimiter,
            follow_links=follow_links,
            max_record_bytes=max_record_bytes,
            max_file_bytes=max_file_bytes,
            max_ratio=max_ratio,
        ),
        _settings.matching(
            method=method,
            recipe=recipe,
            bits=bits,
            idf=idf,
            user_dictionary=user_dictionary,
            stop_words=stop_words,
            levels=levels,
            max_distance=max_distance,
            min_score=min_score,
            preset=preset,
            verify=verify,
        ),
        _grouping(keep, cluster, max_cluster, source, against, against_kept_only),
        {
            "output": Path(output),
            "resume": resume,
            "dry_run": dry_run,
            "partial": partial,
            "keep_state": keep_state,
            "keep_pairs_from": keep_pairs_from,
            "parquet_tables": tables == "parquet",
            "mark": None if mark is False else list(({} if mark is True else mark).items()),
            "output_format": output_format,
            "output_compression": output_compression,
            "output_file": None if output_file is None else Path(output_file),
            "overwrite": overwrite,
            "language": language,
            "date": date,
        },
        _settings.options(threads=threads, memory=memory, progress=progress),
    )
    return Run(output)


def add_runs(table: PathLike, runs: Sequence[PathLike], *, seen: str | None = None) -> dict[str, Any]:
    """Adds the clusters of finished runs to a table, a file of JSON lines by the names of the clusters; each run once.

    Runs come in the order in which they were made, each compared with the earlier ones by `against`. The table has the size of each
    cluster over all runs, its first and last day, its runs and sources. `seen` is the day of these runs, as `2026-11-28`; without it
    that of their summaries.

    >>> import json, nearsift as ns, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> story = "Two metro lines stood still for three hours after the heavy rain of last night."
    >>> for day in [1, 2]:
    ...     news = folder / f"{day}.jsonl"
    ...     _ = news.write_text("".join(json.dumps({"id": f"{day}-{n}", "text": story}) + "\\n" for n in range(2)))
    >>> first = ns.dedup_files(folder / "1.jsonl", folder / "run1", mark=True)
    >>> second = ns.dedup_files(folder / "2.jsonl", folder / "run2", against=[folder / "run1"])
    >>> ns.add_runs(folder / "clusters.jsonl", [first.folder, second.folder])["documents"]
    4

    Raises:
        InputError: A folder without results of `dedup`, or a table that was changed by others.
    """
    found: dict[str, Any] = json.loads(_native.add_runs(Path(table), [Path(run) for run in runs], seen))
    return found
