"""The rows of DESCRIBE and SHOW CREATE TABLE."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from shelduck.engine.types import field_type
from shelduck.errors import NewerFormat
from shelduck.model.tables.column_storage import storage_of
from shelduck.model.tables.computed import computed_of
from shelduck.model.tables.constraints import constraints_of, shown_checks
from shelduck.model.tables.keys import table_keys
from shelduck.model.tables.properties import AnalyzedColumn, analyzed_columns, shown_properties
from shelduck.model.tables.schema import Field, Path, Schema, path_text, with_paths
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.tables.view import ViewVersion
from shelduck.model.text.names import quote_name, quote_text, schema_names
from shelduck.model.types.data_types import type_text
from shelduck.rollups.rollup_plan import spec_of
from shelduck.text.ddl.render import create_table_text, key_clauses, partition_texts, sort_texts
from shelduck.text.tokens.parts import NamedTable

Row = tuple[str, str | None, str | None]
INDEX_COLUMNS = (
    "IndexName string, Field string, Type string, Null string, Key string, Default string,"
    " Extra string"
)
TypeChanges = Mapping[str, Sequence[Mapping[str, str]]]


def table_rows(table: TableVersion, changes: TypeChanges | None = None) -> list[Row]:
    """Return name, Spark type and comment of each column.

    With the type changes from `Table.type_changes`, they follow, as do ids and other details.
    """
    rows: list[Row] = [(f.name, field_type(f), table.comments.get(f.id)) for f in table.columns]
    found: dict[str, list[Row]] = {"Fields": _fields(table)} | sections(table)
    if changes is not None:
        found["Column Details"] = [
            (path_text(path), _details(field, path), table.comments.get(field.id))
            for path, field in with_paths(table.columns)
        ]
        found["Type Changes"] = [
            (path, _change_text(c), None) for path, some in changes.items() for c in some
        ]
        found["Detailed Table Information"] = [
            ("Database", table.schema.text, None),
            ("Table", table.name, None),
            ("Table Id", str(table.id), None),
            ("Table UUID", table.uuid, None),
            ("Location", table.path, None),
            ("Snapshot", str(table.snapshot.id), None),
            ("Schema Version", str(table.snapshot.schema_version), None),
            ("Comment", table.comments.get(None), None),
            ("Table Properties", _properties_text(table), None),
        ]
    return [*rows, *_titled(found)]


def _titled(found: Mapping[str, Sequence[Row]]) -> Iterator[Row]:
    """Yield the rows of sections, each behind its title; one without rows is left out."""
    for title, rows in found.items():
        if rows:
            yield from (("", "", ""), (f"# {title}", "", ""), *rows)


def sections(table: TableVersion) -> dict[str, list[Row]]:
    """Return what a table has besides its columns: the rows of each of its sections, by title."""
    constraints = constraints_of(table.properties, table.full_name)
    found: dict[str, list[Row]] = {
        "Keys": _numbered("Key", _key_texts(table)),
        "Partitioning": _numbered("Part", partition_texts(table)),
        "Sort Order": _numbered("Sort", sort_texts(table)),
        # Each with its name, as Databricks shows them.
        "Constraints": [
            (one.name, one.clause(table.columns) + " NOT VALID" * one.unproven, None)
            for one in constraints
        ],
        "Computed Columns": [
            (field.name, one.clause(table.columns), None)
            for one in computed_of(table.properties, table.full_name)
            if (field := table.columns.by_id(one.column)) is not None
        ],
        "Column Storage": [
            (path_text(path), str(one), None)
            for _, path, one in storage_of(table.properties, table.full_name).named(table.columns)
        ],
    }
    return {title: rows for title, rows in found.items() if rows}


def index_rows(indexes: Sequence[tuple[str, TableVersion]]) -> list[tuple[str, ...]]:
    """Return the columns of a table and its rollups as Doris' DESC t ALL prints them.

    An empty row stands between two of them.
    """
    rows: list[tuple[str, ...]] = []
    for name, table in indexes:
        if rows:
            rows.append(("",) * 7)
        keys = table_keys(table)
        for place, field in enumerate(table.columns):
            is_key = keys is not None and field.id in keys.columns
            how = None if keys is None else keys.aggregation(field.id)
            rows.append(
                (
                    name if place == 0 else "",
                    field.name,
                    type_text(field.type),
                    "Yes" if field.nullable else "No",
                    str(is_key).lower(),
                    field.default.text if field.default else "N/A",
                    "" if how is None else how.value,
                )
            )
    return rows


def column_rows(table: TableVersion, path: Path) -> list[tuple[str, str | None]]:
    """Return what DESCRIBE says of one column or nested field."""
    found = table.columns.get(path, table.full_name)
    known = analyzed_columns(table.properties, table.columns).get(found.id)
    return [
        ("col_name", path_text(path)),
        ("data_type", field_type(found)),
        ("comment", table.comments.get(found.id)),
        ("field_id", str(found.id)),
        ("ducklake_type", str(found.type)),
        ("nullable", str(found.nullable).lower()),
        ("initial_default", found.initial_default),
        ("default", found.default.text if found.default else None),
        *(() if known is None else _analyzed_rows(known)),
    ]


def _analyzed_rows(known: AnalyzedColumn) -> list[tuple[str, str | None]]:
    """Return what ANALYZE TABLE counted, under Spark's names."""
    numbers = {
        "distinct_count": known.distinct,
        "num_nulls": known.nulls,
        "avg_col_len": known.average,
        "max_col_len": known.longest,
        "analyzed_at_snapshot": known.snapshot,
    }
    return [(name, None if n is None else str(n)) for name, n in numbers.items()]


def view_rows(view: ViewVersion, columns: Sequence[Row], *, extended: bool = False) -> list[Row]:
    """Return name, Spark type and comment of each column, and with ``extended`` details."""
    if not extended:
        return list(columns)
    details: list[Row] = [
        ("Database", view.schema.text, None),
        ("View", view.name, None),
        ("Type", "VIEW", None),
        ("View Text", _view_text(view), None),
        ("Comment", view.definition.comment, None),
    ]
    return [*columns, *_titled({"Detailed View Information": details})]


def view_statement(
    view: ViewVersion, columns: Sequence[Row] | None = None, query: str | None = None
) -> str:
    """Return the statement that makes a view, with its query in Spark's words if it has them.

    ``columns`` are name, type and comment of all, if some have comments.
    """
    made = view.definition
    listed = columns or [(name, None, None) for name in made.columns]
    shown = [
        quote_name(name) + ("" if text is None else f" COMMENT {quote_text(text)}")
        for name, _, text in listed
    ]
    names = f" ({', '.join(shown)})" if shown else ""
    comment = "" if made.comment is None else f" COMMENT {quote_text(made.comment)}"
    return f"CREATE VIEW {view.full_name}{names}{comment} AS {query or _view_text(view)}"


def _view_text(view: ViewVersion) -> str:
    return view.definition.spark_sql or view.definition.sql


def pinned_rows(view: ViewVersion, shape: Schema, table: TableVersion) -> list[Row]:
    """Return name and Spark type of each column of a pinned view, and what it is pinned to."""
    pin = view.definition.pin
    assert pin is not None
    comments = view.definition.comments_of(shape.names)
    rows: list[Row] = [(f.name, field_type(f), c) for f, c in zip(shape, comments, strict=True)]
    pinned = [("Table", table.full_name, None), ("Schema Version", str(pin.snapshot), None)]
    return [*rows, *_titled({"Pinned Schema": pinned})]


def pinned_statement(view: ViewVersion, table: TableVersion) -> str:
    """Return the statement that makes a pinned view."""
    made = view.definition
    assert made.pin is not None
    comment = "" if made.comment is None else f" COMMENT {quote_text(made.comment)}"
    of = f"AS SCHEMA VERSION {made.pin.snapshot} OF {table.full_name}"
    return f"CREATE VIEW {view.full_name}{comment} {of}"


def create_statement(
    table: TableVersion, rollups: Sequence[TableVersion] = (), *, with_ids: bool = False
) -> str:
    """Return a CREATE TABLE statement that makes such a table, with its rollups.

    What has no clause there are statements behind it. ``with_ids`` adds the ids of its columns as
    comments.
    """
    name = NamedTable((*schema_names(table.schema.name), table.name))
    specs = [spec for found in rollups if (spec := spec_of(table, found)) is not None]
    return create_table_text(name, table, specs, with_ids=with_ids)


def _key_texts(table: TableVersion) -> list[str]:
    try:
        keys = table_keys(table)
    except NewerFormat as error:
        return [str(error)]
    return [] if keys is None else key_clauses(keys, table.columns).strip().split("\n")


def _change_text(change: Mapping[str, str]) -> str:
    inside = f"{change['fieldPath']}: " if "fieldPath" in change else ""
    return f"{inside}{change['fromType']} -> {change['toType']}"


def _properties_text(table: TableVersion) -> str:
    listed = (f"{k}={v}" for k, v in told_properties(table).items())
    return f"[{','.join(listed)}]"


def told_properties(table: TableVersion) -> dict[str, str]:
    """Return the properties that are shown, with CHECK constraints under Delta's names."""
    checks = shown_checks(table.properties, table.columns, table.full_name)
    return dict(sorted((shown_properties(table.properties, table.columns) | checks).items()))


def _numbered(word: str, texts: list[str]) -> list[Row]:
    return [(f"{word} {n}", text, None) for n, text in enumerate(texts)]


def _fields(table: TableVersion) -> list[Row]:
    """Return the fields of columns that have comments, by path, with their types."""
    return [
        (path_text(path), field_type(field), table.comments[field.id])
        for path, field in with_paths(table.columns)
        if len(path) > 1 and field.id in table.comments
    ]


def _details(field: Field, path: Path) -> str:
    told = [f"id {field.id}", str(field.type)]
    if not field.nullable and len(path) == 1:
        told.append("NOT NULL")
    if field.initial_default is not None:
        told.append(f"initial default {field.initial_default!r}")
    if field.default is not None:
        told.append(f"default {field.default.text!r}")
    return ", ".join(told)
