"""The durable index survives a kill, answers beside a writer, and refuses what does not fit."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import nearsift as ns
from conftest import TEXTS


def test_documents_are_seen_once(tmp_path: Path) -> None:
    with ns.Index(tmp_path / "seen") as seen:
        assert seen.check_and_insert("a", TEXTS[0]).is_new
        again = seen.check_and_insert("b", TEXTS[2])
        assert again.outcome == "near" and again.near is not None and again.near.id == "a"
        assert seen.insert("a", TEXTS[1]).outcome == "exists"
        assert seen.upsert("a", TEXTS[1]).outcome == "replaced"
        assert seen.insert("c", "x").outcome == "no_fingerprint"
        assert "a" in seen and "b" not in seen and 3 not in seen
        assert [near.id for near in seen.query(TEXTS[1])] == ["a"]
        assert seen.remove("a") and not seen.remove("a")
        assert len(seen) == 0
        seen.compact()
        assert seen.stats()["documents"] == 0
    with pytest.raises(ns.IndexFileError, match="closed"):
        seen.query(TEXTS[0])


@pytest.mark.parametrize(
    "settings", [{"max_distance": 6}, {"keep_texts": True}, {"min_score": 0.5}, {"bits": 128, "max_distance": 10}], ids=str
)
def test_every_kind_of_index(tmp_path: Path, settings: dict[str, object]) -> None:
    with ns.Index(tmp_path / "seen", **settings) as seen:  # type: ignore[arg-type]
        assert seen.insert("a", TEXTS[0]).is_new
        near = seen.query(TEXTS[0])[0]
        assert near.id == "a"
        assert (near.distance == 0) if "max_distance" in settings else (near.score == 1.0)
    with ns.Index(tmp_path / "seen", read_only=True) as seen:
        assert len(seen) == 1


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    script = (
        "import sys, nearsift as ns\n"
        "seen = ns.Index(sys.argv[1])\n"
        "for number in range(10**9):\n"
        "    seen.insert(str(number), f'{sys.argv[2]} 第{number}号文件，内容各不相同{number * number}')\n"
        "    print(number, flush=True)\n"
    )
    program = [sys.executable, "-c", script, str(tmp_path / "seen"), TEXTS[0]]
    running = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    for _ in range(50):
        last = int(running.stdout.readline())
    running.kill()
    rest = running.communicate()[0].split("\n")
    last = max([last, *(int(line) for line in rest[:-1])])
    with ns.Index(tmp_path / "seen") as seen:
        assert all(str(number) in seen for number in range(last + 1))


def test_threads_share_an_index(tmp_path: Path) -> None:
    with ns.Index(tmp_path / "seen") as seen:
        new: list[bool] = []

        def add(number: int) -> None:
            new.append(seen.check_and_insert(f"d{number}", TEXTS[0]).is_new)

        threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert new.count(True) == 1


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "seen"
    ns.Index(path).close()
    with pytest.raises(ns.IndexFileError, match="recipe"):
        ns.Index(path, recipe="simhash64")
    with ns.Index(path) as seen:
        with pytest.raises(ns.IndexFileError):
            ns.Index(path)
        with pytest.raises(ns.SettingError, match="not pickled"):
            pickle.dumps(seen)
        with pytest.raises(ns.SettingError):
            seen.insert("", TEXTS[0])
        with pytest.raises(TypeError):
            seen.insert("a", None)  # type: ignore[arg-type]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("no index")
    with pytest.raises(ns.IndexFileError):
        ns.Index(tmp_path / "other")
    with pytest.raises(ns.IndexFileError, match="no index is there"):
        ns.Index(tmp_path / "nowhere", read_only=True)
    with pytest.raises(ns.SettingError, match="32 bits"):
        ns.Index(tmp_path / "narrow", bits=32)
