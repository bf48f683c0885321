"""Pairs, proposals, figures, the program, and the package itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import nearsift as ns
from conftest import ROOT, TEXTS


def test_pairs_are_those_of_the_program(corpus: Path) -> None:
    program = [sys.executable, "-m", "nearsift", "pairs", str(corpus), "-q"]
    lines = subprocess.run(program, capture_output=True, text=True, check=False).stdout.splitlines()
    expected = [(line["a"], line["b"], line["score"]) for line in map(json.loads, lines)]
    got = [(pair["a"], pair["b"], pair["score"]) for pair in ns.pairs(corpus).to_pylist()]
    assert got == expected and got
    assert ns.pairs(TEXTS)["a"].to_pylist() == [0]
    assert ns.pairs(TEXTS, max_distance=20)["distance"][0] <= 20


def test_a_proposal_and_figures(corpus: Path) -> None:
    proposal = ns.tune(corpus)
    assert proposal["documents"] == 77 and 0 < proposal["threshold"]["min_score"] < 1
    figures = ns.evaluate(corpus, ROOT / "examples" / "truth.tsv", replicates=0)
    assert figures["measured"]["recall"]["value"] > 0.9
    with pytest.raises(ns.NearsiftError):
        ns.evaluate(corpus, "/nowhere/truth.tsv")


def test_the_program(tmp_path: Path, corpus: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "nearsift", *arguments], capture_output=True, text=True, check=False)

    assert run("--version").stdout.split()[1] == ns.__version__
    assert run("no-such-command").returncode == 2
    a, b = tmp_path / "a.txt", tmp_path / "b.txt"
    a.write_text(TEXTS[0], encoding="utf-8")
    b.write_text(TEXTS[1], encoding="utf-8")
    assert run("compare", str(a), str(b)).returncode == 1
    assert run("compare", str(a), str(a)).returncode == 0


def test_the_package_is_light_to_import() -> None:
    script = (
        "import sys, nearsift\n"
        "heavy = {'numpy', 'pandas', 'pyarrow', 'polars', 'tqdm', 'multiprocessing'} & sys.modules.keys()\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
