"""Items of benchmarks are found in files as the program finds them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import nearsift as ns

PAULI = "Which physicist proposed the exclusion principle for electrons in 1925?"
LIBRARY = "今天下午，市图书馆举办了一场面向儿童的绘本阅读活动，请问活动由谁主持？"


def lines(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def corpus(folder: Path) -> tuple[Path, Path]:
    texts = ["A walk along the river, and nothing else.", f"Quiz! {PAULI.upper()}", f"第三篇：{LIBRARY}"]
    docs = lines(folder / "docs.jsonl", [{"id": n, "text": text} for n, text in enumerate(texts)])
    bench = lines(folder / "bench.jsonl", [{"id": "q1", "question": PAULI}, {"id": "q2", "question": LIBRARY}])
    return docs, bench


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("keywords", "options"), [({}, []), ({"mark": True}, ["--mark"]), ({"dry_run": True}, ["--dry-run"]), ({"min_coverage": 0.9}, ["--min-coverage", "0.9"])]
)
def test_the_same_files_as_by_the_program(tmp_path: Path, keywords: dict[str, object], options: list[str]) -> None:
    docs, bench = corpus(tmp_path)
    summary = ns.decontaminate(docs, bench, tmp_path / "own", **keywords)  # type: ignore[arg-type]
    command = [sys.executable, "-m", "nearsift", "decontaminate", str(docs), "-o", str(tmp_path / "program"), "--benchmarks", str(bench)]
    subprocess.run([*command, *options], check=True, capture_output=True)
    assert tree(tmp_path / "own") == tree(tmp_path / "program")
    assert (summary["documents"], summary["contaminated"]) == (3, 2)


def test_marks_names_and_a_saved_index(tmp_path: Path) -> None:
    docs, bench = corpus(tmp_path)
    index = tmp_path / "items.index"
    names = {"contaminated": "bad", "item": "found"}
    ns.decontaminate([docs], [bench], tmp_path / "out", mark=names, save_index=index, benchmark_fields=["question"])
    rows = [json.loads(line) for line in (tmp_path / "out/marked/docs.jsonl").open(encoding="utf-8")]
    assert [(row["bad"], row["found"]) for row in rows] == [(False, None), (True, "q1"), (True, "q2")]
    again = ns.decontaminate(docs, index, tmp_path / "out", overwrite=True)
    assert again["contaminated"] == 2
    assert not (tmp_path / "out/marked").exists()


def test_mistakes_are_named(tmp_path: Path) -> None:
    docs, bench = corpus(tmp_path)
    out = tmp_path / "out"
    with pytest.raises(ValueError, match="exclude each other"):
        ns.decontaminate(docs, bench, out, mark=True, dry_run=True)
    with pytest.raises(ValueError, match="min_coverage=2"):
        ns.decontaminate(docs, bench, out, min_coverage=2)
    with pytest.raises(ns.NearsiftError, match="no item has frage.*benchmark_fields"):
        ns.decontaminate(docs, bench, out, benchmark_fields=["frage"])
    with pytest.raises(ns.NearsiftError, match="the columns are contaminated, hits"):
        ns.decontaminate(docs, bench, out, mark={"group": "g"})
    assert not out.exists() or not any(out.iterdir())
