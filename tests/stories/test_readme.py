"""The code of README.md, executed as a reader would."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def python_blocks(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def test_the_readme_shows_python_code():
    assert python_blocks(README.read_text())


def test_the_code_of_the_readme_runs(tmp_path, monkeypatch, spark):
    code = "\n".join(python_blocks(README.read_text()))
    monkeypatch.chdir(tmp_path)

    exec(compile(code, str(README), "exec"), {})
