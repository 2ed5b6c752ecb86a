"""A column that becomes narrower because the statistics of all files prove it: no file is read."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import shelduck
from benchmarks.alter import COLUMNS, fill
from benchmarks.catalogs import KINDS, counting_statements, durable_postgres, fresh_url
from benchmarks.harness import Section, Timing, at_most, scratch, timed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.postgres import PostgresServer

SIZES, QUICK_SIZES = (1_000, 100_000), (10, 1_000)
_ABOUT = (
    "`ALTER TABLE t ALTER COLUMN id TYPE INT` of a BIGINT column. The bounds of all files"
    " fit, so the change is a commit of metadata, without Spark. Between two runs the column"
    " is widened again."
)


def run(*, quick: bool) -> Section:
    header = ("catalog, files", "seconds", "statements")
    section = Section("A change that bounds prove", _ABOUT, header)
    seconds: dict[str, float] = {}
    with scratch("proven") as folder, durable_postgres() as server:
        for kind in KINDS:
            sizes = QUICK_SIZES if quick else SIZES
            for files in sizes:
                name = f"{kind}, {files:,} files"
                timing, statements = _measured(kind, files, folder, server, 2 if quick else 7)
                rows = section.rows if files == sizes[-1] else section.aside
                rows.append((name, str(timing), str(statements)))
                seconds[name] = timing.median
    section.targets = [at_most(1.0, seconds, "seconds")]
    return section


def _measured(
    kind: str, files: int, folder: Path, server: PostgresServer, runs: int
) -> tuple[Timing, int]:
    with ExitStack() as stack:
        url = stack.enter_context(fresh_url(kind, folder, server, f"proven-{files}"))
        with shelduck.connect(url, f"{folder}/proven-{files}/") as lake:
            lake.create_table("t", COLUMNS)
        fill(url, files)
        table = stack.enter_context(shelduck.connect(url)).table("t")

        def narrow() -> None:
            assert not isinstance(
                table.alter(shelduck.change_type("id", "int")), shelduck.SchemaChangeJob
            )

        seconds = []
        for _ in range(runs):
            seconds.append(timed(narrow))
            table.alter(shelduck.change_type("id", "bigint"))
        with counting_statements() as seen:
            narrow()
        return Timing(tuple(seconds)), seen.total()
