"""What recipes make of texts: fingerprints, sketches, features, words."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

from nearsift import _native, _settings
from nearsift._errors import InputTypeError
from nearsift._settings import Method, PathLike, Progress, Texts

if TYPE_CHECKING:
    import numpy
    import numpy.typing


class Keyword(NamedTuple):
    """A feature of a text, and why it weighs what it does."""

    feature: str
    #: How often it occurs in the text.
    occurrences: int
    #: How rare it is, where the weight asks for it.
    rarity: float | None
    #: Its weight before all are scaled to at most 255.
    weight: int
    hash: int


class RecipeInfo(NamedTuple):
    """A recipe that is built in."""

    name: str
    about: str


@functools.lru_cache(maxsize=32)
def _recipe(
    default: str,
    recipe: str | None,
    bits: int | None,
    idf: str | None,
    user_dictionary: str | None,
    stop_words: str | None,
    levels: str | None,
) -> _native.Recipe:
    return _native.recipe(
        _settings.matching(
            recipe=recipe,
            bits=bits,
            idf=idf,
            user_dictionary=user_dictionary,
            stop_words=stop_words,
            levels=levels,
        ),
        default,
    )


def _path(file: PathLike | None) -> str | None:
    return None if file is None else os.fspath(file)


def recipe(
    name: str = "simhash64",
    *,
    bits: int | None = None,
    idf: PathLike | None = None,
    user_dictionary: PathLike | None = None,
    stop_words: PathLike | None = None,
    levels: PathLike | None = None,
) -> _native.Recipe:
    """What decides a fingerprint: a name, or `name:parameter=value,...`, with the files that it looks into.

    >>> import nearsift as ns
    >>> ns.recipe("simhash128").bits
    128

    Raises:
        RecipeError: An unknown recipe, or parameters that do not fit.
    """
    return _recipe(name, name, bits, _path(idf), _path(user_dictionary), _path(stop_words), _path(levels))


def recipes() -> list[RecipeInfo]:
    """All recipes that are built in."""
    return [RecipeInfo(*one) for one in _native.recipes()]


@overload
def fingerprint(text: str, *, recipe: str = ..., bits: int | None = ...) -> int | None: ...  # type: ignore[overload-overlap]
@overload
def fingerprint(
    text: Texts,
    *,
    recipe: str = ...,
    bits: int | None = ...,
    threads: int | None = ...,
    progress: Progress | None = ...,
) -> _native.Column: ...
def fingerprint(
    text: Any,
    *,
    recipe: str = "simhash64",
    bits: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Any:
    """The SimHash fingerprint of a text as an `int`, or those of a column.

    A text with too few features has none: `None`, or null in a column. The column is of `uint64` at 64 bits and less, and of bytes
    with the most significant first beyond.

    >>> import nearsift as ns
    >>> a = ns.fingerprint("Two metro lines stood still for three hours after the rain.")
    >>> b = ns.fingerprint("Two metro lines stood still for four hours after the rain.")
    >>> ns.distance(a, b) < ns.distance(a, ns.fingerprint("今天下午，市图书馆举办了一场面向儿童的绘本阅读活动。"))
    True
    >>> ns.fingerprint(["Two metro lines stood still for three hours after the rain.", None]).null_count
    1
    """
    made = _recipe("simhash64", recipe, bits, None, None, None, None)
    if made.is_sketch:
        raise _wrong(f"the recipe {made.name} makes sketches: use sketch()")
    if isinstance(text, str):
        return made.of_text(text)
    return made.of_column(text, _settings.options(threads=threads, progress=progress))


@overload
def sketch(text: str, *, recipe: str = ...) -> bytes | None: ...  # type: ignore[overload-overlap]
@overload
def sketch(
    text: Texts, *, recipe: str = ..., threads: int | None = ..., progress: Progress | None = ...
) -> _native.Column: ...
def sketch(
    text: Any, *, recipe: str = "sketch", threads: int | None = None, progress: Progress | None = None
) -> Any:
    """The dual sketch of a text as 64 bytes, or those of a column.

    >>> import nearsift as ns
    >>> a = ns.sketch("Two metro lines stood still for three hours after the rain.")
    >>> len(a), ns.score(a, a)
    (64, 1.0)
    """
    made = _recipe("sketch", recipe, None, None, None, None, None)
    if not made.is_sketch:
        raise _wrong(f"the recipe {made.name} makes fingerprints: use fingerprint()")
    if isinstance(text, str):
        return made.of_text(text)
    return made.of_column(text, _settings.options(threads=threads, progress=progress))


@overload
def distance(a: int | bytes, b: int | bytes) -> int: ...
@overload
def distance(a: numpy.typing.NDArray[Any], b: numpy.typing.NDArray[Any] | int) -> numpy.typing.NDArray[Any]: ...
def distance(a: Any, b: Any) -> Any:
    """The Hamming distance, in bits: of fingerprints as numbers or bytes, of sketches (of their SimHash halves), or of NumPy arrays.

    >>> import nearsift as ns
    >>> ns.distance(0b1011, 0b1000)
    2
    """
    if isinstance(a, int) and isinstance(b, int):
        if a < 0 or b < 0:
            raise _wrong(f"a fingerprint is no negative number: {min(a, b)}")
        return (a ^ b).bit_count()
    if isinstance(a, bytes) and isinstance(b, bytes):
        if len(a) != len(b):
            raise _wrong(f"{len(a)} and {len(b)} bytes: expected two fingerprints of one width")
        if len(a) == 64:
            return _native.sketch_distance(a, b)
        return (int.from_bytes(a, "big") ^ int.from_bytes(b, "big")).bit_count()
    if hasattr(a, "dtype") or hasattr(b, "dtype"):
        import numpy

        if a is None or b is None:
            raise _wrong("one of the two is None: a text with too few features has no fingerprint")
        a, b = numpy.asarray(a, dtype=numpy.uint64), numpy.asarray(b, dtype=numpy.uint64)
        return numpy.bitwise_count(numpy.bitwise_xor(a, b))
    kinds = f"{type(a).__name__} and {type(b).__name__}"
    raise _wrong(f"the distance of {kinds}: expected two numbers, two bytes or NumPy arrays of uint64")


def score(a: bytes, b: bytes) -> float:
    """How alike two sketches say that two documents are, from 0 to 1.

    What :func:`dedup` goes by is :func:`compare`, which looks at the texts.
    """
    if not isinstance(a, bytes) or not isinstance(b, bytes):
        kinds = f"{type(a).__name__} and {type(b).__name__}"
        raise _wrong(f"the score of {kinds}: expected two sketches as bytes; for texts use compare()")
    return _native.sketch_score(a, b)


class Difference(NamedTuple):
    """A stretch of two texts."""

    #: `both`, or `a` or `b` where only one has it.
    side: Literal["both", "a", "b"]
    text: str
    #: Whether the difference counts as none: letter case, width, script, white space, punctuation. `False` where both have it.
    is_equal: bool = False
    #: The number of the passage that it is part of, where the other text has it elsewhere; the same in both.
    moved: int | None = None


class Comparison:
    """Two texts by every measure."""

    def __init__(self, figures: dict[str, Any]) -> None:
        #: Every figure by its name, as `nearsift compare --json` writes them.
        self.figures = figures
        #: The two texts as one, with what only one of them has marked.
        self.differences = [Difference(**piece) for piece in figures.pop("differences")]

    @property
    def is_near(self) -> bool:
        """Whether the two are near duplicates."""
        return bool(self.figures["near_duplicates"])

    @property
    def is_same_text(self) -> bool:
        """Whether the two have one text but for letter case, width, script and punctuation."""
        return bool(self.figures["same_text"])

    @property
    def score(self) -> float | None:
        """The score that decides, from 0 to 1; `None` where a text has too few features."""
        score: float | None = self.figures["score"]
        return score

    def marked(self) -> str:
        """The differences as a text: `[-only in a-]`, `{+only in b+}`; `[~1: from here~]` and `{~1: to here~}` for what moved.

        What counts as equal is not marked, and written as `a` has it.
        """
        marks = {"both": "{}", "a": "[-{}-]", "b": "{{+{}+}}"}
        moved = {"a": "[~{}: {}~]", "b": "{{~{}: {}~}}"}
        parts = []
        for side, text, is_equal, number in self.differences:
            if is_equal:
                parts.append(text if side == "a" else "")
            elif number is not None:
                parts.append(moved[side].format(number, text))
            else:
                parts.append(marks[side].format(text))
        return "".join(parts)

    def __repr__(self) -> str:
        verdict = "the same text" if self.is_same_text else "near duplicates" if self.is_near else "not near duplicates"
        return f"Comparison({verdict}, score {self.score})"


def compare(
    a: str,
    b: str,
    *,
    like: PathLike | None = None,
    method: Method | None = None,
    min_score: float | None = None,
    max_distance: int | None = None,
    recipe: str | None = None,
    bits: int | None = None,
    verify: bool | None = None,
) -> Comparison:
    """Whether two texts are near duplicates, by every measure, with their differences.

    >>> import nearsift as ns
    >>> found = ns.compare("今天下午，市图书馆举办了一场面向儿童的绘本阅读活动。", "今天下午，市图书馆举办了一场儿童绘本阅读活动。")
    >>> found.is_near, found.marked()
    (True, '今天下午，市图书馆举办了一场[-面向-]儿童[-的-]绘本阅读活动。')

    Args:
        like: The folder of a run, whose table of rarities, recipe and threshold are taken: the score is that of the run.
    """
    matching = _settings.matching(
        method=method, recipe=recipe, bits=bits, max_distance=max_distance, min_score=min_score, verify=verify
    )
    return Comparison(json.loads(_native.compare(a, b, matching, None if like is None else Path(like))))


def keywords(
    text: str,
    *,
    top: int = 20,
    recipe: str | None = None,
    idf: PathLike | None = None,
    user_dictionary: PathLike | None = None,
    stop_words: PathLike | None = None,
    levels: PathLike | None = None,
) -> list[Keyword]:
    """The features of a text by weight, the heaviest first: why a document has its fingerprint.

    >>> import nearsift as ns
    >>> ns.keywords("今天下午，市图书馆举办了一场面向儿童的绘本阅读活动。", top=1)[0].feature
    '市图书馆'
    """
    usual = f"keywords64:top={min(max(top, 20), 10_000)}"
    made = _recipe(usual, recipe, None, _path(idf), _path(user_dictionary), _path(stop_words), _path(levels))
    return [Keyword(*feature) for feature in made.features(text)[:top]]


def segment_words(text: str, *, user_dictionary: Sequence[str] = ()) -> list[str]:
    """The words of a text, Chinese ones by a dictionary.

    >>> import nearsift as ns
    >>> ns.segment_words("昨天的大雨使两条地铁线路停运")
    ['昨天', '的', '大雨', '使', '两条', '地铁', '线路', '停运']

    Args:
        user_dictionary: Further words, each with a frequency and a tag behind it if wanted: `"绘本 100 n"`.
    """
    return _native.segment_words(text, "\n".join(user_dictionary) if user_dictionary else None)


def _wrong(message: str) -> InputTypeError:
    return InputTypeError(message)
