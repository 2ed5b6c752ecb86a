"""Each instant in SQL that we write has its offset: no time zone of a session changes it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import jinja2
import pytest

import shelduck

ROOT = Path(__file__).parents[2]
MACROS = ROOT / "integrations/dbt/dbt/include/shelduck/macros"
INSTANT = re.compile(r"\bTIMESTAMP(?:_LTZ|TZ)? ?'([^']*)'", re.IGNORECASE)
OFFSET = re.compile(r"(Z|[+-]\d\d:\d\d)$")
# Parts of our code that write the offset.
COMPUTED = {
    "{found}:00",
    "{text}:00",
    "{value.astimezone(UTC).isoformat(sep=",
    "{_moment(relation.timestamp, zone)}",
}
# Statements of others, as they write them.
THEIRS = ROOT / "docs/guides/your-statement-ours.md"


def texts():
    for folder in ("src", "integrations", "examples", "docs/guides", "README.md"):
        found = ROOT / folder
        for path in [found] if found.is_file() else sorted(found.rglob("*")):
            if path.suffix in (".py", ".sql", ".md", ".html", ".js", ".java", ".yml"):
                yield path


def batch(column):
    """What the macro of a dbt model says of its batch of 2 January 2024."""
    source = (MACROS / "materializations/incremental.sql").read_text(encoding="utf-8")
    [macro] = re.findall(r"{% macro shelduck_batch.*?{% endmacro %}", source, re.DOTALL)
    made = jinja2.Environment(extensions=["jinja2.ext.do"], autoescape=False)
    days = [datetime(2024, 1, day, tzinfo=UTC) for day in (2, 3)]
    known = {
        "return": lambda text: text,
        "adapter": SimpleNamespace(quote=lambda name: f"`{name}`"),
        "config": {"event_time": column},
        "model": SimpleNamespace(
            batch=SimpleNamespace(event_time_start=days[0], event_time_end=days[1])
        ),
    }
    return made.from_string(macro + "{{ shelduck_batch() }}").render(known).strip()


def test_each_instant_that_we_write_has_an_offset():
    without = [
        f"{path.relative_to(ROOT)}: {text}"
        for path in texts()
        if path != THEIRS
        for text in INSTANT.findall(path.read_text(encoding="utf-8"))
        if text != "..." and text not in COMPUTED and not OFFSET.search(text)
    ]
    assert without == []


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Los_Angeles"])
def test_a_batch_of_dbt_is_a_day_of_utc_in_each_session(spark, tmp_path, zone):
    before = spark.conf.get("spark.sql.session.timeZone")
    with shelduck.connect(f"sqlite:///{tmp_path}/lake.db", f"{tmp_path}/data/", spark) as lake:
        lake.sql("CREATE TABLE t (id INT, at TIMESTAMP, local TIMESTAMP_NTZ, day DATE)")
        for n, when in enumerate(("01 20:00:00", "02 00:00:00", "02 23:00:00", "03 00:00:00")):
            at = f"2024-01-{when}"
            lake.sql(f"INSERT INTO t VALUES ({n}, '{at}Z', '{at}', '{at[:10]}')")
        try:
            spark.conf.set("spark.sql.session.timeZone", zone)
            for column in ("at", "local", "day"):
                with lake.transaction() as tx:
                    where = batch(column)
                    tx.sql(f"INSERT INTO t REPLACE WHERE {where} SELECT * FROM t WHERE false")
                    found = tx.sql("SELECT id FROM t ORDER BY id").collect()
                    tx.rollback()
                assert [row.id for row in found] == [0, 3], (column, where)
        finally:
            spark.conf.set("spark.sql.session.timeZone", before)
