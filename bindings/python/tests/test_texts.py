"""Fingerprints, sketches, words and other libraries' fingerprints, one by one and by the column."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy
import pyarrow
import pytest

import nearsift as ns
from conftest import ROOT, TEXTS
from nearsift import _native, compat

VECTORS = ROOT / "crates" / "nearsift" / "tests" / "vectors"


@pytest.mark.parametrize("name", ["native.jsonl", "compat.jsonl"])
def test_golden_vectors(name: str) -> None:
    checked = 0
    for line in (VECTORS / name).read_bytes().splitlines():
        got, expected = _native.vector(line)
        assert got == expected, line
        checked += 1
    assert checked > 100


@pytest.mark.parametrize("recipe", ["simhash32", "simhash64", "simhash128", "simhash256", "keywords64"])
def test_a_column_is_its_texts(recipe: str) -> None:
    texts = [*TEXTS, None, "", "x"]
    one = [None if text is None else ns.fingerprint(text, recipe=recipe) for text in texts]
    column = ns.fingerprint(texts, recipe=recipe)
    many = [int.from_bytes(value, "big") if isinstance(value, bytes) else value for value in column.to_pylist()]
    assert many == one
    assert one[3] is None and one[4] is None
    assert pyarrow.array(column).null_count == column.null_count


def test_sketches() -> None:
    a, b, c = (ns.sketch(text) for text in TEXTS)
    assert a and b and c
    assert ns.score(a, c) > 0.4 > ns.score(a, b)
    assert ns.score(a, a) == 1.0
    assert ns.distance(a, a) == 0
    assert ns.sketch(TEXTS).to_pylist() == [a, b, c]
    assert ns.sketch([TEXTS[0], None]).null_count == 1
    assert ns.sketch("") is None


def test_numpy() -> None:
    column = ns.fingerprint(TEXTS)
    array = numpy.asarray(column)
    assert array.dtype == numpy.uint64
    assert array.tolist() == column.to_pylist()
    distances = ns.distance(array, int(array[0]))
    assert distances.tolist() == [ns.distance(value, column[0]) for value in column.to_pylist()]
    wide = ns.fingerprint(TEXTS, bits=256).to_numpy()
    assert wide.shape == (3, 32)
    with pytest.raises(ns.InputError, match="row 1 has no value"):
        ns.fingerprint([TEXTS[0], None]).to_numpy()
    assert ns.fingerprint([TEXTS[0], None]).to_numpy(null=0)[1] == 0


def test_a_distance_of_other_things_is_refused() -> None:
    for a, b in [(1, None), ("a", "b"), (b"12345678", 3), (-1, 3), (b"1", b"12")]:
        with pytest.raises(ns.InputTypeError):
            ns.distance(a, b)
    with pytest.raises(ns.InputTypeError, match="for texts use compare"):
        ns.score("a", "b")  # type: ignore[arg-type]
    with pytest.raises(ns.SettingError, match="expected 64"):
        ns.score(b"1", b"2")


def test_recipes() -> None:
    names = {one.name.split(":")[0] for one in ns.recipes()}
    assert {"sketch", "simhash64", "keywords64", "leonsim"} <= names
    assert ns.recipe("simhash64").digest == ns.recipe("simhash64").digest
    with pytest.raises(ns.RecipeError, match="simhash65"):
        ns.recipe("simhash65")
    with pytest.raises(ns.InputTypeError, match="use sketch"):
        ns.fingerprint("x", recipe="sketch")
    assert "feature" in str(ns.recipe("simhash64").reason("x"))


def test_words_and_keywords(tmp_path: Path) -> None:
    assert ns.segment_words("大雨使地铁线路停运") == ["大雨", "使", "地铁", "线路", "停运"]
    assert "绘本" in ns.segment_words("绘本活动", user_dictionary=["绘本 100000 n"])
    heaviest = ns.keywords(TEXTS[0], top=3)
    assert len(heaviest) == 3
    assert heaviest[0].weight >= heaviest[1].weight >= heaviest[2].weight


def test_other_libraries_fingerprints() -> None:
    assert compat.leonsim("") == 16825458760271544958
    words = ["今天", "图书馆", "活动"]
    assert compat.hutool(words) != compat.string_hash(words)
    assert compat.string_hash([("今天", 0.5), ("活动", 0.25)]) > 0
    assert compat.simhash_py([1, 2, 3]) == compat.seomoz([1, 2, 3])
    with pytest.raises(ns.RecipeError, match="hash"):
        compat.digest_inverted(words, hash="md4")  # type: ignore[arg-type]


def test_a_comparison_is_that_of_the_program(tmp_path: Path, corpus: Path) -> None:
    run = ns.dedup_files(corpus, tmp_path / "out")
    texts = {row["id"]: row["text"] for row in map(json.loads, corpus.read_text(encoding="utf-8").splitlines())}
    pair = next(pair for pair in run.pairs if pair["score"] < 1)
    a, b = tmp_path / "a.txt", tmp_path / "b.txt"
    a.write_text(texts[pair["a"]], encoding="utf-8")
    b.write_text(texts[pair["b"]], encoding="utf-8")
    for like, settings in [(None, ["--min-score", "0.5"]), (tmp_path / "out", []), (None, ["--max-distance", "5"])]:
        command = [sys.executable, "-m", "nearsift", "compare", str(a), str(b), "--json", *settings]
        command += ["--like", str(like)] if like else []
        figures = json.loads(subprocess.run(command, capture_output=True, check=False).stdout)
        keywords = {name[2:].replace("-", "_"): json.loads(value) for name, value in zip(settings[::2], settings[1::2])}
        found = ns.compare(texts[pair["a"]], texts[pair["b"]], like=like, **keywords)
        assert found.differences == [ns.Difference(**piece) for piece in figures["differences"]]
        for name, figure in found.figures.items():
            assert figure == figures.get(name), name
    assert ns.compare(texts[pair["a"]], texts[pair["b"]], like=tmp_path / "out").score == pair["score"]
    one, other = "据新华社报导，沿海地区预计降雨将持续至周日晚上。", "委员会将于明年春天发表最终报告，所有成员都可以提出意见。"
    moved = ns.compare(one + other, other + one)
    assert {(piece.side, piece.moved) for piece in moved.differences if piece.moved} == {("a", 1), ("b", 1)}
    assert moved.marked().count("~1: ") == 2
    equal = ns.compare("漢語", "汉语")
    assert equal.differences == [ns.Difference("a", "漢語", True), ns.Difference("b", "汉语", True)]
    assert equal.marked() == "漢語"
    assert ns.compare("x", "").score is None
    with pytest.raises(ns.InputError, match="no results"):
        ns.compare("a", "b", like=tmp_path)
