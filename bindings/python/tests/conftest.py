"""What the tests share."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

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


LETTERS = [chr(0x4E00 + letter) for letter in range(3000)]


def article(number: int) -> str:
    draw = random.Random(number)
    return "".join(draw.choice(LETTERS) for _ in range(48))


def edited_documents(count: int) -> Any:
    """A table of documents, a third of them edited copies of any other."""
    import pyarrow as pa

    draw = random.Random(5)
    texts: list[str | None] = []
    for number in range(count):
        text = article(number)
        if number % 3 == 0:
            text = article(draw.randrange(count))
            text = text[:20] + "改" + text[20:] if number % 2 else text
        texts.append(text)
    order = list(range(count))
    draw.shuffle(order)
    return pa.table({"id": [f"doc-{number}" for number in order], "text": texts, "at": list(range(count))})
