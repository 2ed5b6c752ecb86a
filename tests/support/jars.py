"""JARs that tests give to Spark: which they are, and how they come from Maven Central.

`make jars` runs this module, and `make test` does for those of S3 alone. Ivy, which Spark brings
along, fetches what jars.lock names.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pyspark
import pytest

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "jars.lock"
FOLDER = ROOT / ".jars"


@dataclass(frozen=True)
class Jar:
    """One line of jars.lock; ``user`` is the tests that need it."""

    digest: str
    user: str
    package: str

    @property
    def path(self) -> Path:
        """Where it is kept."""
        group, artifact, version = self.package.split(":")
        return FOLDER / f"{group}_{artifact}-{version}.jar"

    @property
    def is_right(self) -> bool:
        """True when the file is there and the one that was locked."""
        if not self.path.is_file():
            return False
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == self.digest

    def is_another_of(self, other: Jar) -> bool:
        """Whether only the versions differ."""
        return self.package.rpartition(":")[0] == other.package.rpartition(":")[0]


def locked(user: str | None = None) -> list[Jar]:
    """The JARs of some tests, or all, in the order of jars.lock."""
    lines = (line for line in LOCK.read_text().splitlines() if not line.startswith("#"))
    return [jar for line in lines if user in (None, (jar := Jar(*line.split())).user)]


def fetch(jars: list[Jar]) -> None:
    """Have Ivy fetch some JARs in one run, without what they depend on."""
    (ivy,) = Path(pyspark.__path__[0], "jars").glob("ivy-*.jar")
    home = os.environ.get("JAVA_HOME")
    # Two that fetch at once do not write into each other's files.
    with TemporaryDirectory(prefix="cache-", dir=FOLDER) as cache:
        wanted = Path(cache, "ivy.xml")
        wanted.write_text(_module(jars))
        command = [
            *(f"{home}/bin/java" if home else "java", "-jar", str(ivy), "-ivy", str(wanted)),
            *("-types", "jar", "-cache", cache),
            *("-retrieve", f"{FOLDER}/[organisation]_[artifact]-[revision].[ext]"),
        ]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    if not all(jar.is_right for jar in jars):
        print(done.stdout[-2000:], done.stderr[-2000:], file=sys.stderr)  # noqa: T201 - a script


def _module(jars: list[Jar]) -> str:
    """Ivy's description of a module that depends on the JARs alone.

    Two versions of one artifact stay apart, since each has a configuration of its own.
    """
    named = [(f"jar{n}", *jar.package.split(":")) for n, jar in enumerate(jars)]
    configurations = "".join(f'<conf name="{name}"/>' for name, *_ in named)
    dependencies = "".join(
        f'<dependency org="{group}" name="{artifact}" rev="{version}" transitive="false"'
        f' conf="{name}->default"/>'
        for name, group, artifact, version in named
    )
    return (
        '<ivy-module version="2.0"><info organisation="shelduck" module="tests"/>'
        f"<configurations>{configurations}</configurations>"
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )


def s3_settings() -> dict[str, str]:
    """What a local Spark is told so that it has the connector for S3.

    Without the JARs a skip, or in CI a failure.
    """
    jars = locked("s3")
    missing = [jar.package for jar in jars if not jar.is_right]
    if missing:
        why = f"not fetched from Maven Central: {', '.join(missing)}"
        pytest.fail(why) if runs_in_ci() else pytest.skip(why)
    # Spark would copy what it gets as spark.jars.
    return {"spark.driver.extraClassPath": os.pathsep.join(str(jar.path) for jar in jars)}


def runs_in_ci() -> bool:
    """Whether no test may be left out because something is missing."""
    return os.environ.get("CI", "") not in ("", "0", "false")


def main(user: str | None = None) -> None:
    """Fetch what is missing, for some tests or all; without Maven Central only CI fails."""
    FOLDER.mkdir(exist_ok=True)
    missing = [jar for jar in locked(user) if not jar.is_right]
    if missing:
        print(f"fetching {len(missing)} JARs")  # noqa: T201 - a script
        fetch(missing)
    wrong = [jar.package for jar in missing if not jar.is_right]
    if wrong:
        print(f"not fetched, or not what jars.lock says: {', '.join(wrong)}")  # noqa: T201
        sys.exit(runs_in_ci())


if __name__ == "__main__":
    main(*sys.argv[1:])
