"""Pages with gold text, each with what trafilatura finds: extract.py OUT FOLDER... writes OUT/pages.jsonl and OUT/N.html.

Layouts: ground-truth.json with html/ (also inside a tar.zst); ground-truth/ID.json with html/ (WCXB: a folder for each
split); base.json with htmls/ (magic-html); cleaned/ with Original/ (Chinese web content); evaldata.json, eval_*.json or a
script with EVAL_PAGES, beside cache/ and eval/ (trafilatura's own: its gold are passages that must and must not be found).
"""
import ast, gzip, json, pathlib, subprocess, sys, tempfile

try:
    import trafilatura
except ImportError:
    trafilatura = None


def read(stem):
    for path in (stem, pathlib.Path(f"{stem}.gz")):
        if path.is_file():
            data = path.read_bytes()
            return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    return None


def pages(folder):
    """(set, type, html, gold text or None, sentences with, sentences without)"""
    for archive in sorted(folder.rglob("*.tar.zst")):
        with tempfile.TemporaryDirectory() as unpacked:
            tar = subprocess.run(["zstd", "-dcq", str(archive)], check=True, capture_output=True).stdout
            subprocess.run(["tar", "-x", "-C", unpacked], input=tar, check=True)
            yield from pages(pathlib.Path(unpacked))
    for truth in sorted(folder.rglob("ground-truth.json")):
        for name, page in sorted(json.loads(truth.read_text("utf-8")).items()):
            html = read(truth.parent / "html" / f"{name}.html")
            yield "article-extraction", "article", html, page.get("articleBody"), [], []
    for truths in sorted(folder.rglob("ground-truth")):
        for path in sorted(truths.glob("*.json")):
            page = json.loads(path.read_text("utf-8"))
            gold = page.get("ground_truth", page)
            kind = page.get("_internal", {}).get("page_type", {}).get("primary", "page")
            html = read(truths.parent / "html" / f"{path.stem}.html")
            yield f"WCXB {truths.parent.name}", kind, html, gold.get("main_content"), [], []
    for base in sorted(folder.rglob("base.json")):
        for name, page in sorted(json.loads(base.read_text("utf-8")).items()):
            html = read(base.parent / "htmls" / f"{name}.html")
            yield "magic-html", base.parent.name, html, page.get("content"), [], []
    for cleaned in sorted(folder.rglob("cleaned")):
        for path in sorted(cleaned.glob("*.txt")):
            html = next((h for h in map(read, (cleaned.parent / d / f"{path.stem}.html" for d in ("Original", "original"))) if h), None)
            yield "Chinese web content", "article", html, path.read_bytes().decode("utf-8", "replace"), [], []
    for data in sorted([*folder.rglob("*.py"), *folder.rglob("eval*.json")]):
        for page in passages(data).values():
            found = (read(data.parent / d / page["file"]) for d in ("cache", "eval"))
            html = next((h for h in found if h), None)
            yield "trafilatura", "article", html, None, page.get("with", []), page.get("without", [])


def passages(path):
    """The pages that a file of trafilatura's evaluation names."""
    source = path.read_text("utf-8", "replace")
    if path.suffix == ".json":
        pages = json.loads(source)
        return pages if isinstance(pages, dict) and all(isinstance(p, dict) and "file" in p for p in pages.values()) else {}
    if "EVAL_PAGES" not in source:
        return {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "EVAL_PAGES":
            return ast.literal_eval(node.value) if isinstance(node.value, ast.Dict) and node.value.keys else {}
    return {}


def main():
    out = pathlib.Path(sys.argv[1])
    count = missing = 0
    with open(out / "pages.jsonl", "w", encoding="utf-8") as lines:
        for folder in map(pathlib.Path, sys.argv[2:]):
            for name, kind, html, gold, keep, drop in pages(folder):
                if html is None or (gold is None and not keep):
                    missing += 1
                    continue
                peer = (trafilatura.extract(html) or "") if trafilatura else None
                (out / f"{count}.html").write_bytes(html)
                page = {"set": name, "kind": kind, "gold": gold, "with": keep, "without": drop, "peer": peer}
                lines.write(json.dumps(page) + "\n")
                count += 1
    print(json.dumps({"missing": missing}))


main()
