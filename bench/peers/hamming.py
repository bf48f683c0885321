"""Python peers of the Hamming index: one JSON line for each, with its counts.

Reads 64-bit fingerprints and queries as little-endian files, and answers each query with the number
of fingerprints within the distance, inclusive. One thread.
"""

import argparse
import json
import logging
import resource
import time

import numpy

# An insertion into the graph takes about 0.2 ms, and into the string buckets 4 x 5 us.
USEARCH_MOST = 100_000
USEARCH_NEAREST = 10
SIMHASH_MOST = 1_000_000


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("fingerprints")
    parser.add_argument("queries")
    parser.add_argument("--max-distance", type=int, required=True)
    parser.add_argument("--peers", required=True, help="names, with commas between them")
    arguments = parser.parse_args()
    fingerprints = numpy.fromfile(arguments.fingerprints, dtype="<u8")
    queries = numpy.fromfile(arguments.queries, dtype="<u8")
    for name in arguments.peers.split(","):
        PEERS[name](name, fingerprints, queries, arguments.max_distance)


def report(name, build, count, fingerprints, queries, nearest=None):
    """Times `build()` and then `count(index, queries)`, which returns all hits.

    `nearest` is for an approximate peer, which gives no more than as many hits for each query.
    """
    before = resident()
    begun = time.perf_counter()
    index = build()
    built = time.perf_counter()
    held = resident() - before
    hits = count(index, queries)
    ended = time.perf_counter()
    line = {
        "peer": name,
        "n": len(fingerprints),
        "queries": len(queries),
        "build_seconds": built - begun,
        "query_seconds": ended - built,
        "bytes_per_fingerprint": max(held, 0) / len(fingerprints),
        "hits": int(hits),
        "nearest": nearest,
    }
    print(json.dumps(line), flush=True)


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def as_bytes(values):
    return values.view(numpy.uint8).reshape(-1, 8)


def faiss_peer(make, most_queries):
    def run(name, fingerprints, queries, max_distance):
        import faiss

        faiss.omp_set_num_threads(1)

        def build():
            index = make(faiss, len(fingerprints), max_distance)
            index.add(as_bytes(fingerprints))
            return index

        def count(index, queries):
            # The radius is exclusive.
            limits, _, _ = index.range_search(as_bytes(queries), max_distance + 1)
            return limits[-1]

        report(name, build, count, fingerprints, queries[:most_queries])

    return run


def flat(faiss, _n, _max_distance):
    return faiss.IndexBinaryFlat(64)


def one_hash(faiss, n, max_distance):
    """One table by the first bits: exact when as many of them are flipped as may differ."""
    index = faiss.IndexBinaryHash(64, max(8, n.bit_length() - 4))
    index.nflip = max_distance
    return index


def multi_hash(faiss, _n, max_distance):
    """Disjoint tables, one more than bits may differ: exact by the pigeonhole principle."""
    index = faiss.IndexBinaryMultiHash(64, max_distance + 1, 64 // (max_distance + 1))
    index.nflip = 0
    return index


def usearch_peer(name, fingerprints, queries, max_distance):
    from usearch.index import Index, MetricKind, ScalarKind

    fingerprints = fingerprints[:USEARCH_MOST]

    def build():
        index = Index(ndim=64, metric=MetricKind.Hamming, dtype=ScalarKind.B1)
        index.add(numpy.arange(len(fingerprints)), as_bytes(fingerprints), threads=1)
        return index

    def count(index, queries):
        matches = index.search(as_bytes(queries), USEARCH_NEAREST, threads=1)
        return (matches.distances <= max_distance).sum()

    report(name, build, count, fingerprints, queries[:50_000], nearest=USEARCH_NEAREST)


def simhash_peer(name, fingerprints, queries, max_distance):
    from simhash import Simhash, SimhashIndex

    logging.getLogger("simhash").setLevel(logging.ERROR)
    fingerprints = fingerprints[:SIMHASH_MOST]

    def build():
        values = enumerate(fingerprints.tolist())
        return SimhashIndex([(str(i), Simhash(value)) for i, value in values], k=max_distance)

    def count(index, queries):
        return sum(len(index.get_near_dups(Simhash(query))) for query in queries.tolist())

    report(name, build, count, fingerprints, queries[:200])


PEERS = {
    "faiss-flat": faiss_peer(flat, 64),
    "faiss-hash": faiss_peer(one_hash, 500),
    # Over skewed data some 500 a second.
    "faiss-multi-hash": faiss_peer(multi_hash, 50_000),
    "usearch": usearch_peer,
    "simhash": simhash_peer,
}

if __name__ == "__main__":
    main()
