"""A block of a datatrove pipeline that lets through the documents that stay.

    LocalPipelineExecutor(pipeline=[JsonlReader("in"), NearsiftDedup(), JsonlWriter("out")], tasks=1)

All documents of a task are held in memory, and duplicates are found within it: a pipeline of one task sees all of them. For more than
that, :func:`nearsift.dedup_files` reads the files in bounded memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from datatrove.pipeline.base import PipelineStep

import nearsift

__all__ = ["NearsiftDedup"]


class NearsiftDedup(PipelineStep):  # type: ignore[misc]
    """Removes near duplicates; `settings` are those of :func:`nearsift.dedup`."""

    name = "nearsift"
    type = "DEDUP"

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.settings = settings

    def run(self, data: Iterable[Any] | None, rank: int = 0, world_size: int = 1) -> Iterator[Any]:
        """Yields the documents that stay, in order."""
        documents = list(data or [])
        if not documents:
            return
        found = nearsift.dedup([document.text for document in documents], **self.settings)
        for document, row in zip(documents, found.table.to_pylist(), strict=True):
            self.stat_update("total")
            if row["kept"]:
                self.stat_update("kept")
                if row["cluster"] is not None:
                    document.metadata["cluster_size"] = row["cluster_size"]
                yield document
            else:
                self.stat_update(row["reason"])
