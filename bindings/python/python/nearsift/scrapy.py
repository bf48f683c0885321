"""A pipeline of Scrapy that drops items whose text was seen, by the durable index.

    ITEM_PIPELINES = {"nearsift.scrapy.NearDuplicateFilter": 100}
    NEARSIFT_INDEX = "seen"            # the folder of the index
    NEARSIFT_TEXT_FIELD = "text"
    NEARSIFT_ID_FIELD = "url"

What was seen in an earlier crawl is dropped, too: the index survives it, and a crash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from itemadapter import ItemAdapter
from scrapy.exceptions import DropItem, NotConfigured

import nearsift

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

__all__ = ["NearDuplicateFilter"]


class NearDuplicateFilter:
    """Drops an item whose text is near to that of one before."""

    def __init__(self, crawler: Crawler) -> None:
        settings = crawler.settings
        path = settings.get("NEARSIFT_INDEX")
        if not path:
            raise NotConfigured("NEARSIFT_INDEX names the folder of the index")
        self.crawler = crawler
        self.text_field = settings.get("NEARSIFT_TEXT_FIELD", "text")
        self.id_field = settings.get("NEARSIFT_ID_FIELD", "url")
        self.index = nearsift.Index(path, keep_texts=settings.getbool("NEARSIFT_KEEP_TEXTS", False))

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> NearDuplicateFilter:
        """As Scrapy makes pipelines."""
        return cls(crawler)

    def close_spider(self, *_: object) -> None:
        """Closes the index at the end of a crawl."""
        self.index.close()

    def process_item(self, item: Any, *_: object) -> Any:
        """Lets an item through that is new, and drops the others."""
        fields = ItemAdapter(item)
        text, id = fields.get(self.text_field), fields.get(self.id_field)
        if not text or not id:
            return item
        answer = self.index.check_and_insert(str(id), str(text))
        if answer.near is not None:
            self._count("near")
            raise DropItem(f"near to {answer.near.id}")
        if answer.outcome == "exists":
            self._count("exists")
            raise DropItem(f"{id} is in the index")
        return item

    def _count(self, what: str) -> None:
        if self.crawler.stats is not None:
            self.crawler.stats.inc_value(f"nearsift/dropped/{what}")
