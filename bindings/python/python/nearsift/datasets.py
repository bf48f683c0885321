"""Data sets of Hugging Face: `nearsift.datasets.dedup(dataset)`, and functions for `dataset.map`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import nearsift

if TYPE_CHECKING:
    import datasets

__all__ = ["dedup", "fingerprints"]


def dedup(dataset: datasets.Dataset, *, text: str = "text", **settings: Any) -> datasets.Dataset:
    """The rows that stay: `settings` are those of :func:`nearsift.dedup`."""
    rows: Any = dataset
    kept = nearsift.dedup(rows, text=text, **settings).keep_mask
    return dataset.select([row for row, stays in enumerate(kept) if stays])


def fingerprints(text: str = "text", *, recipe: str = "simhash64", column: str = "fingerprint") -> Callable[[Any], Any]:
    """A function for `dataset.with_format("arrow").map(..., batched=True)` that adds a column of fingerprints, of `uint64`.

    A text with too few features has none. Without the format, a batch in which one is lacking is an error, since lists do not
    say their type.
    """

    def add(batch: Any) -> Any:
        if not isinstance(batch, Mapping):
            import pyarrow

            return batch.append_column(column, pyarrow.array(nearsift.fingerprint(batch[text], recipe=recipe)))
        texts: list[str | None] = batch[text]
        made = nearsift.fingerprint(texts, recipe=recipe)
        if made.null_count:
            raise nearsift.InputError(
                f"{made.null_count} of {len(made)} texts have no fingerprint: map over dataset.with_format('arrow')"
            )
        return {column: made.to_numpy()}

    return add
