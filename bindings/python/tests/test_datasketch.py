"""The drop-in does what `datasketch.MinHashLSH` does, beside it."""

from __future__ import annotations

import pickle
import random
from typing import Any

import pytest

import nearsift as ns
from conftest import TEXTS
from nearsift.datasketch import MinHash, MinHashLSH


def sets(count: int) -> list[set[bytes]]:
    """Sets of tokens, in pairs of a similarity of .8 or .1."""
    chance = random.Random(7)
    made: list[set[bytes]] = []
    for number in range(count // 2):
        one = {str(chance.randrange(10**9)).encode() for _ in range(90)}
        other = {str(chance.randrange(10**9)).encode() for _ in range(10 if number % 2 else 82)}
        made += [one, set(list(one)[: 80 if number % 2 else 18]) | other]
    return made


def filled(kind: Any, tokens: set[bytes]) -> Any:
    minhash = kind(num_perm=128)
    minhash.update_batch(sorted(tokens))
    return minhash


def test_the_same_calls_find_the_same() -> None:
    real = pytest.importorskip("datasketch")
    tokens = sets(200)
    ours, theirs = MinHashLSH(threshold=0.5, num_perm=128), real.MinHashLSH(threshold=0.5, num_perm=128)
    for number, one in enumerate(tokens):
        ours.insert(number, filled(MinHash, one))
        theirs.insert(number, filled(real.MinHash, one))
    similar = lambda a, b: len(a & b) / len(a | b) >= 0.5  # noqa: E731
    truth = {(a, b) for a in range(200) for b in range(200) if similar(tokens[a], tokens[b])}

    def found(lsh: Any, kind: Any) -> set[tuple[int, int]]:
        return {(a, b) for a in range(200) for b in lsh.query(filled(kind, tokens[a]))}

    mine, other = found(ours, MinHash), found(theirs, real.MinHash)
    assert len(mine & truth) >= 0.98 * len(truth)
    assert len(mine & truth) >= len(other & truth) - 4
    assert len(mine - truth) <= len(other - truth) + 4


def test_texts_go_in_as_they_are() -> None:
    lsh = MinHashLSH(threshold=0.4)
    for key, text in zip(["a", 2, ("c", 3)], TEXTS):
        lsh.insert(key, text)
    assert set(lsh.query(TEXTS[0])) == {"a", ("c", 3)}
    assert lsh.query_with_similarity(TEXTS[0])[0] == ("a", 1.0)
    assert lsh.query("") == []


def test_the_interface() -> None:
    lsh = MinHashLSH(threshold=0.5)
    assert lsh.is_empty()
    with lsh.insertion_session() as session:
        for number, text in enumerate(TEXTS):
            session.insert(number, text)
    assert 0 in lsh and 9 not in lsh and len(lsh) == 3
    with pytest.raises(ValueError, match="already exists"):
        lsh.insert(0, TEXTS[1])
    lsh.insert(0, TEXTS[0], check_duplication=False)
    counts = lsh.get_counts()
    assert len(counts) == 32 and all(sum(table.values()) == 3 for table in counts)
    again = pickle.loads(pickle.dumps(lsh))
    assert again.query(TEXTS[1]) == lsh.query(TEXTS[1]) == [1]
    lsh.remove(0)
    assert 0 not in lsh and 0 not in lsh.query(TEXTS[0])
    with pytest.raises(ValueError, match="does not exist"):
        lsh.remove(0)
    other = MinHashLSH()
    other.insert(1, TEXTS[1])
    other.insert("new", TEXTS[0])
    with pytest.raises(ValueError, match="overlapping"):
        lsh.merge(other, check_overlap=True)
    lsh.merge(other)
    assert "new" in lsh
    # A text that is too short has no sketch, and is a key all the same.
    lsh.insert("short", "x")
    assert "short" in lsh
    lsh.remove("short")


def test_what_cannot_be_taken_over_is_said() -> None:
    with pytest.raises(ns.SettingError, match="threshold=2"):
        MinHashLSH(threshold=2)
    with pytest.raises(ns.SettingError, match="nearsift.Index keeps"):
        MinHashLSH(storage_config={"type": "redis"})
    with pytest.raises(ns.SettingError, match="insert the tokens"):
        MinHash(hashvalues=[1, 2])
    with pytest.raises(ns.InputTypeError, match="expected bytes"):
        MinHash().update("text")  # type: ignore[arg-type]
    with pytest.raises(ns.InputTypeError, match="expected a text or"):
        MinHashLSH().query(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unhashable"):
        MinHashLSH().insert([], TEXTS[0])


def test_sets() -> None:
    a, b = MinHash(), MinHash()
    a.update_batch([b"one", b"two"])
    b.update(b"two")
    assert (a.jaccard(b), a.count(), len(a)) == (0.5, 2.0, 128)
    copy = b.copy()
    copy.merge(a)
    assert copy == a and not copy.is_empty()
    assert [m.count() for m in MinHash.bulk([[b"x"], [b"x", b"y"]])] == [1.0, 2.0]
    assert pickle.loads(pickle.dumps(a)) == a
