"""Python peers of `nearsift eval`: the pairs that each finds in a file of documents, as JSON lines.

Reads JSON lines with `id` and `text`, and writes one file of pairs `a b score` for each peer. Pairs are those that the peer's
own index returns, with its own estimate of the similarity. Texts are handed over as they are.
"""

import argparse
import itertools
import json
import os
import re

SEED = 42
NOT_WORD = re.compile(r"\W")
WORD = re.compile(r"\w+")
HAN = re.compile(r"[\u3400-\u9fff]")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("documents")
    parser.add_argument("folder")
    parser.add_argument("--peers", required=True, help="names, with semicolons between them")
    arguments = parser.parse_args()
    with open(arguments.documents, encoding="utf-8") as file:
        documents = [json.loads(line) for line in file]
    ids = [document["id"] for document in documents]
    texts = [document["text"] for document in documents]
    for number, name in enumerate(arguments.peers.split(";")):
        with open(os.path.join(arguments.folder, f"{number}.jsonl"), "w", encoding="utf-8") as file:
            for a, b, score in sorted(PEERS[name](texts)):
                line = {"a": ids[a], "b": ids[b], "score": score}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")


def grams(items, length, joint):
    return {joint.join(items[i : i + length]) for i in range(len(items) - length + 1)}


def words_by_split(text):
    """text-dedup: lower case, split at every character of no word, 5-grams; fewer than 5 words are left out."""
    return grams(NOT_WORD.split(text.lower()), 5, " ")


def words(length):
    """Words, and every Chinese character as one, which no splitting by blanks gives."""

    def cut(text):
        items = []
        for word in WORD.findall(text.lower()):
            items.extend(word if HAN.search(word) else [word])
        return grams(items, length, " ")

    return cut


def blanks(text):
    """rensa's documentation: the set of what lies between blanks."""
    return set(text.split())


def short(text):
    """The best found for MinHash: 3 characters of Chinese, 2 words of a text with blanks."""
    if 2 * len(HAN.findall(text)) > len(text):
        return grams("".join(WORD.findall(text)), 3, "")
    return words(2)(text)


def datasketch(cut, permutations, threshold=None, bands=None):
    from datasketch import MinHash, MinHashLSH

    def find(texts):
        options = {"num_perm": permutations, "seed": SEED, "scheme": "affine32"}
        options["permutations"] = MinHash(**options).permutations
        index = MinHashLSH(num_perm=permutations, **({"params": bands} if bands else {"threshold": threshold}))
        signatures = {}
        for number, text in enumerate(texts):
            if not (shingles := cut(text)):
                continue
            signature = MinHash(**options)
            signature.update_batch([shingle.encode() for shingle in shingles])
            for other in index.query(signature):
                yield other, number, signature.jaccard(signatures[other])
            index.insert(number, signature)
            signatures[number] = signature

    return find


def rensa(cut, permutations, threshold, bands):
    from rensa import RMinHash, RMinHashLSH

    def find(texts):
        index = RMinHashLSH(threshold=threshold, num_perm=permutations, num_bands=bands)
        signatures = {}
        for number, text in enumerate(texts):
            if not (shingles := cut(text)):
                continue
            signature = RMinHash(num_perm=permutations, seed=SEED)
            signature.update(sorted(shingles))
            for other in set(index.query(signature)):
                # As its own deduplicator does.
                if (score := signature.jaccard(signatures[other])) >= threshold:
                    yield other, number, score
            index.insert(number, signature)
            signatures[number] = signature

    return find


def leonsim(most):
    def find(texts):
        from simhash import Simhash

        values = [Simhash(text).value for text in texts]
        for (a, first), (b, second) in itertools.combinations(enumerate(values), 2):
            distance = (first ^ second).bit_count()
            if distance <= most:
                yield a, b, 1 - distance / 64

    return find


PEERS = {
    "datasketch as text-dedup": lambda texts: datasketch(words_by_split, 256, threshold=0.7)(texts),
    "datasketch as datatrove": lambda texts: datasketch(words(5), 112, bands=(14, 8))(texts),
    "datasketch, tuned": lambda texts: datasketch(short, 256, bands=(64, 4))(texts),
    "rensa as documented": lambda texts: rensa(blanks, 128, 0.8, 16)(texts),
    "rensa, tuned": lambda texts: rensa(short, 256, 0.3, 64)(texts),
    "leonsim, distance 3": leonsim(3),
    "leonsim, distance 10": leonsim(10),
}

if __name__ == "__main__":
    main()
