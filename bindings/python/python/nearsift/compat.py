"""Fingerprints of other libraries, bit for bit: for those who have stored some, and go on with them here.

Each function gives the number that its library stores. :class:`nearsift.FingerprintIndex` and
:func:`nearsift.dedup` with `recipe=` go on from there.

>>> from nearsift import compat
>>> compat.leonsim("")
16825458760271544958
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from nearsift import _native

__all__ = [
    "data_juicer",
    "digest_inverted",
    "gaoya",
    "hutool",
    "leonsim",
    "seomoz",
    "simhash_py",
    "string_hash",
    "text_dedup",
    "text_dedup_words",
    "yanyiwu",
]


def _number(name: str, given: object, **parameters: object) -> int:
    written = _native.compat_fingerprint(name, {key: str(value) for key, value in parameters.items()}, given)
    return int(written) if written is not None else 0


def leonsim(text: str) -> int:
    """`Simhash(text).value` of the Python package `simhash` 2.1: character 4-grams, MD5."""
    return _number("leonsim", text)


def simhash_py(hashes: Sequence[int]) -> int:
    """`simhash.compute(hashes)` of the Python package `simhash-py` and of seomoz/simhash-cpp: the caller's 64-bit hashes."""
    return _number("seomoz", list(hashes))


seomoz = simhash_py


def text_dedup(text: str, *, ngram: int = 3) -> int:
    """The fingerprint of `text_dedup.simhash` 0.4.0, the newest on PyPI: the set of character n-grams, XXH3.

    That of a text with fewer than 5 characters is 0.
    """
    return _number("text-dedup-char", text, ngram=ngram)


def text_dedup_words(text: str, *, ngram: int = 3, min_length: int = 5, seed: int = 42) -> int:
    """The fingerprint of `text_dedup.simhash` 0.4.1, which its repository has: the set of word n-grams, XXH3."""
    return _number("text-dedup", text, ngram=ngram, min_length=min_length, seed=seed)


def gaoya(text: str, *, analyzer: Literal["word", "char"] = "word", ngram: int = 2) -> int:
    """The fingerprint of `gaoya.simhash.SimHashStringIndex`: words, or character n-grams; SipHash."""
    if analyzer == "word":
        return _number("gaoya-word", text)
    return _number("gaoya-char", text, ngram=ngram)


def data_juicer(text: str, *, tokenization: Literal["space", "character"] = "character", window: int = 6) -> int:
    """The fingerprint of data-juicer's `document_simhash_deduplicator`: n-grams of characters, or of words between spaces; MD5."""
    return _number(f"data-juicer-{tokenization}", text, window=window)


def hutool(words: Sequence[str]) -> int:
    """`Simhash.hash(words)` of the Java library hutool: MurmurHash, signed."""
    return _number("hutool", list(words))


def yanyiwu(
    keywords: Sequence[tuple[str, float]], *, top: int | Literal["auto"] = "auto", words: Literal[64, 32] = 64
) -> int:
    """The fingerprint of the C++ library yanyiwu/simhash, from keywords with their TF-IDF weights.

    `words=32` gives the fingerprints that the library has stored, as it hashes words with.
    """
    return _number("yanyiwu", list(keywords), top=top, words=words)


def string_hash(
    words: Sequence[str] | Sequence[tuple[str, float]], *, bits: Literal[32, 64, 128] = 64
) -> int:
    """The fingerprint of the SimHash articles' string hash: of words, or of keywords with TF-IDF weights (64 bits)."""
    listed = list(words)
    if listed and not isinstance(listed[0], str):
        return _number("string-hash-weighted", listed)
    return _number("string-hash-unweighted", listed, bits=bits)


def digest_inverted(
    words: Sequence[str], *, bits: Literal[32, 64, 128] = 64, hash: Literal["md5", "sha1"] = "md5"
) -> int:
    """The fingerprint of the SimHash articles' digest variant: distinct words, inverted votes."""
    return _number("digest-inverted", list(words), bits=bits, hash=hash)
