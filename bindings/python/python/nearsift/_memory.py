"""Indexes in memory, of sketches and of fingerprints."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from typing import Any, Generic, TypeVar

from nearsift import _native
from nearsift._errors import InputTypeError, SettingError
from nearsift._index import Answer, Near
from nearsift._texts import _recipe

#: What stands for a document.
Value = TypeVar("Value")
#: What is inserted and asked.
Item = TypeVar("Item")

#: Removed documents that stay in an index until as many are removed as are there.
FEWEST_REMOVED = 1024


class InMemory(ABC, Generic[Item, Value]):
    """Documents in memory under keys of any hashable kind. All methods may be called from several threads."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._clear()

    def _clear(self) -> None:
        self._begin()
        self._numbers: dict[Hashable, int] = {}
        # By number; those of removed documents stay, without a value, until the index is made anew.
        self._keys: list[Any] = []
        self._values: list[Value | None] = []

    @abstractmethod
    def _begin(self) -> None:
        """Makes an empty index."""

    @abstractmethod
    def _value(self, item: Item) -> Value | None:
        """What stands for an item, if anything does."""

    @abstractmethod
    def _store(self, value: Value, number: int) -> None:
        """Adds a value. Numbers count up from 0."""

    @abstractmethod
    def _erase(self, value: Value, number: int) -> None:
        """Removes a value with its number."""

    @abstractmethod
    def _search(self, value: Value, least: Any) -> list[Near]:
        """The near entries, with numbers as ids, the nearest first; `least` replaces the index's own threshold."""

    def insert(self, key: Hashable, item: Item) -> Answer:
        """Adds a document unless its key is there."""
        value = self._value(item)
        with self._lock:
            if key in self._numbers:
                return Answer("exists", None)
            return Answer(self._add(key, value), None)

    def check_and_insert(self, key: Hashable, item: Item) -> Answer:
        """Adds a document unless its key is there, or it is near to an indexed one: in one step, whatever other threads do."""
        value = self._value(item)
        with self._lock:
            if key in self._numbers:
                return Answer("exists", None)
            near = self._near(value, 1, None)
            return Answer("near", near[0]) if near else Answer(self._add(key, value), None)

    def upsert(self, key: Hashable, item: Item) -> Answer:
        """Adds a document, in the place of the one with its key."""
        value = self._value(item)
        with self._lock:
            was_there = self.remove(key) if value is not None else False
            outcome = self._add(key, value)
        return Answer("replaced" if was_there else outcome, None)

    def insert_many(self, keys: Iterable[Hashable], items: Iterable[Item | None]) -> int:
        """Adds documents whose keys are not there; an item that is `None` is left out. Returns how many were added."""
        added = 0
        for key, item in zip(keys, items, strict=True):
            added += item is not None and self.insert(key, item).is_new
        return added

    def remove(self, key: Hashable) -> bool:
        """Removes a document. Returns whether it was present."""
        with self._lock:
            number = self._numbers.pop(key, None)
            if number is None:
                return False
            value = self._values[number]
            assert value is not None
            self._erase(value, number)
            self._keys[number] = self._values[number] = None
            removed = len(self._keys) - len(self._numbers)
            if removed > FEWEST_REMOVED and removed > len(self._numbers):
                self._restore(self._entries())
        return True

    def _add(self, key: Hashable, value: Value | None) -> Any:
        if value is None:
            return "no_fingerprint"
        number = len(self._keys)
        self._store(value, number)
        self._numbers[key] = number
        self._keys.append(key)
        self._values.append(value)
        return "added"

    def _near(self, value: Value | None, limit: int | None, least: Any) -> list[Near]:
        if value is None:
            return []
        with self._lock:
            found = self._search(value, least)
            return [near._replace(id=self._keys[near.id]) for near in found[:limit]]

    def _entries(self) -> list[tuple[Hashable, Value]]:
        with self._lock:
            return [(key, value) for key, value in zip(self._keys, self._values) if value is not None]

    def _restore(self, entries: Iterable[tuple[Hashable, Value]]) -> None:
        self._clear()
        for key, value in entries:
            self._add(key, value)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @abstractmethod
    def _settings(self) -> dict[str, Any]:
        """The keywords that make such an index."""

    def __getstate__(self) -> dict[str, Any]:
        return {"settings": self._settings(), "entries": self._entries()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state["settings"])  # type: ignore[misc]
        self._restore(state["entries"])


class Sketches(InMemory[Item, _native.Sketched]):
    """Sketches of items of any kind."""

    def _begin(self) -> None:
        self._index = _native.SketchIndex()

    def _store(self, value: _native.Sketched, number: int) -> None:
        self._index.insert(value)

    def _erase(self, value: _native.Sketched, number: int) -> None:
        self._index.remove(number)


class SketchIndex(Sketches[str]):
    """Texts in memory, found by their sketches: :class:`Index` without a disk.

    A query compares the text's sketch with those that share one of 32 keys with it. It finds a text of similarity .4 with a chance of
    .996, and every equal one.

    >>> import nearsift as ns
    >>> seen = ns.SketchIndex()
    >>> first = seen.check_and_insert("a", "Two metro lines stood still for three hours after the rain of yesterday.")
    >>> again = seen.check_and_insert("b", "Two metro lines stood still for three hours after yesterday's rain.")
    >>> first.is_new, again.near.id
    (True, 'a')
    """

    def __init__(self, *, min_score: float = 0.4, recipe: str = "sketch") -> None:
        """An empty index.

        Args:
            min_score: The smallest score of near texts, from 0 to 1.
            recipe: What makes the sketches.
        """
        self.min_score = _score(min_score)
        self._recipe = _recipe("sketch", recipe, None, None, None, None, None)
        if not self._recipe.is_sketch:
            raise SettingError(f"recipe={recipe!r} makes fingerprints: use FingerprintIndex")
        super().__init__()

    def query(self, text: str, *, limit: int | None = None, min_score: float | None = None) -> list[Near]:
        """The indexed texts that are near, the nearest first."""
        return self._near(self._value(text), limit, None if min_score is None else _score(min_score))

    @property
    def recipe(self) -> str:
        """The recipe of the index."""
        return self._recipe.name

    def _value(self, item: str) -> _native.Sketched | None:
        return _native.sketch_text(self._recipe, _text(item))

    def _search(self, value: _native.Sketched, least: Any) -> list[Near]:
        found = self._index.query_by_score(value, self.min_score if least is None else least)
        return [Near(number, None, score, "sketch") for number, score in found]

    def _settings(self) -> dict[str, Any]:
        return {"min_score": self.min_score, "recipe": self.recipe}


class FingerprintIndex(InMemory["str | int | bytes", int]):
    """Fingerprints in memory, found exactly within a Hamming distance.

    What is inserted and asked is a text or a fingerprint, which may be one of another library.

    >>> import nearsift as ns
    >>> index = ns.FingerprintIndex(max_distance=3)
    >>> index.insert("a", 0b1011).is_new
    True
    >>> [(near.id, near.distance) for near in index.query(0b1000)]
    [('a', 2)]
    """

    def __init__(
        self, *, recipe: str = "simhash64", bits: int | None = None, max_distance: int = 3, expected: int = 1024
    ) -> None:
        """An empty index.

        Args:
            recipe: What makes the fingerprints of texts.
            bits: Their width: 64, 128 or 256. Default: that of the recipe.
            max_distance: The largest distance that will be asked, inclusive, in bits.
            expected: How many fingerprints will come, about.
        """
        self._recipe = _recipe("simhash64", recipe, bits, None, None, None, None)
        if self._recipe.is_sketch:
            raise SettingError(f"recipe={recipe!r} makes sketches: use SketchIndex")
        self.bits, self.max_distance, self.expected = self._recipe.bits, max_distance, expected
        super().__init__()

    def query(
        self, item: str | int | bytes, max_distance: int | None = None, *, limit: int | None = None
    ) -> list[Near]:
        """All that is within a distance, inclusive, the nearest first."""
        if max_distance is not None and max_distance < 0:
            raise SettingError(f"max_distance={max_distance}: expected a number of bits, 0 or more")
        return self._near(self._value(item), limit, max_distance)

    def insert_many(self, keys: Iterable[Hashable], items: Iterable[str | int | bytes | None]) -> int:
        """Adds documents whose keys are not there; an item that is `None` is left out. Returns how many were added."""
        new: dict[Hashable, int] = {}
        with self._lock:
            for key, item in zip(keys, items, strict=True):
                value = None if item is None else self._value(item)
                if value is not None and key not in self._numbers:
                    new.setdefault(key, value)
            self._add_all(new)
        return len(new)

    def _add_all(self, new: dict[Hashable, int]) -> None:
        words = [word for value in new.values() for word in self._words(value)]
        self._index.insert(words, len(self._keys))
        self._numbers.update((key, number) for number, key in enumerate(new, len(self._keys)))
        self._keys += new
        self._values += new.values()

    def _restore(self, entries: Iterable[tuple[Hashable, int]]) -> None:
        self._clear()
        self._add_all(dict(entries))

    @property
    def recipe(self) -> str:
        """The recipe of the index."""
        return self._recipe.name

    def _begin(self) -> None:
        self._index = _native.FingerprintIndex(self.bits, self.max_distance, self.expected)

    def _value(self, item: str | int | bytes) -> int | None:
        if isinstance(item, str):
            made: int | None = self._recipe.of_text(item)
            return made
        if isinstance(item, bytes):
            number = int.from_bytes(item, "big")
        elif hasattr(item, "__index__"):
            # Also the whole numbers of NumPy.
            number = item.__index__()
        else:
            raise InputTypeError(f"got {type(item).__name__}, expected a text, or a fingerprint as int or bytes")
        if number < 0 or number.bit_length() > self.bits:
            raise SettingError(f"{number}: expected a fingerprint of {self.bits} bits")
        return number

    def _words(self, value: int) -> list[int]:
        return [value >> shift & 0xFFFF_FFFF_FFFF_FFFF for shift in range(0, self.bits, 64)]

    def _store(self, value: int, number: int) -> None:
        self._index.insert(self._words(value), number)

    def _erase(self, value: int, number: int) -> None:
        self._index.remove(self._words(value), number)

    def _search(self, value: int, least: Any) -> list[Near]:
        found = self._index.query(self._words(value), self.max_distance if least is None else least)
        return [Near(number, distance, None, "fingerprint") for number, distance in found]

    def _settings(self) -> dict[str, Any]:
        return {"recipe": self.recipe, "max_distance": self.max_distance, "expected": self.expected}


def _text(item: Any) -> str:
    if isinstance(item, str):
        return item
    raise InputTypeError(f"got {type(item).__name__}, expected a text: a sketch alone does not give its keys back")


def _score(score: float) -> float:
    if not 0.0 <= score <= 1.0:
        raise SettingError(f"min_score={score}: expected a number from 0 to 1")
    return score
