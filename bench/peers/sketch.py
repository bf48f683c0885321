"""Python peers of the sketch: one JSON line for each, in microseconds of processor time a document.

Reads documents, one a line, and makes the MinHash of each with 128 permutations from its set of
character 3-grams. `shingle` is the time to cut the text into that set, `sketch` that to make the
signature of it, from the peer's object to its digest. One thread.
"""

import argparse
import json
import statistics
import time

PERMUTATIONS = 128
SEED = 42


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("documents")
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--peers", required=True, help="names, with semicolons between them")
    arguments = parser.parse_args()
    with open(arguments.documents, encoding="utf-8") as file:
        documents = file.read().splitlines()
    for name in arguments.peers.split(";"):
        measure(name, documents, arguments.rounds)


def measure(name, documents, rounds):
    encode, sketch = PEERS[name]()
    grams = [shingles(text, encode) for text in documents]
    # One document against itself and against another: a signature that says nothing is no result.
    first, again, other = sketch(grams[0]), sketch(set(grams[0])), sketch(grams[1])
    assert len(first) == PERMUTATIONS and list(first) == list(again) and list(first) != list(other)
    # The slowest peers take 10 ms a document.
    sample = grams if name != "datasketch, one by one" else grams[:20]
    line = {
        "peer": name,
        "shingle": timed(rounds, documents, lambda text: shingles(text, encode)),
        "sketch": timed(rounds, sample, sketch),
    }
    print(json.dumps(line), flush=True)


def timed(rounds, items, work):
    times = []
    for _ in range(rounds):
        begun = time.thread_time()
        for item in items:
            work(item)
        times.append((time.thread_time() - begun) / len(items) * 1e6)
    return statistics.median(times)


def shingles(text, encode):
    if encode:
        return {text[i : i + 3].encode() for i in range(len(text) - 2)}
    return {text[i : i + 3] for i in range(len(text) - 2)}


def rensa(kind):
    import rensa as library

    peer = getattr(library, kind)

    def sketch(grams):
        signature = peer(num_perm=PERMUTATIONS, seed=SEED)
        signature.update(list(grams))
        return signature.digest()

    return False, sketch


def datasketch(batch):
    from datasketch import MinHash

    # As the library advises: the permutations are made once and shared.
    permutations = MinHash(num_perm=PERMUTATIONS, seed=SEED).permutations

    def sketch(grams):
        signature = MinHash(num_perm=PERMUTATIONS, seed=SEED, permutations=permutations)
        if batch:
            signature.update_batch(grams)
        else:
            for gram in grams:
                signature.update(gram)
        return signature.digest()

    return True, sketch


PEERS = {
    "rensa RMinHash": lambda: rensa("RMinHash"),
    "rensa CMinHash": lambda: rensa("CMinHash"),
    "datasketch, batch": lambda: datasketch(True),
    "datasketch, one by one": lambda: datasketch(False),
}

if __name__ == "__main__":
    main()
