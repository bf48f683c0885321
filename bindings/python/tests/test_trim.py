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


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"min_bytes": 31}, "31 bytes is no length of a repeat: expected 32 to 65535 bytes"),
        ({"widen": "line", "narrow": "line"}, "exclude each other"),
        ({"unit": "words"}, "expected 'bytes' or 'letters'"),
        ({"widen": "page"}, "expected 'line' or 'sentence'"),
    ],
)
def test_wrong_settings_are_refused(tmp_path: Path, settings: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ns.trim_substrings(documents(tmp_path), tmp_path / "out", **settings)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()
