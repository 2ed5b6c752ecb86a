"""Which heavy modules a program has loaded when it ends."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("numpy", "pandas", "pyarrow", "pyspark", "sqlalchemy", "sqlglot")
_AT_THE_END = f"""
import atexit, sys
atexit.register(lambda: print(*(m for m in {HEAVY} if m in sys.modules)))
"""


def loaded_modules(program: str) -> list[str]:
    """Those of `HEAVY` that a Python program loads; it must succeed and tell no error."""
    run = [sys.executable, "-c", _AT_THE_END + program]
    found = subprocess.run(run, capture_output=True, text=True, check=True)
    assert found.stderr == ""
    return found.stdout.splitlines()[-1].split()


def loaded_by_commands(*commands: list[str]) -> list[str]:
    """The same of command lines, one after the other."""
    return loaded_modules(
        f"""
from shelduck.cli import main
for words in {list(commands)!r}:
    sys.argv = ["shelduck", *words]
    try:
        main()
    except SystemExit as ended:
        assert ended.code == 0
"""
    )
