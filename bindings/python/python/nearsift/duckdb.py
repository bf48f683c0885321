"""Functions of DuckDB: `nearsift_fingerprint(text)`, `nearsift_sketch(text)`, `nearsift_distance(a, b)`.

>>> import duckdb
>>> import nearsift.duckdb
>>> connection = duckdb.connect()
>>> nearsift.duckdb.register(connection)
>>> connection.sql("select nearsift_distance(11, 8)").fetchall()
[(2,)]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nearsift

if TYPE_CHECKING:
    import duckdb

__all__ = ["register"]


def register(connection: duckdb.DuckDBPyConnection, *, recipe: str = "simhash64") -> None:
    """Registers the functions in a connection; the recipe is that of `nearsift_fingerprint`, of 64 bits or less."""
    import duckdb
    import pyarrow

    width = nearsift.recipe(recipe).bits
    if width > 64:
        raise nearsift.SettingError(f"recipe={recipe!r}: fingerprints of {width} bits are no UBIGINT: use one of 64 or less")

    def fingerprint(texts: Any) -> Any:
        return pyarrow.array(nearsift.fingerprint(texts, recipe=recipe))

    def sketch(texts: Any) -> Any:
        return pyarrow.array(nearsift.sketch(texts)).cast(pyarrow.binary())

    types: Any = getattr(duckdb, "sqltypes", None) or getattr(duckdb, "typing")
    settings: dict[str, Any] = {"type": "arrow", "null_handling": "special"}
    connection.create_function("nearsift_fingerprint", fingerprint, [types.VARCHAR], types.UBIGINT, **settings)
    connection.create_function("nearsift_sketch", sketch, [types.VARCHAR], types.BLOB, **settings)
    connection.sql("create or replace temporary macro nearsift_distance(a, b) as bit_count(xor(a::ubigint, b::ubigint))")
