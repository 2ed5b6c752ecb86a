"""``shelduck tables`` and ``history``: what the catalog says; no Spark starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from shelduck.cli.options import Catalog, Json, TableOrAll, print_rows

if TYPE_CHECKING:
    from shelduck.model.tables.table import Snapshot

TABLES_EXAMPLE = "Example: shelduck tables -c sqlite:///lake.db --schema sales"
HISTORY_EXAMPLE = "Example: shelduck history events -c sqlite:///lake.db --limit 20 --json"


def tables(
    catalog: Catalog,
    in_schema: Annotated[str | None, typer.Option("--schema", help="only its tables")] = None,
    json: Json = False,
) -> None:
    """List the tables of a lake."""
    from shelduck.cli.reading import reading

    with reading(catalog) as lake:
        rows = [{"schema": t.schema, "table": t.name} for t in lake.tables(in_schema)]
    print_rows(rows, ["schema", "table"], as_json=json)


def history(
    catalog: Catalog,
    table: TableOrAll = None,
    limit: Annotated[int | None, typer.Option(min=1, help="only so many, the newest")] = None,
    before: Annotated[int | None, typer.Option(help="only older than this snapshot")] = None,
    json: Json = False,
) -> None:
    """Show the snapshots of a lake, or those that changed one table."""
    from shelduck.cli.reading import reading

    with reading(catalog) as lake:
        found = lake.history(table, limit=limit, before=before)
    keys = ["snapshot", "time", "schema_version", "changes", "author", "message"]
    print_rows([_snapshot_row(s) for s in found], keys, as_json=json)


def _snapshot_row(found: Snapshot) -> dict[str, Any]:
    return {
        "snapshot": found.id,
        "time": found.time.isoformat(sep=" "),
        "schema_version": found.schema_version,
        "changes": found.changes_made,
        "author": found.author,
        "message": found.commit_message,
    }
