"""Lints the bridge's Java with javac: ``python -m tests.support.java_lint``.

Janino compiles these sources and ignores types of collections; javac compares them. It does not
take classes that extend some of Scala, so errors about these are left out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.processes import SPARK_HOME

SOURCES = Path("src/shelduck/engine/bridge/java")
# Left out: Janino needs raw types and casts; older versions of Spark have only the older methods.
_LINT = "-Xlint:all,-cast,-deprecation,-path,-rawtypes,-serial,-unchecked"
# What javac says of types and exceptions that only Scala knows.
_SCALA = (
    "concrete.inheritance.conflict",
    "does.not.override.abstract",
    "override.incompatible.ret",
    "package$AttributeSeq",
    "unreported.exception",
)


def main() -> None:
    """Print what javac finds, and exit with 1 if there is something."""
    home = os.environ.get("JAVA_HOME")
    javac = shutil.which(f"{home}/bin/javac" if home else "javac")
    if javac is None:
        sys.stdout.write("No javac found, so Java is not linted; install a JDK of 17 or newer\n")
        sys.exit("CI" in os.environ)
    with tempfile.TemporaryDirectory() as classes:
        found = complaints(javac, Path(classes), sorted(SOURCES.rglob("*.java")))
    sys.stdout.write("".join(f"{line}\n" for line in found))
    sys.exit(bool(found))


def complaints(javac: str, classes: Path, sources: list[Path]) -> list[str]:
    """Return a line for each error or warning."""
    command = [javac, _LINT, "-proc:none", "-d", str(classes), "-cp", f"{SPARK_HOME}/jars/*"]
    # All of them, those behind an error too, with a name for each kind.
    every = ["-Xmaxerrs", "1000", "-Xmaxwarns", "1000", "-XDshould-stop.ifError=FLOW"]
    run = subprocess.run(
        [*command, *every, "-XDrawDiagnostics", *map(str, sources)],
        check=False,
        capture_output=True,
        text=True,
    )
    lines = [line for line in run.stderr.splitlines() if ": compiler." in line]
    if not lines and run.returncode:
        return run.stderr.splitlines()
    return [line for line in lines if not any(kind in line for kind in _SCALA)]


if __name__ == "__main__":
    main()
