"""Python peers of `nearsift dedup`: each deduplicates the same files end to end, from documents to documents.

Reads compressed JSON lines with `id` and `text` from a folder, writes what the peer keeps below another one, and the
groups that it found as pairs `a b score`, each member with the first of its group. Prints the seconds that the peer took, its imports
and its writing included, as one JSON object.
"""

import argparse
import glob
import io
import json
import os
import pickle
import subprocess
import sys
import time

from quality import PEERS


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("documents", help="a folder of .jsonl.zst files")
    parser.add_argument("folder", help="where the peer works")
    parser.add_argument("--peer", required=True)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    files = sorted(glob.glob(os.path.join(arguments.documents, "*.jsonl.zst")))
    os.makedirs(arguments.folder, exist_ok=True)
    begun = time.perf_counter()
    groups = RUNS[arguments.peer](files, arguments)
    seconds = time.perf_counter() - begun
    links = 0
    with open(os.path.join(arguments.folder, "pairs.jsonl"), "w", encoding="utf-8") as file:
        for first, *others in groups():
            for other in others:
                file.write(json.dumps({"a": first, "b": other, "score": 1.0}) + "\n")
                links += 1
    print(json.dumps({"seconds": seconds, "links": links}))


def documents_of(files):
    import zstandard

    for path in files:
        with open(path, "rb") as file:
            stream = zstandard.ZstdDecompressor().stream_reader(file)
            for line in io.TextIOWrapper(stream, encoding="utf-8"):
                yield json.loads(line)


def by_root(roots):
    """Groups of two and more, from the root of each member."""
    members = {}
    for member, root in roots:
        members.setdefault(root, []).append(member)
    return (group for group in members.values() if len(group) > 1)


def by_pairs(name):
    """A library's index: all documents, one after the other, and the first of each component stays."""

    def run(files, arguments):
        documents = list(documents_of(files))
        parents = list(range(len(documents)))

        def root(place):
            while parents[place] != place:
                parents[place] = parents[parents[place]]
                place = parents[place]
            return place

        for a, b, _ in PEERS[name]([document["text"] for document in documents]):
            a, b = root(a), root(b)
            parents[max(a, b)] = min(a, b)
        with open(os.path.join(arguments.folder, "kept.jsonl"), "w", encoding="utf-8") as file:
            for place, document in enumerate(documents):
                if root(place) == place:
                    file.write(json.dumps(document, ensure_ascii=False) + "\n")
        return lambda: by_root((document["id"], root(place)) for place, document in enumerate(documents))

    return run


def text_dedup(module):
    """The program itself, with its own settings."""

    def run(files, arguments):
        output = os.path.join(arguments.folder, "kept")
        command = [sys.executable, "-m", f"text_dedup.{module}", "--path", "json", "--split", "train"]
        command += ["--column", "text", "--idx_column", "id"]
        command += ["--data_files", os.path.join(arguments.documents, "*.jsonl.zst"), "--num_proc", str(arguments.workers)]
        command += ["--cache_dir", os.path.join(arguments.folder, "cache"), "--output", output, "--debug"]
        offline = {"HF_DATASETS_OFFLINE": "1", "HF_HUB_OFFLINE": "1"}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, **offline})

        def groups():
            with open(os.path.join(output, "uf.pkl"), "rb") as file:
                parents = pickle.load(file).parent

            def root(place):
                while parents.get(place, place) != place:
                    place = parents[place]
                return place

            return by_root((place, root(place)) for place in parents)

        return groups

    return run


def datatrove(files, arguments):
    """MinHash by its local executor, with its own settings; a task a file."""
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import (
        MinhashDedupBuckets,
        MinhashDedupCluster,
        MinhashDedupFilter,
        MinhashDedupSignature,
    )
    from datatrove.pipeline.dedup.minhash import MinhashConfig
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers import JsonlWriter

    config = MinhashConfig()
    below = lambda name: os.path.join(arguments.folder, name)
    documents = lambda: JsonlReader(arguments.documents, glob_pattern="*.jsonl.zst", compression="zstd")

    def step(number, tasks, *pipeline):
        logs = below(f"logs{number}")
        LocalPipelineExecutor(list(pipeline), tasks=tasks, workers=arguments.workers, logging_dir=logs).run()

    step(1, len(files), documents(), MinhashDedupSignature(output_folder=below("signatures"), config=config))
    step(2, config.num_buckets, MinhashDedupBuckets(below("signatures"), below("buckets"), config=config))
    step(3, 1, MinhashDedupCluster(below("buckets"), below("remove"), config=config, save_cluster_id=True))
    removed = JsonlWriter(below("removed"), compression=None)
    chosen = MinhashDedupFilter(below("remove"), exclusion_writer=removed, load_cluster_ids=True)
    step(4, len(files), documents(), chosen, JsonlWriter(below("kept"), compression=None))

    def groups():
        roots = []
        for path in sorted(glob.glob(below("removed/*.jsonl")) + glob.glob(below("kept/*.jsonl"))):
            with open(path, encoding="utf-8") as file:
                for line in file:
                    document = json.loads(line)
                    cluster = document["metadata"].get("minhash_cluster_id", -1)
                    if cluster != -1:
                        roots.append((document["id"], cluster))
        return by_root(roots)

    return groups


RUNS = {
    "text-dedup SimHash": text_dedup("simhash"),
    "text-dedup MinHash": text_dedup("minhash"),
    "datatrove MinHash": datatrove,
    "rensa as documented": by_pairs("rensa as documented"),
    "rensa, tuned": by_pairs("rensa, tuned"),
    "datasketch as text-dedup": by_pairs("datasketch as text-dedup"),
}

if __name__ == "__main__":
    main()
