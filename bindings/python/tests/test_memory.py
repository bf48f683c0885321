"""Indexes in memory answer as the durable one does, and hold what they are given."""

from __future__ import annotations

import pickle
import random
import threading
from pathlib import Path
from typing import Any

import numpy
import pytest

import nearsift as ns
from conftest import TEXTS
from nearsift import _memory, compat

INDEXES = [ns.SketchIndex, lambda: ns.FingerprintIndex(max_distance=12)]


@pytest.mark.parametrize("make", INDEXES)
def test_documents_are_seen_once(make: Any) -> None:
    seen = make()
    assert seen.check_and_insert("a", TEXTS[0]).is_new
    again = seen.check_and_insert(("b", 2), TEXTS[2])
    assert again.outcome == "near" and again.near.id == "a"
    assert seen.insert("a", TEXTS[1]).outcome == "exists"
    assert seen.upsert("a", TEXTS[1]).outcome == "replaced"
    assert seen.upsert(("b", 2), TEXTS[0]).outcome == "added"
    assert seen.insert("c", "x").outcome == "no_fingerprint"
    assert "a" in seen and ("b", 2) in seen and "c" not in seen and len(seen) == 2
    assert [near.id for near in seen.query(TEXTS[1])] == ["a"]
    assert seen.query("") == []
    again = pickle.loads(pickle.dumps(seen))
    assert len(again) == 2 and again.recipe == seen.recipe
    assert again.query(TEXTS[2]) == seen.query(TEXTS[2]) != []
    assert seen.remove("a") and not seen.remove("a")
    assert seen.query(TEXTS[1]) == []
    assert seen.insert_many(["a", "a", "d"], [TEXTS[1], TEXTS[0], None]) == 1
    with pytest.raises(TypeError, match="unhashable"):
        seen.insert([], TEXTS[0])
    with pytest.raises(ns.InputTypeError):
        seen.insert("e", 1.5)


@pytest.mark.parametrize("settings", [{"min_score": 0.4}, {"max_distance": 12}], ids=str)
def test_they_answer_as_the_durable_one(tmp_path: Path, corpus: Path, settings: dict[str, Any]) -> None:
    import json

    rows = [json.loads(line) for line in corpus.read_text(encoding="utf-8").splitlines()][:60]
    memory: Any = ns.SketchIndex(**settings) if "min_score" in settings else ns.FingerprintIndex(**settings)
    with ns.Index(tmp_path / "seen", **settings) as durable:
        for row in rows:
            assert memory.check_and_insert(row["id"], row["text"]) == durable.check_and_insert(row["id"], row["text"])
        for row in rows:
            assert sorted(memory.query(row["text"])) == sorted(durable.query(row["text"]))
        assert len(memory) == len(durable)


def test_fingerprints_are_found_exactly() -> None:
    chance = random.Random(3)
    values = {number: chance.getrandbits(64) & 0xFFFF for number in range(500)}
    index = ns.FingerprintIndex(max_distance=6)
    assert index.insert_many(values, values.values()) == 500
    for number, value in values.items():
        near = {(k, (v ^ value).bit_count()) for k, v in values.items() if (v ^ value).bit_count() <= 4}
        found = index.query(value, 4)
        assert {(one.id, one.distance) for one in found} == near
        assert found[:3] == index.query(value, 4, limit=3)
    column = ns.fingerprint([*TEXTS, None])
    index = ns.FingerprintIndex(max_distance=12)
    assert index.insert_many("abcd", column.to_pylist()) == 3
    assert index.query(numpy.asarray(column.to_numpy(null=0))[0]) == index.query(TEXTS[0])


def test_fingerprints_of_any_recipe() -> None:
    index = ns.FingerprintIndex(recipe="leonsim", max_distance=3)
    index.insert("a", compat.leonsim(TEXTS[0]))
    assert index.query(TEXTS[0])[0][:2] == ("a", 0)
    wide = ns.FingerprintIndex(bits=256, max_distance=20)
    wide.insert("a", TEXTS[0])
    assert wide.query(ns.fingerprint([TEXTS[0]], bits=256)[0])[0].distance == 0
    wide.insert("b", 1 << 255 | 1)
    assert [near[:2] for near in wide.query(1 << 255)] == [("b", 1)]


def test_removed_documents_are_forgotten() -> None:
    """Memory follows what is there, and not what was ever there."""
    index = ns.FingerprintIndex(max_distance=3)
    for number in range(10 * _memory.FEWEST_REMOVED):
        index.insert(number, number * 0x9E37_79B9_7F4A_7C15 % 2**64)
        assert number < 10 or index.remove(number - 10)
        assert len(index._keys) <= 2 * _memory.FEWEST_REMOVED + 20
    assert len(index) == 10
    assert index.query(number * 0x9E37_79B9_7F4A_7C15 % 2**64)[0][:2] == (number, 0)


def test_threads_share_an_index() -> None:
    seen = ns.SketchIndex()
    new: list[bool] = []

    def add(number: int) -> None:
        new.append(seen.check_and_insert(number, TEXTS[0]).is_new)

    threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert new.count(True) == 1


def test_what_does_not_fit_is_refused() -> None:
    for make, said in [
        (lambda: ns.SketchIndex(min_score=2), "min_score=2"),
        (lambda: ns.SketchIndex(recipe="simhash64"), "use FingerprintIndex"),
        (lambda: ns.FingerprintIndex(recipe="sketch"), "use SketchIndex"),
        (lambda: ns.FingerprintIndex(bits=32), "expected 64, 128 or 256"),
        (lambda: ns.FingerprintIndex(max_distance=99), "99"),
        (lambda: ns.FingerprintIndex().query(1, 4), "made for 3 and less"),
        (lambda: ns.FingerprintIndex().query(1, -1), "0 or more"),
        (lambda: ns.FingerprintIndex().query(-1), "expected a fingerprint of 64 bits"),
        (lambda: ns.FingerprintIndex().insert("a", 2**64), "expected a fingerprint of 64 bits"),
    ]:
        with pytest.raises(ns.SettingError, match=said):
            make()
    with pytest.raises(ns.RecipeError):
        ns.SketchIndex(recipe="simhash65")
