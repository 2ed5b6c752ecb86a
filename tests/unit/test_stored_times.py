"""SQLite compares the times of snapshots as texts, in each form in which writers store them."""

from __future__ import annotations

import operator
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from sqlalchemy import create_engine, select

from shelduck.ducklake.tables import snapshot

BASE = datetime(2026, 1, 31, 23, 59, 58, tzinfo=UTC)
MICROSECONDS = (0, 1, 10, 99_999, 100_000, 100_001, 120_000, 123_000, 123_456, 999_999, 1_000_000)
TIMES = [BASE + timedelta(microseconds=n) for n in MICROSECONDS]
COMPARED = (operator.lt, operator.le, operator.gt, operator.ge)


def _forms(time: datetime) -> set[str]:
    """Return the texts of a time: as DuckDB, ducklakepy and PostgreSQL write them."""
    whole, micros = f"{time:%Y-%m-%d %H:%M:%S}", f"{time:%f}"
    cut = micros.rstrip("0")
    fractions = {f".{micros}", f".{cut}" if cut else ""}
    if micros.endswith("000"):
        fractions.add(f".{micros[:3]}")
    return {whole + f + offset for f, offset in product(fractions, ("", "+00"))}


STORED = [(text, time) for time in TIMES for text in sorted(_forms(time))]


@pytest.fixture(scope="module")
def stored():
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        connection.exec_driver_sql(
            "CREATE TABLE ducklake_snapshot (snapshot_id BIGINT, snapshot_time VARCHAR)"
        )
        rows = [(n, text) for n, (text, _) in enumerate(STORED)]
        connection.exec_driver_sql("INSERT INTO ducklake_snapshot VALUES (?, ?)", rows)
        yield connection
    engine.dispose()


@pytest.mark.parametrize("compare", COMPARED, ids=lambda compare: compare.__name__)
def test_a_stored_time_is_compared_as_the_time_that_it_is(stored, compare):
    for asked in TIMES:
        query = select(snapshot.c.snapshot_id).where(compare(snapshot.c.snapshot_time, asked))
        chosen = {STORED[n] for n in stored.execute(query).scalars()}
        assert chosen == {(text, time) for text, time in STORED if compare(time, asked)}, asked
