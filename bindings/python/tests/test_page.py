"""The page on moving from other packages: each section runs as it is written, with the real package and with ours."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT
from page import LACKING
from test_compat import SIMHASH_PYBIND

PAGE = ROOT / "docs" / "embed" / "migrate.md"
SECTIONS = re.findall(r"^## (.*)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
#: No package of Python is imitated there.
PROSE = ["hutool, yanyiwu"]


@pytest.mark.parametrize("heading", [heading for heading in SECTIONS if heading not in PROSE])
def test_section(tmp_path: Path, heading: str) -> None:
    environment = dict(os.environ)
    if heading == "simhash-py":
        if not SIMHASH_PYBIND.is_dir():
            pytest.skip(f"simhash-pybind is not in {SIMHASH_PYBIND}: `cargo xtask test` puts it there")
        environment["PYTHONPATH"] = str(SIMHASH_PYBIND)
    program = [sys.executable, Path(__file__).with_name("page.py"), PAGE, heading]
    ran = subprocess.run(program, capture_output=True, text=True, cwd=tmp_path, env=environment)
    if ran.returncode == LACKING:
        pytest.skip(ran.stdout.strip().splitlines()[-1])
    assert ran.returncode == 0, ran.stdout + ran.stderr[-2000:]
