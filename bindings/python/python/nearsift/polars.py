"""A namespace of Polars expressions: `import nearsift.polars`, then `pl.col("text").nearsift.fingerprint()`.

>>> import polars as pl
>>> import nearsift.polars
>>> frame = pl.DataFrame({"text": ["Two metro lines stood still for three hours after the rain.", None]})
>>> frame.select(pl.col("text").nearsift.fingerprint().is_not_null()).to_series().to_list()
[True, False]
"""

from __future__ import annotations

import polars as pl

import nearsift

__all__ = ["NearsiftExpression"]


@pl.api.register_expr_namespace("nearsift")
class NearsiftExpression:
    """What nearsift makes of a column of texts."""

    def __init__(self, expression: pl.Expr) -> None:
        self._expression = expression

    def fingerprint(self, recipe: str = "simhash64", *, bits: int | None = None, threads: int | None = None) -> pl.Expr:
        """The SimHash fingerprints: `UInt64` at 64 bits and less, else binary with the most significant byte first."""
        width = nearsift.recipe(recipe, bits=bits).bits

        def batch(texts: pl.Series) -> pl.Series:
            made = nearsift.fingerprint(texts, recipe=recipe, bits=bits, threads=threads)
            return pl.Series(texts.name, made) if width <= 64 else pl.Series(texts.name, made.to_pylist(), pl.Binary)

        return self._expression.map_batches(batch, return_dtype=pl.UInt64 if width <= 64 else pl.Binary)

    def sketch(self, recipe: str = "sketch", *, threads: int | None = None) -> pl.Expr:
        """The dual sketches, 64 bytes each."""

        def batch(texts: pl.Series) -> pl.Series:
            made = nearsift.sketch(texts, recipe=recipe, threads=threads)
            return pl.Series(texts.name, made.to_pylist(), pl.Binary)

        return self._expression.map_batches(batch, return_dtype=pl.Binary)

    def keep(self, *, min_score: float | None = None, threads: int | None = None) -> pl.Expr:
        """Whether each text stays when near duplicates go: for `frame.filter(pl.col("text").nearsift.keep())`."""

        def batch(texts: pl.Series) -> pl.Series:
            found = nearsift.dedup(texts, min_score=min_score, threads=threads)
            return pl.Series(texts.name, found.keep_mask, pl.Boolean)

        return self._expression.map_batches(batch, return_dtype=pl.Boolean)
