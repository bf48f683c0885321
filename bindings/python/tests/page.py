"""Runs a section of docs/embed/migrate.md in the folder where it is started: `page.py PAGE HEADING`.

The status is 77 where a package is lacking that the section is about.
"""

from __future__ import annotations

import doctest
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

LACKING = 77

BLOCKS = re.compile(r"```(python|console)\n(.*?)```", re.DOTALL)


class Runner(doctest.DocTestRunner):
    """Ends at the first package that is not there."""

    def report_unexpected_exception(self, out: Any, test: Any, example: Any, exc_info: Any) -> None:
        if isinstance(exc_info[1], ModuleNotFoundError):
            # The runner takes what is printed to the other one.
            print(exc_info[1], file=sys.__stdout__, flush=True)
            sys.exit(LACKING)
        super().report_unexpected_exception(out, test, example, exc_info)


def main(page: Path, heading: str) -> int:
    sections = re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    section = next(section for section in sections if section.startswith(heading + "\n"))
    # What all sections begin with, and the section itself.
    code = [*BLOCKS.findall(sections[0]), *BLOCKS.findall(section)]
    names: dict[str, Any] = {}
    for _, block in code[:1]:
        exec("".join(line[4:] + "\n" for line in block.splitlines() if line), names)
    Path("in").mkdir()
    rows = [{"id": str(number), "text": text} for number, text in enumerate(names["texts"])]
    Path("in/pages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    tools = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    runner = Runner()
    for kind, block in code[1:]:
        if kind == "python":
            test = doctest.DocTestParser().get_doctest(block, names, heading, str(page), 0)
            # Not its copy: a function sees the names of where it was made.
            test.globs = names
            runner.run(test, clear_globs=False)
            continue
        for line in block.splitlines():
            ran = subprocess.run(line.removeprefix("$ "), shell=True, env=tools, capture_output=True, text=True)
            if "No module named" in ran.stderr:
                print(ran.stderr.strip().splitlines()[-1])
                return LACKING
            if ran.returncode != 0:
                print(ran.stderr)
                return 1
    print(f"{runner.tries} examples, {runner.failures} failed")
    return int(runner.failures > 0 or runner.tries == 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
