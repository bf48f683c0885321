"""The notebook of the examples runs, and its outputs are what it shows."""

from __future__ import annotations

import ast
import json
import os
from typing import Any

import pytest

from conftest import ROOT

NOTEBOOK = ROOT / "examples" / "dedup.ipynb"


def run(source: str, names: dict[str, Any]) -> str | None:
    """Runs a cell, and returns what its last expression is shown as."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, str(NOTEBOOK), "exec"), names)
    return None if last is None else repr(eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names))


def test_the_notebook_shows_what_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(NOTEBOOK.parent)
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    names: dict[str, Any] = {}
    changed = False
    for number, cell in enumerate(cell for cell in notebook["cells"] if cell["cell_type"] == "code"):
        shown = run("".join(cell["source"]), names)
        data = {"text/plain": shown.splitlines(True)} if shown is not None else None
        outputs = [] if data is None else [
            {"output_type": "execute_result", "execution_count": number + 1, "metadata": {}, "data": data}
        ]
        changed = changed or cell["outputs"] != outputs
        cell["outputs"], cell["execution_count"] = outputs, number + 1
    if changed and os.environ.get("UPDATE_NOTEBOOK"):
        NOTEBOOK.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    else:
        assert not changed, "run the test with UPDATE_NOTEBOOK=1, and look at the difference"
