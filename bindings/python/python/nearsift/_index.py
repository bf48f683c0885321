"""The durable index, and what an index answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple

from nearsift import _native, _settings
from nearsift._errors import IndexFileError, SettingError
from nearsift._settings import Method, PathLike


class Near(NamedTuple):
    """An indexed document that is near."""

    #: Its id; in an index in memory its key, of any kind.
    id: Any
    #: The Hamming distance of the fingerprints, in bits; `None` in an index of sketches.
    distance: int | None
    #: How alike the two are, from 0 to 1; `None` in an index of fingerprints.
    score: float | None
    #: What that rests on: `fingerprint`, `sketch` or `text`.
    evidence: str


class Answer(NamedTuple):
    """What came of adding a document."""

    #: `added`, `replaced`, `exists` (its id is there), `near`, or `no_fingerprint` (its text has too few features).
    outcome: Literal["added", "replaced", "exists", "near", "no_fingerprint"]
    #: The document that it is near to, where that is why it was not added.
    near: Near | None

    @property
    def is_new(self) -> bool:
        """Whether the document was added."""
        return self.outcome == "added"


class Index:
    """A durable index in a folder: documents are added once, and what was added survives a crash.

    All methods may be called from several threads. One process writes at a time; others open with `read_only=True`.

    >>> import nearsift as ns, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp()) / "seen"
    >>> with ns.Index(folder) as seen:
    ...     first = seen.check_and_insert("a", "Two metro lines stood still for three hours after the rain of yesterday.")
    ...     again = seen.check_and_insert("b", "Two metro lines stood still for three hours after yesterday's rain.")
    >>> first.is_new, again.near.id
    (True, 'a')
    """

    def __init__(
        self,
        path: PathLike,
        *,
        method: Method | None = None,
        min_score: float | None = None,
        max_distance: int | None = None,
        recipe: str | None = None,
        bits: int | None = None,
        keep_texts: bool = False,
        idf: PathLike | None = None,
        user_dictionary: PathLike | None = None,
        stop_words: PathLike | None = None,
        levels: PathLike | None = None,
        read_only: bool = False,
    ) -> None:
        """Opens the index in a folder, or makes one where none is. What decides fingerprints and what is near is fixed when it is made.

        Args:
            path: The folder.
            min_score: The smallest score of near documents. Default: 0.4, of texts 0.63.
            max_distance: The largest Hamming distance; it makes an index of fingerprints.
            keep_texts: Keeps each text, and lets the texts decide what is near.
            read_only: Reads beside a process that writes.

        Raises:
            IndexFileError: A folder that is no index, a damaged one, one of another recipe, or one that another process has open.
        """
        self.path = Path(path)
        exists = self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir()))
        if not exists and read_only:
            raise IndexFileError(f"{self.path}: no index is there, and read_only=True makes none")
        chosen = _settings.matching(
            method=method,
            recipe=recipe,
            bits=bits,
            idf=idf,
            user_dictionary=user_dictionary,
            stop_words=stop_words,
            levels=levels,
            max_distance=max_distance,
            min_score=min_score,
        )
        if exists:
            self._native = _native.DurableIndex.open(self.path, chosen, read_only)
        else:
            self._native = _native.DurableIndex.create(self.path, chosen, keep_texts)

    def insert(
        self,
        id: str,
        text: str,
        *,
        time: int | None = None,
        expires: int | None = None,
        source: str | None = None,
    ) -> Answer:
        """Adds a document unless its id is there. It is on the disk when this returns."""
        return self._add(id, text, "new", time, expires, source)

    def check_and_insert(
        self,
        id: str,
        text: str,
        *,
        time: int | None = None,
        expires: int | None = None,
        source: str | None = None,
    ) -> Answer:
        """Adds a document unless its id is there, or it is near to an indexed one: in one step, whatever other threads do."""
        return self._add(id, text, "unless_near", time, expires, source)

    def upsert(
        self,
        id: str,
        text: str,
        *,
        time: int | None = None,
        expires: int | None = None,
        source: str | None = None,
    ) -> Answer:
        """Adds a document, in the place of the one with its id."""
        return self._add(id, text, "replace", time, expires, source)

    def _add(
        self, id: str, text: str, how: str, time: int | None, expires: int | None, source: str | None
    ) -> Answer:
        outcome, near = self._native.add(id, text, how, time, expires, source)
        return Answer(outcome, None if near is None else Near(*near))

    def query(
        self,
        text: str,
        *,
        limit: int | None = None,
        max_distance: int | None = None,
        min_score: float | None = None,
    ) -> list[Near]:
        """The indexed documents that are near to a text, the nearest first."""
        return [Near(*near) for near in self._native.query(text, limit, max_distance, min_score)]

    def insert_many(self, documents: Iterable[tuple[str, str]], *, unless_near: bool = False) -> Iterator[Answer]:
        """Adds documents one after the other, and yields what came of each."""
        how = "unless_near" if unless_near else "new"
        return (self._add(id, text, how, None, None, None) for id, text in documents)

    def remove(self, id: str) -> bool:
        """Removes a document. Returns whether it was present."""
        return self._native.remove(id)

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and id in self._native

    def __len__(self) -> int:
        return len(self._native)

    @property
    def recipe(self) -> str:
        """The recipe of the index."""
        return self._native.recipe

    def stats(self) -> dict[str, Any]:
        """How many documents there are, and what they take, in bytes."""
        return self._native.stats()

    def compact(self) -> None:
        """Merges everything into one segment, without what was removed."""
        self._native.compact()

    def snapshot(self, to: PathLike) -> None:
        """Copies the index as it is into a new folder."""
        self._native.snapshot(Path(to))

    def close(self) -> None:
        """Closes the index."""
        self._native.close()

    def __enter__(self) -> Index:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        raise SettingError("an open index is not pickled: hand its path over, and open it there with read_only=True")

    def __repr__(self) -> str:
        return f"Index({str(self.path)!r})"
