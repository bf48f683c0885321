"""An estimator of scikit-learn whose `fit_predict` gives the cluster of each text.

>>> from nearsift.sklearn import NearDuplicates
>>> texts = ["Two metro lines stood still for three hours after the rain of yesterday.",
...          "Two metro lines stood still for three hours after the rain of yesterday!", "Something else."]
>>> NearDuplicates().fit_predict(texts).tolist()
[0, 0, 1]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy
import numpy.typing
from sklearn.base import BaseEstimator, ClusterMixin

import nearsift

__all__ = ["NearDuplicates"]


class NearDuplicates(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Clusters of near duplicates among texts.

    After `fit`, `labels_` has the cluster of each text, counted from 0 in the order of the first texts; `kept_` says which texts stay
    when near duplicates go, and `n_clusters_` how many clusters there are.
    """

    def __init__(
        self,
        *,
        min_score: float | None = None,
        max_distance: int | None = None,
        cluster: str | None = None,
        keep: str = "first",
        n_jobs: int | None = None,
    ) -> None:
        self.min_score = min_score
        self.max_distance = max_distance
        self.cluster = cluster
        self.keep = keep
        self.n_jobs = n_jobs

    def fit(self, X: Sequence[str], y: object = None) -> NearDuplicates:
        """Finds the clusters."""
        found = nearsift.dedup(
            X,
            min_score=self.min_score,
            max_distance=self.max_distance,
            cluster=self.cluster,  # type: ignore[arg-type]
            keep=self.keep,
            threads=self.n_jobs,
        )
        labels: dict[Any, int] = {}
        clusters = found.table["cluster"].to_pylist()
        own = [("row", row) if cluster is None else cluster for row, cluster in enumerate(clusters)]
        self.labels_: numpy.typing.NDArray[Any] = numpy.array([labels.setdefault(key, len(labels)) for key in own])
        self.kept_: numpy.typing.NDArray[Any] = numpy.array(found.keep_mask)
        self.n_clusters_ = len(labels)
        return self
