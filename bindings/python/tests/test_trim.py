"""Exact repeats are cut out of files as the program cuts them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import nearsift as ns

STRETCH = "本站所有文章版权归原作者所有，转载请注明出处，并保留本声明全文，否则追究责任。"


def documents(folder: Path) -> Path:
    texts = [f"甲{STRETCH}乙", f"丙。{STRETCH}\n丁戊", STRETCH + "己", STRETCH]
    path = folder / "docs.jsonl"
    path.write_text("".join(json.dumps({"id": n, "text": text}) + "\n" for n, text in enumerate(texts)))
    return path


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_same_files_as_by_the_program(tmp_path: Path) -> None:
    docs = documents(tmp_path)
    summary = ns.trim_substrings(docs, tmp_path / "own", min_bytes=100)
    command = [sys.executable, "-m", "nearsift", "trim", str(docs), "-o", str(tmp_path / "program"), "--substrings", "100"]
    subprocess.run(command, check=True, capture_output=True)
    assert tree(tmp_path / "own") == tree(tmp_path / "program")
    assert (summary["repeats"], summary["documents_changed"], summary["documents_removed"]) == (3, 2, 1)
    kept = [json.loads(line)["text"] for line in (tmp_path / "own/kept/docs.jsonl").open()]
    assert kept == [f"甲{STRETCH}乙", "丙。\n丁戊", "己"]


def test_marks_and_ends(tmp_path: Path) -> None:
    docs = documents(tmp_path)
    ns.trim_substrings([docs], tmp_path / "marks", min_bytes=100, mark=True, unit="letters")
    lines = [json.loads(line) for line in (tmp_path / "marks/repeats.jsonl").open()]
    assert [line["id"] for line in lines if line["reason"] == "repeated"] == [1, 2, 3]
    ns.trim_substrings([docs], tmp_path / "wide", min_bytes=100, widen="line")
    kept = [json.loads(line)["text"] for line in (tmp_path / "wide/kept/docs.jsonl").open()]
    assert kept == [f"甲{STRETCH}乙", "丁戊"]


def test_the_copy_of_the_preferred_document_stays(tmp_path: Path) -> None:
    docs = tmp_path / "docs.jsonl"
    texts = [(1, f"甲{STRETCH}"), (3, f"{STRETCH}乙"), (2, f"丙{STRETCH}丁")]
    docs.write_text("".join(json.dumps({"id": n, "rank": n, "text": text}) + "\n" for n, text in texts))
    out = tmp_path / "out"
    for keep, expect in [("first", [texts[0][1], "乙", "丙丁"]), ("highest:rank", ["甲", texts[1][1], "丙丁"])]:
        ns.trim_substrings(docs, out, min_bytes=100, keep=keep, overwrite=True)
        assert [json.loads(line)["text"] for line in (out / "kept/docs.jsonl").open()] == expect
    summary = ns.trim_substrings(docs, tmp_path / "marks", min_bytes=100, keep="highest:rank", mark={"repeats": "spans"})
    assert (summary["keep"], summary["repeats"]) == ("highest:rank", 2)
    rows = [json.loads(line) for line in (tmp_path / "marks/marked/docs.jsonl").open()]
    assert [row["text"] for row in rows] == [text for _, text in texts]
    for row in rows:
        for span in row["spans"]:
            begin, end = span["characters"]
            assert row["text"][begin:end] == STRETCH
            begin, end = span["bytes"]
            assert row["text"].encode()[begin:end] == STRETCH.encode()
            assert span["first"] == {"id": 3, "record": 2, "byte": 0}
    assert [row["repeated_bytes"] for row in rows] == [len(STRETCH.encode()), 0, len(STRETCH.encode())]
    assert not any(row["only_repeats"] for row in rows)
    with pytest.raises(ns.SettingError, match="text"):
        ns.trim_substrings(docs, tmp_path / "other", mark={"repeats": "text"})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"min_bytes": 31}, "31 bytes is no length of a repeat: expected 32 to 65535 bytes"),
        ({"widen": "line", "narrow": "line"}, "exclude each other"),
        ({"keep": "last"}, "'last' is not a keep policy"),
        ({"unit": "words"}, "expected 'bytes' or 'letters'"),
        ({"widen": "page"}, "expected 'line' or 'sentence'"),
    ],
)
def test_wrong_settings_are_refused(tmp_path: Path, settings: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ns.trim_substrings(documents(tmp_path), tmp_path / "out", **settings)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()
