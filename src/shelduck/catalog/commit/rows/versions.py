"""Rows with a first and a last snapshot: a commit ends what differs, and begins what is new."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cache
from typing import Any

import sqlalchemy as sa

from shelduck.catalog.commit.draft import Draft
from shelduck.catalog.read.queries import live
from shelduck.ducklake.traits import Row


def end(draft: Draft, source: sa.Table, **of: Collection[Any]) -> int:
    """End the live rows whose columns have some of these values, and return how many.

    One statement, none if a column has no values.
    """
    if not all(of.values()):
        return 0
    given = {f"in_{name}": list(values) for name, values in of.items()}
    return draft.connection.execute(_ending(source, *of), {**given, "ended": draft.id}).rowcount


def begin(draft: Draft, rows: Iterable[tuple[sa.Table, Row]]) -> None:
    """Insert rows, which begin in this snapshot if they have snapshots; one statement a table."""
    found: dict[sa.Table, list[Row]] = {}
    begun = {"begin_snapshot": draft.id, "end_snapshot": None}
    for table, row in rows:
        whole = {**row, **begun} if "end_snapshot" in table.c else row
        found.setdefault(table, []).append(whole)
    for table, some in found.items():
        draft.insert(table, some)


def renew(draft: Draft, source: sa.Table, by: str, rows: Iterable[tuple[Row, Row]]) -> None:
    """End live rows, and begin the same with other values; two statements.

    Each is a row with all columns that ``source`` has in the lake's version, and the new values.
    ``by`` is the column that tells the rows apart.
    """
    known = draft.format.table(source).c.keys()
    new = [{name: row[name] for name in known} | {**values} for row, values in rows]
    end(draft, source, **{by: [row[by] for row in new]})
    begin(draft, ((source, row) for row in new))


@cache
def _ending(source: sa.Table, *keys: str) -> sa.Update:
    """Return the statement that ends live rows whose ``keys`` are in the lists ``in_…``.

    The snapshot is ``ended``.
    """
    chosen = [source.c[key].in_(sa.bindparam(f"in_{key}", expanding=True)) for key in keys]
    return sa.update(source).where(*chosen, live(source)).values(end_snapshot=sa.bindparam("ended"))
