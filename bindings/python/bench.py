"""The Python package beside its peers, all in one run: rates, sizes, and the quality of deduplication.

    cargo xtask generate-corpus --documents 50000 --out corpus
    pip install nearsift rensa datasketch simhash gaoya pyarrow
    python bindings/python/bench.py corpus/*.jsonl.zst --json record.json

Every line names what was measured; a peer that is not installed is left out, and said so. Answers are checked where there is one.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow

import nearsift as ns
from nearsift import compat
from nearsift.datasketch import MinHashLSH


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    result = work()
    return time.perf_counter() - begun, result


def best(work: Callable[[], Any], rounds: int = 3) -> tuple[float, Any]:
    return min((timed(work) for _ in range(rounds)), key=lambda one: one[0])


def rows(path: Path) -> Iterable[dict[str, Any]]:
    opened = subprocess.Popen(["zstd", "-dc", str(path)], stdout=subprocess.PIPE) if path.suffix == ".zst" else None
    lines = opened.stdout if opened else path.open("rb")
    assert lines is not None
    yield from map(json.loads, lines)


def shingles(text: str) -> set[str]:
    """Five characters: what works for Chinese and English alike."""
    return {text[i : i + 5] for i in range(max(1, len(text) - 4))}


class Bench:
    def __init__(self, documents: list[dict[str, Any]], path: Path, threads: int) -> None:
        self.texts = [row["text"] for row in documents]
        self.ids = [row["id"] for row in documents]
        self.documents, self.path, self.threads = documents, path, threads
        self.bytes = sum(len(text.encode()) for text in self.texts)
        self.record: dict[str, Any] = {
            "nearsift": ns.__version__,
            "python": sys.version.split()[0],
            "documents": len(documents),
            "bytes": self.bytes,
            "threads": threads,
        }

    def say(self, name: str, **figures: Any) -> None:
        self.record[name] = figures
        shown = ", ".join(f"{k} {v:,.4g}" if isinstance(v, float) else f"{k} {v:,}" for k, v in figures.items())
        print(f"{name}: {shown}", flush=True)

    def fingerprints(self) -> None:
        column = pyarrow.array(self.texts, pyarrow.large_string())
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        ns.fingerprint(column.slice(0, 1000), threads=self.threads)
        seconds, made = timed(lambda: ns.fingerprint(column, threads=self.threads))
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        rate = len(self.texts) / seconds
        self.say("fingerprints from Arrow", a_second=rate, mb_a_second=self.bytes / seconds / 1e6)
        self.say("memory that a column of fingerprints takes", mb=(after - before) / 1024, of_texts_mb=self.bytes / 1e6)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "in.arrow"
            table = pyarrow.table({"id": self.ids, "text": column})
            with pyarrow.OSFile(str(file), "wb") as sink, pyarrow.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
            program = [sys.executable, "-m", "nearsift", "fingerprint", str(file), "--recipe", "simhash64"]
            program += ["--threads", str(self.threads), "-q"]
            with (Path(folder) / "out").open("w") as out:
                seconds, _ = timed(lambda: subprocess.run(program, stdout=out, check=True))
            self.say("fingerprints by the program, from the same file to JSON", a_second=len(self.texts) / seconds)
        few = self.texts[:300]
        try:
            import simhash
        except ImportError:
            print("simhash (leonsim) is not installed: left out")
        else:
            seconds, values = timed(lambda: [simhash.Simhash(text).value for text in few])
            assert values == [compat.leonsim(text) for text in few]
            self.say("fingerprints by leonsim", a_second=len(few) / seconds, times=rate * seconds / len(few))
        try:
            import gaoya
        except ImportError:
            print("gaoya is not installed: left out")
        else:
            several = self.texts[:2000]
            column = pyarrow.array(several, pyarrow.large_string())
            seconds, _ = best(lambda: ns.fingerprint(column, threads=1))
            self.say("fingerprints from Arrow, one thread", a_second=len(several) / seconds)
            # It has no call for many documents. A Chinese sentence is one word for the first of these analyzers.
            for analyzer, ngram in [("word", 1), ("char", 2), ("char", 4)]:

                def by_gaoya() -> None:
                    index = gaoya.simhash.SimHashStringIndex(analyzer=analyzer, ngram_range=(ngram, ngram))
                    for number, text in enumerate(several):
                        index.insert_document(number, text)

                theirs, _ = best(by_gaoya)
                self.say(
                    f"fingerprints put into gaoya's index, {analyzer} {ngram}-grams, one thread",
                    a_second=len(several) / theirs,
                    times=rate * theirs / len(several),
                    times_on_one_thread=theirs / seconds,
                )
        assert made.to_pylist()[:300] == [ns.fingerprint(text) for text in few]

    def column(self, rows: int) -> None:
        program = [sys.executable, __file__, str(self.path), "--memory-of-column", str(rows)]
        figures = json.loads(subprocess.run(program, capture_output=True, check=True, text=True).stdout)
        self.say("memory of a column and its fingerprints", **figures)

    def sketches(self) -> None:
        column = pyarrow.array(self.texts, pyarrow.large_string())
        seconds, _ = timed(lambda: ns.sketch(column, threads=self.threads))
        rate = len(self.texts) / seconds
        self.say("sketches from Arrow", a_second=rate)
        try:
            import rensa
        except ImportError:
            print("rensa is not installed: left out")
            return
        few = self.texts[:5000]

        def by_rensa() -> Any:
            return rensa.RMinHash.digest_matrix_from_token_sets([list(shingles(text)) for text in few], 128, 1)

        seconds, _ = timed(by_rensa)
        self.say("signatures by rensa, shingles by Python", a_second=len(few) / seconds, times=rate * seconds / len(few))
        tokens = [list(shingles(text)) for text in few]
        seconds, _ = timed(lambda: rensa.RMinHash.digest_matrix_from_token_sets(tokens, 128, 1))
        self.say("signatures by rensa, shingles at hand", a_second=len(few) / seconds, times=rate * seconds / len(few))

    def lsh(self) -> None:
        few = self.texts[:5000]
        lsh = MinHashLSH(threshold=0.7)

        def insert(into: Any, items: list[Any]) -> None:
            for number, item in enumerate(items):
                into.insert(number, item)

        seconds, _ = timed(lambda: insert(lsh, few))
        asked, _ = timed(lambda: [lsh.query(text) for text in few])
        self.say(
            "drop-in for MinHashLSH, texts as they are",
            inserts_a_second=len(few) / seconds,
            queries_a_second=len(few) / asked,
            bytes_a_document=self.bytes_a_document("nearsift"),
        )
        try:
            import datasketch
        except ImportError:
            print("datasketch is not installed: left out")
            return

        def minhash(text: str) -> Any:
            made = datasketch.MinHash(num_perm=128)
            made.update_batch([shingle.encode() for shingle in shingles(text)])
            return made

        theirs = datasketch.MinHashLSH(threshold=0.7, num_perm=128)
        seconds, _ = timed(lambda: insert(theirs, [minhash(text) for text in few]))
        asked, _ = timed(lambda: [theirs.query(minhash(text)) for text in few])
        self.say(
            "datasketch.MinHashLSH, with its MinHash of 5-character shingles",
            inserts_a_second=len(few) / seconds,
            queries_a_second=len(few) / asked,
            bytes_a_document=self.bytes_a_document("datasketch"),
        )

    def bytes_a_document(self, package: str) -> float:
        """What an index takes in a process of its own, where no freed memory is used again."""
        program = [sys.executable, __file__, str(self.path), "--memory-of", package]
        return float(subprocess.run(program, capture_output=True, check=True, text=True).stdout)

    def dedup(self) -> None:
        seconds, found = timed(lambda: ns.dedup({"id": self.ids, "text": self.texts}, id="id", threads=self.threads))
        quality = f1(ns.evaluate(self.path, "fields", replicates=0))
        self.say("dedup", seconds=seconds, removed=len(found) - sum(found.keep_mask), **quality)
        for name, pipeline in [("rensa", by_rensa), ("datasketch", by_datasketch)]:
            try:
                peer, pairs = timed(lambda pipeline=pipeline: pipeline(self.texts))
            except ImportError:
                print(f"{name} is not installed: left out")
                continue
            with tempfile.TemporaryDirectory() as folder:
                table = Path(folder) / "pairs.jsonl"
                with table.open("w", encoding="utf-8") as out:
                    for a, b in pairs:
                        out.write(json.dumps({"a": self.ids[a], "b": self.ids[b], "score": 1.0}) + "\n")
                quality = f1(ns.evaluate(self.path, "fields", pairs=table, replicates=0))
            self.say(f"pairs by {name}", seconds=peer, pairs=len(pairs), times=peer / seconds, **quality)


def f1(evaluated: dict[str, Any]) -> dict[str, float]:
    """Of pairs, most of which are in the largest families, and of documents that have a near-duplicate."""
    figures = evaluated["measured"]
    return {"f1": figures["f1"]["value"], "f1_of_documents": figures["documents"]["duplicate_f1"]}


def by_rensa(texts: list[str]) -> list[tuple[int, int]]:
    import rensa

    chunk = 10_000  # The shingles of all texts at once do not fit into memory.
    lsh = rensa.RMinHashLSH(threshold=0.7, num_perm=128, num_bands=16)
    signatures: list[Any] = []
    for start in range(0, len(texts), chunk):
        tokens = [list(shingles(text)) for text in texts[start : start + chunk]]
        lsh.insert_matrix(rensa.RMinHash.digest_matrix_from_token_sets(tokens, 128, 1), start)
        signatures += rensa.RMinHash.from_token_sets(tokens, 128, 1)
    pairs: set[tuple[int, int]] = set()
    for a, signature in enumerate(signatures):
        pairs.update((min(a, b), max(a, b)) for b in lsh.query(signature) if a != b)
    return sorted(pairs)


def by_datasketch(texts: list[str]) -> list[tuple[int, int]]:
    import datasketch

    tokens = ([shingle.encode() for shingle in shingles(text)] for text in texts)
    lsh = datasketch.MinHashLSH(threshold=0.7, num_perm=128)
    pairs: set[tuple[int, int]] = set()
    for a, signature in enumerate(datasketch.MinHash.generator(tokens, num_perm=128)):
        pairs.update((b, a) for b in lsh.query(signature))
        lsh.insert(a, signature)
    return sorted(pairs)


def memory_of(package: str, texts: list[str]) -> float:
    """Bytes a document of an index, without what is inserted: that is made before, and is not kept by it."""
    if package == "nearsift":
        lsh: Any = MinHashLSH(threshold=0.7)
        items: list[Any] = texts
        lsh.query(texts[0])
    else:
        import datasketch

        lsh = datasketch.MinHashLSH(threshold=0.7, num_perm=128)
        tokens = ([shingle.encode() for shingle in shingles(text)] for text in texts)
        items = list(datasketch.MinHash.generator(tokens, num_perm=128))
    before = memory()
    for number, item in enumerate(items):
        lsh.insert(number, item)
    return (memory() - before) / len(items)


def memory_of_column(rows: int) -> None:
    """What the fingerprints of a column take beside it, in a process of its own: in the end, and at most on the way."""
    made_up = (f"第 {number} 号文件 of the archive, folder {number * 7919 % 10_007}" for number in range(rows))
    texts = pyarrow.array(made_up, pyarrow.large_string())
    ns.fingerprint(texts.slice(0, 1000), recipe="simhash64")
    before, most_before = memory(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    seconds, made = timed(lambda: ns.fingerprint(texts, recipe="simhash64"))
    after, most = memory(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    figures = {
        "rows": rows,
        "column_mb": texts.nbytes / 1e6,
        "fingerprints_mb": pyarrow.array(made).nbytes / 1e6,
        "before_mb": before / 1e6,
        "after_mb": after / 1e6,
        "most_mb": max(most, most_before) / 1e6,
        "most_before_mb": most_before / 1e6,
        "seconds": seconds,
    }
    print(json.dumps(figures))


def memory() -> int:
    """Bytes that this process has in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


PARTS: dict[str, Callable[[Bench, argparse.Namespace], None]] = {
    "fingerprints": lambda bench, _: bench.fingerprints(),
    "column": lambda bench, arguments: bench.column(arguments.column_rows),
    "sketches": lambda bench, _: bench.sketches(),
    "lsh": lambda bench, _: bench.lsh(),
    "dedup": lambda bench, _: bench.dedup(),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path, help="a file of cargo xtask generate-corpus")
    parser.add_argument("--documents", type=int, default=50_000)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", nargs="+", choices=PARTS, help="parts of the benchmark")
    parser.add_argument("--column-rows", type=int, default=10_000_000, help="rows of the column whose memory is measured")
    parser.add_argument("--memory-of-column", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--memory-of", choices=["nearsift", "datasketch"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_of_column:
        memory_of_column(arguments.memory_of_column)
        return
    documents = [row for _, row in zip(range(arguments.documents), rows(arguments.corpus))]
    if arguments.memory_of:
        print(memory_of(arguments.memory_of, [row["text"] for row in documents[:5000]]))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "corpus.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in documents), encoding="utf-8")
        bench = Bench(documents, path, arguments.threads)
        for part in arguments.only or PARTS:
            PARTS[part](bench, arguments)
    if arguments.json:
        arguments.json.write_text(json.dumps(bench.record, indent=2) + "\n")


main()
