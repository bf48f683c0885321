"""A drop-in for the MinHash LSH of the package `datasketch`: the same calls, on sketches of 64 bytes.

    # from datasketch import MinHash, MinHashLSH
    from nearsift.datasketch import MinHash, MinHashLSH

>>> from nearsift.datasketch import MinHashLSH
>>> lsh = MinHashLSH(threshold=0.5)
>>> lsh.insert("a", "Two metro lines stood still for three hours after the rain of yesterday.")
>>> lsh.query("Two metro lines stood still for three hours after the rain of yesterday!")
['a']

| | `datasketch.MinHashLSH` | `nearsift.datasketch.MinHashLSH` |
|---|---|---|
| what goes in | a `MinHash` that the caller fills with tokens | the text itself, or a `MinHash` as before |
| Chinese | the caller cuts words | works as it is |
| `query` | every document that shares a band, whatever its similarity | only those whose estimated similarity reaches the threshold, the most similar first |
| `num_perm`, `params`, `weights` | decide size and recall | taken and not used: the sketch has one size |
| bytes a document | a list of 128 numbers, and its bands | 64 of the sketch, and 32 entries of tables |
| storage | Redis, Cassandra | memory here; :class:`nearsift.Index` on disk, which survives a crash |

Signatures that datasketch has stored cannot be read: its hashes of tokens do not give the features back. Stored *texts* or token sets
are inserted again; a million texts of 1.5 KB take about a minute on one core.

What decides on the texts themselves, and so far more exactly, is :func:`nearsift.dedup`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, TypeAlias

from nearsift import _native
from nearsift._errors import InputTypeError, SettingError
from nearsift._index import Near
from nearsift._memory import Sketches
from nearsift._texts import _recipe

__all__ = ["MinHash", "MinHashLSH", "MinHashLSHInsertionSession"]


class MinHash:
    """A set of tokens, with the interface of `datasketch.MinHash`: it keeps the tokens' hashes, and estimates from a sketch.

    >>> from nearsift.datasketch import MinHash
    >>> a, b = MinHash(), MinHash()
    >>> a.update_batch([b"one", b"two", b"three"])
    >>> b.update_batch([b"one", b"two", b"four"])
    >>> a.jaccard(b)
    0.5
    """

    def __init__(
        self,
        num_perm: int = 128,
        seed: int = 1,
        hashfunc: Callable[[bytes], int] | None = None,
        hashobj: object | None = None,
        hashvalues: Iterable[int] | None = None,
        permutations: object | None = None,
        **_: object,
    ) -> None:
        """An empty set. What else `datasketch.MinHash` takes is taken, and changes nothing."""
        if hashvalues is not None:
            raise SettingError(
                "hashvalues= are those of datasketch, from which no sketch can be made: insert the tokens or the text again"
            )
        self.num_perm, self.seed = num_perm, seed
        self._hashes: set[int] = set()

    def update(self, b: bytes) -> None:
        """Adds a token."""
        self.update_batch([b])

    def update_batch(self, b: Iterable[bytes]) -> None:
        """Adds tokens."""
        tokens = list(b)
        for place, token in enumerate(tokens):
            if not isinstance(token, (bytes, bytearray)):
                kind = type(token).__name__
                raise InputTypeError(f"token {place} is of type {kind}, expected bytes: encode it, as by .encode('utf-8')")
        self._hashes.update(_native.hash_tokens([bytes(token) for token in tokens]))

    def jaccard(self, other: MinHash) -> float:
        """The Jaccard similarity of the two sets, exactly."""
        union = len(self._hashes | other._hashes)
        return len(self._hashes & other._hashes) / union if union else 1.0

    def count(self) -> float:
        """The number of different tokens, exactly."""
        return float(len(self._hashes))

    def merge(self, other: MinHash) -> None:
        """Adds the tokens of another set."""
        self._hashes |= other._hashes

    def is_empty(self) -> bool:
        """Whether there is no token."""
        return not self._hashes

    def clear(self) -> None:
        """Removes all tokens."""
        self._hashes.clear()

    def copy(self) -> MinHash:
        """A set of the same tokens."""
        copy = MinHash(self.num_perm, self.seed)
        copy._hashes = set(self._hashes)
        return copy

    def __len__(self) -> int:
        return self.num_perm

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MinHash) and self._hashes == other._hashes

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def bulk(cls, b: Iterable[Iterable[bytes]], **settings: Any) -> list[MinHash]:
        """A set of each list of tokens."""
        return list(cls.generator(b, **settings))

    @classmethod
    def generator(cls, b: Iterable[Iterable[bytes]], **settings: Any) -> Iterator[MinHash]:
        """A set of each list of tokens, one after the other."""
        for tokens in b:
            made = cls(**settings)
            made.update_batch(tokens)
            yield made


#: What is inserted and asked: a text, or a set of tokens.
Item: TypeAlias = str | MinHash


class _Sketches(Sketches[Item]):
    """Texts and sets of tokens, found by the estimate of their Jaccard similarity."""

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold
        super().__init__()

    def _value(self, item: Item) -> _native.Sketched | None:
        if isinstance(item, str):
            return _native.sketch_text(_recipe("sketch", "sketch", None, None, None, None, None), item)
        if isinstance(item, MinHash):
            return _native.sketch_set(list(item._hashes))
        kind = f"{type(item).__module__}.{type(item).__qualname__}"
        raise InputTypeError(f"got {kind}, expected a text or a nearsift.datasketch.MinHash")

    def _search(self, value: _native.Sketched, least: Any) -> list[Near]:
        found = self._index.query_by_jaccard(value, self.threshold if least is None else least)
        return [Near(number, None, similarity, "sketch") for number, similarity in found]

    def similar(self, item: Item, least: float | None) -> list[Near]:
        """What is similar, the most similar first."""
        return self._near(self._value(item), None, least)

    def counts(self) -> list[list[tuple[int, int]]]:
        """Of each table, how many documents have each key."""
        return self._index.counts()

    def _settings(self) -> dict[str, Any]:
        return {"threshold": self.threshold}


class MinHashLSH:
    """Documents in memory, found by similarity, with the interface of `datasketch.MinHashLSH`."""

    def __init__(
        self,
        threshold: float = 0.9,
        num_perm: int = 128,
        weights: tuple[float, float] = (0.5, 0.5),
        params: tuple[int, int] | None = None,
        storage_config: dict[str, Any] | None = None,
        prepickle: bool | None = None,
        hashfunc: Callable[[bytes], bytes] | None = None,
        **_: object,
    ) -> None:
        """An empty index.

        Args:
            threshold: The smallest Jaccard similarity of what a query finds: of the tokens of a `MinHash`, of the weighed features of
                a text. It is estimated with a standard error of about .06.
        """
        if not 0.0 <= threshold <= 1.0:
            raise SettingError(f"threshold={threshold}: expected a number from 0 to 1")
        if storage_config is not None and storage_config.get("type", "dict") != "dict":
            raise SettingError(
                f"storage_config={storage_config!r}: the index is in memory; nearsift.Index keeps documents on disk"
            )
        self.threshold, self.num_perm = threshold, num_perm
        self._index = _Sketches(threshold)
        # Keys of what has no sketch.
        self._bare: dict[Hashable, None] = {}

    def insert(self, key: Hashable, minhash: Item, check_duplication: bool = True) -> None:
        """Adds a text or a set of tokens under a key.

        Raises:
            ValueError: The key is there, and `check_duplication` is on. Without it the key stands for what comes last.
        """
        if key in self:
            if check_duplication:
                raise ValueError("The given key already exists")
            self.remove(key)
        if self._index.insert(key, minhash).outcome == "no_fingerprint":
            self._bare[key] = None

    def query(self, minhash: Item) -> list[Hashable]:
        """The keys of what is at least as similar as the threshold, the most similar first."""
        return [key for key, _ in self.query_with_similarity(minhash)]

    def query_with_similarity(self, minhash: Item, threshold: float | None = None) -> list[tuple[Hashable, float]]:
        """The keys with their estimated similarities, the most similar first."""
        return [(near.id, near.score or 0.0) for near in self._index.similar(minhash, threshold)]

    def remove(self, key: Hashable) -> None:
        """Removes what is under a key.

        Raises:
            ValueError: The key is not there.
        """
        if key in self._bare:
            del self._bare[key]
        elif not self._index.remove(key):
            raise ValueError("The given key does not exist")

    def __contains__(self, key: Hashable) -> bool:
        return key in self._index or key in self._bare

    def __len__(self) -> int:
        return len(self._index) + len(self._bare)

    def is_empty(self) -> bool:
        """Whether there is no document."""
        return len(self) == 0

    def insertion_session(self, buffer_size: int = 50_000) -> MinHashLSHInsertionSession:
        """A context whose insertions are made as they come: nothing has to be buffered here."""
        return MinHashLSHInsertionSession(self)

    def get_counts(self) -> list[dict[int, int]]:
        """Of each of the 32 tables, how many documents have each key."""
        return [dict(table) for table in self._index.counts()]

    def merge(self, other: MinHashLSH, check_overlap: bool = False) -> None:
        """Adds the documents of another index.

        Raises:
            ValueError: A key is in both, and `check_overlap` is on.
        """
        sketches, bare = other._index._entries(), list(other._bare)
        if check_overlap and any(key in self for key in [*bare, *(key for key, _ in sketches)]):
            raise ValueError("The keys are overlapping, duplicate key exists.")
        for key, sketched in sketches:
            if key not in self:
                self._index._add(key, sketched)
        self._bare.update((key, None) for key in bare if key not in self)


class MinHashLSHInsertionSession(AbstractContextManager["MinHashLSHInsertionSession"]):
    """Insertions inside a `with`."""

    def __init__(self, lsh: MinHashLSH) -> None:
        self.lsh = lsh

    def insert(self, key: Hashable, minhash: Item, check_duplication: bool = True) -> None:
        """Adds a text or a set of tokens under a key."""
        self.lsh.insert(key, minhash, check_duplication)

    def close(self) -> None:
        """Ends the session."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
