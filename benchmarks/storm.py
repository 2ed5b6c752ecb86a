"""Appends that cross ALTERs, beside DuckDB's extension doing the same alone."""

from __future__ import annotations

from benchmarks.catalogs import durable_postgres
from benchmarks.harness import Section, Target, scratch
from benchmarks.session import session
from tests.support.storm import ROWS, Tally, storm

SECONDS, QUICK_SECONDS = 60, 6
ALTERS, QUICK_ALTERS = 200, 20
WRITERS = 4
_ABOUT = (
    "{writers} writers append {rows} rows at a time, as files, for {seconds} seconds to one"
    " table of a lake in PostgreSQL, while another process alters it up to {alters} times: a"
    " column is added, renamed, widened, gets another default, and is dropped. All are Shelduck"
    " (four threads over one Spark session), or all DuckDB's extension (four connections). A"
    " write that fails is not repeated, an ALTER is. Afterwards every row of a write that"
    " succeeded is there once, and no other."
)


def run(*, quick: bool) -> Section:
    seconds, alters = (QUICK_SECONDS, QUICK_ALTERS) if quick else (SECONDS, ALTERS)
    about = _ABOUT.format(writers=WRITERS, rows=ROWS, seconds=seconds, alters=alters)
    header = ("engine", "writes", "committed", "failed", "of all", "ALTERs", "failed")
    section = Section("Storm", about, header)
    found: dict[str, Tally] = {}
    with scratch("storm") as folder, session(folder) as spark, durable_postgres() as server:
        for engine in ("shelduck", "duckdb"):
            with server.fresh_database() as url:
                found[engine] = storm(
                    engine,
                    url,
                    folder / engine,
                    spark=spark,
                    writers=WRITERS,
                    seconds=seconds,
                    alters=alters,
                )
            tally = found[engine]
            part = len(tally.failed) / max(1, tally.tried)
            counts = (tally.tried, sum(tally.landed.values()), len(tally.failed))
            cells = (
                *(f"{n:,}" for n in counts),
                f"{part:.1%}",
                str(tally.altered),
                str(tally.alters_failed),
            )
            section.rows.append((engine, *cells))
    ours = found["shelduck"].failed
    section.targets = [
        Target("no write of Shelduck fails", f"{len(ours)} {ours[:1] or ''}".strip(), not ours)
    ]
    return section
