"""Runs the examples of all docstrings."""

import doctest
import importlib
import pkgutil
import sys

import nearsift

failed = tried = 0
for module in [nearsift, *(importlib.import_module(f"nearsift.{m.name}") for m in pkgutil.iter_modules(nearsift.__path__) if m.name not in ("__main__", "_native"))]:
    result = doctest.testmod(module)
    failed, tried = failed + result.failed, tried + result.attempted
print(f"{tried} examples, {failed} failed")
sys.exit(failed > 0 or tried < 20)
