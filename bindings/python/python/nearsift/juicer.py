"""An operator of data-juicer that removes near duplicates: `nearsift_deduplicator`.

In a configuration, with the path that `python -m nearsift.juicer` prints:

    custom_operator_paths: ["…/site-packages/nearsift/juicer.py"]
    process:
      - nearsift_deduplicator:
          min_score: 0.63

In Python, `import nearsift.juicer` registers it, and `NearsiftDeduplicator(min_score=0.63).run(dataset)` runs it alone.

It works in data-juicer's default mode, and finds duplicates among all rows. The texts are written to the folder for temporary files, so
memory does not grow with them. The module is not called `data_juicer`, since data-juicer loads operators by the name of their file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from data_juicer.ops.base_op import OPERATORS, Deduplicator  # pyright: ignore[reportMissingImports]

import nearsift

if TYPE_CHECKING:
    from nearsift import Deduplicated

__all__ = ["NearsiftDeduplicator"]

@OPERATORS.register_module("nearsift_deduplicator")
class NearsiftDeduplicator(Deduplicator):  # type: ignore[misc]
    """Removes near duplicates, by the settings of :func:`nearsift.dedup`.

    The column of texts is data-juicer's `text_key`, and what else it gives every operator is taken as well.
    """

    def __init__(
        self,
        min_score: float | None = None,
        max_distance: int | None = None,
        recipe: str | None = None,
        bits: int | None = None,
        id: str | None = None,
        keep: str = "first",
        cluster: str | None = None,
        max_cluster: int | None = None,
        threads: int | None = None,
        *args: Any,
        **of_every_operator: Any,
    ) -> None:
        self.settings = {
            "min_score": min_score,
            "max_distance": max_distance,
            "recipe": recipe,
            "bits": bits,
            "id": id,
            "keep": keep,
            "cluster": cluster,
            "max_cluster": max_cluster,
            "threads": threads,
        }
        super().__init__(*args, **of_every_operator)

    def compute_hash(self, sample: Any) -> Any:
        """Leaves a row as it is: `process` makes sketches of the whole column at once."""
        return sample

    def process(self, dataset: Any, show_num: int = 0) -> tuple[Any, dict[int, list[Any]]]:
        """Returns the rows that stay, in order, and up to `show_num` pairs of a row that stays with one that goes."""
        if len(dataset) <= 1:
            return dataset, {}
        settings: dict[str, Any] = self.settings
        found = nearsift.dedup(dataset, text=self.text_key, **settings)
        kept = [row for row, stays in enumerate(found.keep_mask) if stays]
        return dataset.select(kept), _pairs(dataset, found, show_num)


def _pairs(dataset: Any, found: Deduplicated, most: int) -> dict[int, list[Any]]:
    """Rows that stay, each with the first one that goes because of it."""
    if most <= 0:
        return {}
    representatives = found.representative_rows.to_pylist()
    pairs: dict[int, list[Any]] = {}
    for row, stays in enumerate(found.keep_mask):
        first = representatives[row]
        if not stays and first is not None and first != row and first not in pairs:
            pairs[first] = [dataset[first], dataset[row]]
            if len(pairs) == most:
                break
    return {number: pair for number, pair in enumerate(pairs.values())}


if __name__ == "__main__":
    print(__file__)
