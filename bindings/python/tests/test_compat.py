"""Fingerprints of other libraries, beside the real packages. What no package gives on this Python stays with the golden vectors."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from typing import Any

import pytest

from conftest import ROOT, TEXTS
from nearsift import compat

#: `simhash-pybind`, which binds the C++ of `simhash-py`: in a folder of its own, since leonsim's package has the same name.
SIMHASH_PYBIND = ROOT / "target" / "python" / "simhash-pybind"

MORE = [*TEXTS, "How are you? I Am fine. Thanks.", "ab 12 cd" * 50, "Ünïcödé, ｆｕｌｌ　ｗｉｄｔｈ and 🦊 beyond the first plane"]


def edited(count: int) -> list[str]:
    """Texts that differ in few characters."""
    chance = random.Random(1)
    made = []
    for number in range(count):
        letters = list((TEXTS[0] + " the quick brown fox jumps over the lazy dog ") * 2)
        for _ in range(number % 10):
            letters[chance.randrange(len(letters))] = chance.choice("abcdefg 天地人")
        made.append("".join(letters))
    return made


def by_simhash_pybind(program: str, given: Any) -> Any:
    """What a program prints as JSON that sees that package in the place of leonsim's."""
    if not SIMHASH_PYBIND.is_dir():
        pytest.skip(f"simhash-pybind is not in {SIMHASH_PYBIND}: `cargo xtask test` puts it there")
    ran = subprocess.run(
        [sys.executable, "-c", "import json, sys\ngiven = json.load(sys.stdin)\n" + program],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SIMHASH_PYBIND)},
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


def test_leonsim() -> None:
    real = pytest.importorskip("simhash")
    for text in [*MORE, "", "x"]:
        assert compat.leonsim(text) == real.Simhash(text).value


def test_text_dedup() -> None:
    real = pytest.importorskip("text_dedup.simhash")
    for ngram in (1, 2, 3, 5):
        for text in [*MORE, *edited(20)]:
            made = real.embed_func(text, 0, ngram=ngram, permutations=[], hash_func=real.xxh3_64_digest)
            assert compat.text_dedup(text, ngram=ngram) == int.from_bytes(made["__signature__"], "big"), text


@pytest.mark.parametrize(("analyzer", "ngram"), [("word", 1), ("char", 2), ("char", 3)])
def test_gaoya(analyzer: Any, ngram: int) -> None:
    """The package shows no fingerprints: what its index finds below each distance is what ours are apart."""
    real = pytest.importorskip("gaoya.simhash")
    texts = edited(40)
    ours = [compat.gaoya(text, analyzer=analyzer, ngram=ngram) for text in texts]
    found = 0
    for below in range(1, 6):
        size = (ngram, ngram) if analyzer == "char" else None
        index = real.SimHashStringIndex(num_blocks=6, hamming_distance=below, analyzer=analyzer, ngram_range=size)
        for number, text in enumerate(texts):
            index.insert_document(number, text)
        for number, text in enumerate(texts):
            near = {other for other, value in enumerate(ours) if (value ^ ours[number]).bit_count() < below}
            assert set(index.query(text)) == near
            found += len(near) - 1
    assert found > 50


def test_simhash_py() -> None:
    chance = random.Random(2)
    lists = [[chance.getrandbits(64) for _ in range(size)] for size in (0, 1, 2, 3, 10, 1000)]
    made = by_simhash_pybind("import simhash\nprint(json.dumps([int(simhash.compute(hashes)) for hashes in given]))", lists)
    assert [compat.simhash_py(hashes) for hashes in lists] == made


@pytest.mark.parametrize("tokenization", ["character", "space"])
def test_data_juicer(tokenization: Any) -> None:
    pytest.importorskip("data_juicer")
    program = (
        "from data_juicer.ops.deduplicator.document_simhash_deduplicator import DocumentSimhashDeduplicator\n"
        f"operator = DocumentSimhashDeduplicator(tokenization={tokenization!r})\n"
        "print(json.dumps([operator.compute_hash({'text': text})['simhash'] for text in given]))"
    )
    texts = [*MORE, *edited(10)]
    made = by_simhash_pybind(program.replace("['simhash']", "['__dj__simhash']"), texts)
    assert [str(compat.data_juicer(text, tokenization=tokenization)) for text in texts] == made
