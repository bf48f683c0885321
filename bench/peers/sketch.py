"""Python peers of the sketch: one JSON line for each, in microseconds of processor time a document.

Reads documents, one a line, and makes MinHash signatures of 128 permutations from their sets of
character 5-grams. `shingle` is the time to cut the texts into those sets, `sketch` that to make the
signatures of them, to the numbers that a user would store. One thread.
"""

import argparse
import json
import statistics
import time

PERMUTATIONS = 128
SEED = 42
LENGTH = 5


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
    encode, sketches = PEERS[name]()
    grams = [shingles(text, encode) for text in documents]
    # A document again and another one: a signature that says nothing is no result.
    made = sketches([grams[0], set(grams[0]), grams[1]])
    first, again, other = map(list, made.to_rows() if hasattr(made, "to_rows") else made)
    assert len(first) == PERMUTATIONS and first == again and first != other
    # The slowest take 10 ms a document.
    sample = grams[:20] if name == "datasketch, one by one" else grams
    line = {
        "peer": name,
        "shingle": timed(rounds, documents, lambda: [shingles(text, encode) for text in documents]),
        "sketch": timed(rounds, sample, lambda: sketches(sample)),
    }
    print(json.dumps(line), flush=True)


def timed(rounds, items, work):
    work()
    times = []
    for _ in range(rounds):
        begun = time.process_time()
        work()
        times.append((time.process_time() - begun) / len(items) * 1e6)
    return statistics.median(times)


def shingles(text, encode):
    places = range(len(text) - LENGTH + 1)
    if encode:
        return {text[i : i + LENGTH].encode() for i in places}
    return {text[i : i + LENGTH] for i in places}


def rensa(kind):
    import rensa as library

    peer = getattr(library, kind)

    def sketch(grams):
        signature = peer(num_perm=PERMUTATIONS, seed=SEED)
        signature.update(grams)
        return signature.digest()

    return False, lambda documents: [sketch(grams) for grams in documents]


def rensa_bulk(method):
    import rensa as library

    # A matrix of all signatures, without a Python object for each document.
    matrix = getattr(library.RMinHash, method)
    return False, lambda documents: matrix(documents, PERMUTATIONS, SEED)


def datasketch(update, fast_hash=False):
    from datasketch import MinHash

    options = {"num_perm": PERMUTATIONS, "seed": SEED, "scheme": "affine32"}
    if fast_hash:
        import xxhash

        options["hashfunc"] = xxhash.xxh32_intdigest
    # As the library advises: the permutations are made once and shared.
    options["permutations"] = MinHash(**options).permutations

    def sketch(grams):
        signature = MinHash(**options)
        update(signature, grams)
        return signature.digest()

    return True, lambda documents: [sketch(grams) for grams in documents]


def one_by_one(signature, grams):
    for gram in grams:
        signature.update(gram)


def in_batch(signature, grams):
    signature.update_batch(grams)


PEERS = {
    "rensa RMinHash": lambda: rensa("RMinHash"),
    "rensa CMinHash": lambda: rensa("CMinHash"),
    "rensa RMinHash, in bulk": lambda: rensa_bulk("digest_matrix_from_token_sets"),
    "rensa Rho, in bulk": lambda: rensa_bulk("digest_matrix_from_token_sets_rho"),
    "datasketch, one by one": lambda: datasketch(one_by_one),
    "datasketch, in batch": lambda: datasketch(in_batch),
    "datasketch, in batch, xxHash": lambda: datasketch(in_batch, fast_hash=True),
}

if __name__ == "__main__":
    main()
