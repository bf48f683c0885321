"""What the tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

#: Three documents, the last near to the first.
TEXTS = [
    "今天下午，市图书馆举办了一场面向儿童的绘本阅读活动。",
    "本报讯：昨天的大雨使两条地铁线路停运了三个小时。",
    "今天下午，市图书馆举办了一场儿童绘本阅读活动。",
]


@pytest.fixture
def texts() -> list[str]:
    return list(TEXTS)


@pytest.fixture
def corpus() -> Path:
    """The example corpus of the repository."""
    return ROOT / "examples" / "corpus.jsonl"
