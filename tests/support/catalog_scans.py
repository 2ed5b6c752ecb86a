"""How SQLite finds the rows that statements ask for."""

from __future__ import annotations

from contextlib import contextmanager

from sqlalchemy import Engine, event


def scans_of(connection, statement, values, large):
    """The lines of a statement's plan that read a whole table of ``large``, or build an index."""
    if not statement.startswith(("SELECT", "DELETE", "UPDATE", "WITH")):
        return []
    asking = connection.connection.cursor()
    plan = asking.execute(f"EXPLAIN QUERY PLAN {statement}", values).fetchall()
    lines = [(row[3], *row[3].split()) for row in plan]
    return [
        line
        for line, verb, of, *more in lines
        if of in large and (verb == "SCAN" or "AUTOMATIC" in more)
    ]


@contextmanager
def noted_scans(large):
    """Collects the scans of all statements, each with what it asks."""
    found = []

    def executed(connection, _cursor, statement, values, _context, many):
        if not many:
            found.extend(
                (line, statement) for line in scans_of(connection, statement, values, large)
            )

    event.listen(Engine, "after_cursor_execute", executed)
    try:
        yield found
    finally:
        event.remove(Engine, "after_cursor_execute", executed)
