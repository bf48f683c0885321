"""Runs the examples of all docstrings and of the READMEs."""

import doctest
import importlib
import pkgutil
import re
import sys
from pathlib import Path

import nearsift

ROOT = Path(__file__).resolve().parents[3]

failed = tried = 0


def count(result: doctest.TestResults) -> None:
    global failed, tried
    failed, tried = failed + result.failed, tried + result.attempted


names = [module.name for module in pkgutil.iter_modules(nearsift.__path__)]
count(doctest.testmod(nearsift))
for name in names:
    # The first runs the program, the second is compiled; the last needs a library that the tests do without where it is absent.
    if name in ("__main__", "_native"):
        continue
    try:
        count(doctest.testmod(importlib.import_module(f"nearsift.{name}")))
    except ModuleNotFoundError as error:
        print(f"nearsift.{name} left out: {error}")
for name in ("README.md", "README.zh-CN.md"):
    text = (ROOT / name).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    for block in blocks:
        example = doctest.DocTestParser().get_doctest(block, {}, name, name, 0)
        count(doctest.DocTestRunner().run(example))
print(f"{tried} examples, {failed} failed")
sys.exit(failed > 0 or tried < 60)
