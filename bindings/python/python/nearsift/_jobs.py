"""Pairs, thresholds and figures over tables and files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

from nearsift import _native, _settings
from nearsift._settings import ClusterRule, Data, Method, PathLike, Progress


def pairs(
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
    verify: bool | None = None,
    format: str | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
    progress: Progress | None = None,
) -> _native.Table:
    """All pairs of near duplicates: `a`, `b` (ids, or numbers of rows), `score`, `distance`.

    >>> import nearsift as ns
    >>> texts = ["Two metro lines stood still for three hours after the rain of yesterday.",
    ...          "Two metro lines stood still for three hours after the rain of yesterday!"]
    >>> ns.pairs(texts)["score"].to_pylist()
    [1.0]
    """
    table, paths = _settings.given(data, text)
    return _native.find_pairs(
        table,
        paths,
        _settings.reading(text=text, id=id, format=format),
        _settings.matching(
            method=method,
            recipe=recipe,
            bits=bits,
            max_distance=max_distance,
            min_score=min_score,
            preset=preset,
            verify=verify,
        ),
        _settings.options(threads=threads, memory=memory, progress=progress),
    )


def tune(
    data: Data,
    *,
    text: str = "text",
    id: str | None = None,
    method: Method | None = None,
    min_score: float | None = None,
    max_distance: int | None = None,
    recipe: str | None = None,
    bits: int | None = None,
    sample: int = 100_000,
    random_pairs: int = 10_000,
    seed: int = 1,
    documents: int | None = None,
    format: str | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """A threshold for these documents, with evidence, and what it will remove: what `nearsift tune --json` says.

    Args:
        sample: Documents that are searched against all others.
        random_pairs: Random pairs of different documents, which show what chance scores.
        documents: For how many documents of the kind the cost is forecast.
    """
    table, paths = _settings.given(data, text)
    report = _native.propose(
        table,
        paths,
        _settings.reading(text=text, id=id, format=format),
        _settings.matching(
            method=method, recipe=recipe, bits=bits, max_distance=max_distance, min_score=min_score
        ),
        {"sample": sample, "random_pairs": random_pairs, "seed": seed, "documents": documents},
        _settings.options(threads=threads, memory=memory, progress=progress),
    )
    result: dict[str, Any] = json.loads(report)
    return result


def evaluate(
    data: Data,
    truth: PathLike | Sequence[PathLike],
    *,
    text: str = "text",
    id: str = "id",
    pairs: PathLike | None = None,
    method: Method | None = None,
    min_score: float | None = None,
    max_distance: int | None = None,
    recipe: str | None = None,
    bits: int | None = None,
    verify: bool | None = None,
    positive_within: float | None = None,
    cluster: ClusterRule | None = None,
    peer_rows: bool = False,
    replicates: int = 1000,
    seed: int = 1,
    format: str | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Recall, precision and clusters against a truth: what `nearsift eval --json` says.

    Args:
        truth: The tables of the truth; `nearsift eval --help` says what is in them.
        pairs: A table of pairs with scores, which is measured in place of a method.
    """
    table, paths = _settings.given(data, text)
    truths = [truth] if isinstance(truth, str) or not isinstance(truth, Sequence) else list(truth)
    report = _native.measure(
        table,
        paths,
        _settings.reading(text=text, id=id, format=format),
        _settings.matching(
            method=method,
            recipe=recipe,
            bits=bits,
            max_distance=max_distance,
            min_score=min_score,
            verify=verify,
        ),
        {
            "truth": truths,
            "pairs": pairs,
            "positive_within": positive_within,
            "cluster": cluster,
            "peer_rows": peer_rows,
            "replicates": replicates,
            "seed": seed,
        },
        _settings.options(threads=threads, memory=memory, progress=progress),
    )
    result: dict[str, Any] = json.loads(report)
    return result
