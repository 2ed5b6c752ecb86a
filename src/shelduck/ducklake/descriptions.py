"""What describes a table, as rows of the catalog, and back: columns, tags, keys, options.

And schemas, views and macros.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import Any, TypeVar

import sqlalchemy as sa

from shelduck.ducklake import tables
from shelduck.ducklake.checked import RESTORE, two_rows
from shelduck.ducklake.rules import COUNTED
from shelduck.errors import CorruptLake, InvalidRequest
from shelduck.model.tables.options import OptionSetting, Scope
from shelduck.model.tables.partition import parse_sort_key
from shelduck.model.tables.schema import (
    NO_DEFAULT,
    ColumnRow,
    Default,
    Field,
    FieldId,
    Kind,
    Schema,
    SchemaId,
)
from shelduck.model.tables.table_version import PartitionColumn, SchemaInfo
from shelduck.model.tables.view import (
    PINNED,
    SPARK_SQL,
    STORED_PIN,
    UNKNOWN,
    MacroBody,
    MacroParameter,
    MacroVersion,
    ViewDefinition,
)
from shelduck.model.text.names import double_quoted
from shelduck.model.types.data_types import Leaf, ducklake_type

_KINDS = {kind.value: kind for kind in Kind}
_CHILDREN = {Kind.LIST: 1, Kind.MAP: 2}


def schema_of(rows: Iterable[Any], table: str) -> Schema:
    """Return the columns that the rows of one snapshot describe, or raise CorruptLake."""
    below: dict[int | None, list[Any]] = defaultdict(list)
    ids: set[int] = set()
    for row in rows:
        if row.column_id in ids:
            raise CorruptLake(f"{table} has column id {row.column_id} twice in one snapshot")
        ids.add(row.column_id)
        below[row.parent_column].append(row)
    for parent, children in below.items():
        if parent is not None and parent not in ids:
            names = ", ".join(repr(r.column_name) for r in children)
            raise CorruptLake(f"{table} has {names} below column id {parent}, which does not exist")
        counts = Counter(row.column_name.lower() for row in children)
        twice = next((name for name, count in counts.items() if count > 1), None)
        if twice is not None:
            raise CorruptLake(f"{table} has two columns {twice!r} in one snapshot")
    found = Schema(_fields(below, None, table))
    if len(list(found.walk())) != len(ids):
        lost = sorted(ids - {f.id for f in found.walk()})
        raise CorruptLake(f"{table} has column id {lost[0]} below itself")
    return found


def _fields(
    below: Mapping[int | None, list[Any]], parent: int | None, table: str
) -> tuple[Field, ...]:
    rows = sorted(below.get(parent, ()), key=lambda r: (r.column_order or 0, r.column_id))
    return tuple(_field(row, _fields(below, row.column_id, table), table) for row in rows)


def _field(row: Any, children: tuple[Field, ...], table: str) -> Field:
    found = column_of(row, table).field
    shape = found.shape
    wanted = _CHILDREN.get(shape, len(children)) if isinstance(shape, Kind) else 0
    if len(children) != wanted or (isinstance(shape, Kind) and not children):
        raise CorruptLake(
            f"column {row.column_name!r} of {table} has type {row.column_type}, but"
            f" {len(children)} child columns"
        )
    return replace(found, children=children) if children else found


def column_of(row: Any, table: str) -> ColumnRow:
    """Return the column of one row, or raise CorruptLake; ``table`` is the name of its table."""
    found = Field(
        FieldId(row.column_id),
        row.column_name,
        _shape(row, table),
        # DuckLake writes false on nested rows, where it means nothing.
        nullable=row.nulls_allowed is not False or row.parent_column is not None,
        initial_default=row.initial_default,
        default=_default(row),
        order=row.column_id if row.column_order is None else row.column_order,
    )
    return ColumnRow(found, row.parent_column)


def _shape(row: Any, table: str) -> Leaf | Kind:
    kind = _KINDS.get(row.column_type.lower())
    if kind is not None:
        return kind
    try:
        return ducklake_type(row.column_type)
    except InvalidRequest as error:
        raise CorruptLake(f"column {row.column_name!r} of {table}: {error}") from error


def _default(row: Any) -> Default | None:
    if row.default_value is None or row.default_value == NO_DEFAULT:
        return None
    return Default(row.default_value, literal=row.default_value_type != "expression")


def rows_of(table_id: int, columns: Iterable[ColumnRow]) -> list[dict[str, Any]]:
    """Return the rows of columns."""
    return [
        {
            "table_id": table_id,
            "column_id": f.id,
            "column_order": f.order,
            "column_name": f.name,
            "column_type": str(f.shape),
            "initial_default": f.initial_default,
            "default_value": f.default.text if f.default else NO_DEFAULT,
            "nulls_allowed": f.nullable,
            "parent_column": parent,
            "default_value_type": _default_type(f),
            "default_value_dialect": "duckdb",
        }
        for f, parent in columns
    ]


def _default_type(f: Field) -> str:
    if not f.is_leaf:
        return ""
    return "expression" if f.default is not None and not f.default.literal else "literal"


def begin_under(begins: Iterable[Any], schema_version: int) -> int | None:
    """Return the snapshot that gave a table its columns under a schema version.

    ``begins`` are rows of schema versions of the table and the snapshots in which they began.
    """
    return max((b for v, b in begins if v <= schema_version), default=None)


def rows_at(versions: Iterable[Any], snapshot: int) -> list[Any]:
    """Return the versions of columns that a snapshot sees."""
    return [
        row
        for row in versions
        if row.begin_snapshot <= snapshot
        and (row.end_snapshot is None or row.end_snapshot > snapshot)
    ]


Row = Mapping[str, Any]
Rows = Iterator[tuple[sa.Table, Row]]
"""The rows of an object, each with its table; of those with snapshots, without them."""
_Key = TypeVar("_Key")
_SCOPES: Mapping[str | None, Scope] = {one.value: one for one in Scope}


@dataclass(frozen=True, slots=True)
class Described:
    """What a snapshot says of a table beside its columns.

    Comments are by field id, the table's own by None. RESET PARTITIONED BY leaves a spec without
    keys, to which new files do not refer.
    """

    comments: dict[FieldId | None, str]
    properties: dict[str, str]
    partition_id: int | None
    partition: tuple[PartitionColumn, ...]
    sort: tuple[str, ...]
    options: Sequence[OptionSetting]


def tag_rows(owner: int, tags: Mapping[str, str]) -> Rows:
    """Return the rows of the tags of a table, a view or a macro."""
    for key, value in tags.items():
        yield tables.tag, {"object_id": owner, "key": key, "value": value}


def comment_rows(table: int, comments: Mapping[FieldId, str]) -> Rows:
    """Return the rows of the comments on columns of a table."""
    for number, text in comments.items():
        row = {"table_id": table, "column_id": number, "key": "comment", "value": text}
        yield tables.column_tag, row


def partition_rows(table: int, number: int, keys: Iterable[PartitionColumn]) -> Rows:
    """Return the rows of a partitioning with this id."""
    mine = {"partition_id": number, "table_id": table}
    yield tables.partition_info, mine
    for at, key in enumerate(keys):
        told = {"column_id": key.column_id, "transform": key.transform}
        yield tables.partition_column, {**mine, "partition_key_index": at, **told}


def sort_rows(table: int, number: int, keys: Iterable[str]) -> Rows:
    """Return the rows of a sort order with this id."""
    mine = {"sort_id": number, "table_id": table}
    yield tables.sort_info, mine
    for at, key in enumerate(map(parse_sort_key, keys)):
        told = {"sort_direction": key.direction, "null_order": key.null_order}
        told |= {"expression": key.expression, "dialect": "duckdb"}
        yield tables.sort_expression, {**mine, "sort_key_index": at, **told}


def sort_key_of(row: Any) -> str:
    """Return a key of a sort order as `parse_sort_key` reads it."""
    return f"{row.expression} {row.sort_direction} {row.null_order.replace('_', ' ')}"


def description_of(found: Mapping[str, Sequence[Any]], snapshot: int, table: str) -> Described:
    """Return what rows by the names of `shelduck.catalog.read.read.TRAITS` say about a table.

    ``table`` is its name. Raises CorruptLake for rows that contradict each other.
    """
    for what, source in (("table", tables.table), ("schema", tables.schema)):
        if len(found[what]) > 1:
            raise two_rows(source, table, snapshot)
    tags = _distinct(((r.key, r.value) for r in found["tags"]), tables.tag, table, snapshot)
    of_columns = ((FieldId(r.column_id), r.value) for r in found["comments"])
    comments: dict[FieldId | None, str] = {
        **({None: tags.pop("comment")} if "comment" in tags else {}),
        **_distinct(of_columns, tables.column_tag, table, snapshot),
    }
    partition = _in_order(found["partition"], tables.partition_info, table, snapshot)
    return Described(
        comments,
        tags,
        partition[0].partition_id if partition else None,
        tuple(PartitionColumn(FieldId(r.column_id), r.transform) for r in partition),
        tuple(map(sort_key_of, _in_order(found["sort"], tables.sort_info, table, snapshot))),
        settings_of(found["options"]),
    )


def _distinct(
    pairs: Iterable[tuple[_Key, str | None]], source: sa.Table, table: str, snapshot: int
) -> dict[_Key, str]:
    """Return the values of tags that have one, by their keys or what has them."""
    found: dict[_Key, str | None] = {}
    for key, value in pairs:
        if found.setdefault(key, value) != value:
            told = f"{key!r}" if isinstance(key, str) else f"the comment on column id {key}"
            raise two_rows(source, f"{told} of {table}", snapshot)
    return {key: value for key, value in found.items() if value is not None}


def _in_order(rows: Iterable[Any], info: sa.Table, table: str, snapshot: int) -> list[Any]:
    """Return the keys of a table's partitioning or sort order in their order."""
    keys, number, at = next(rule for rule in COUNTED if rule[1] in info.c)
    place = attrgetter(at)
    found = sorted(rows, key=place)
    if len(set(map(attrgetter(number), found))) > 1:
        raise two_rows(info, table, snapshot)
    places, wanted = list(map(place, found)), list(range(len(found)))
    if places != wanted:
        raise CorruptLake(
            f"ducklake_{keys} has the keys {places} of {table}, expected {wanted}; {RESTORE}"
        )
    return found


def settings_of(rows: Iterable[Any]) -> list[OptionSetting]:
    """Return the options that rows set; CorruptLake for two values of one."""
    found: dict[tuple[Any, ...], OptionSetting] = {}
    for made in (setting_of(row) for row in rows):
        if found.setdefault((made.name, made.scope, made.scope_id), made) != made:
            raise CorruptLake(
                f"ducklake_metadata has two values of {made.name!r} for one scope; delete one"
            )
    return list(found.values())


def setting_of(row: Any) -> OptionSetting:
    """Return the option that a row of ``ducklake_metadata`` sets, or raise CorruptLake."""
    scope = row.scope or None
    if (scope is None) != (row.scope_id is None):
        raise CorruptLake(
            f"ducklake_metadata has {row.key!r} for scope {row.scope!r} with scope_id"
            f" {row.scope_id!r}; {RESTORE}"
        )
    return OptionSetting(row.key, row.value, _SCOPES[scope], row.scope_id)


VIEW_TAGS = ("comment", SPARK_SQL, PINNED)
"""The keys of the tags of a view."""
_NAME = re.compile(r'"((?:[^"]|"")*)"\s*(?:,\s*|$)')


def schema_row(
    number: int, schema: SchemaInfo, unique: str, parent: SchemaId | None, path: str
) -> Row:
    """Return the row of a schema; ``path`` is below the lake's."""
    return {
        "schema_id": number,
        "schema_uuid": unique,
        "schema_name": schema.own_name,
        "path": path,
        "path_is_relative": True,
        "parent_schema_id": parent,
    }


def view_rows(number: int, schema: SchemaId, name: str, unique: str, made: ViewDefinition) -> Rows:
    """Return the rows of a view and its tags; `column_comment_rows` has those of its columns."""
    row = {"view_id": number, "view_uuid": unique, "schema_id": schema, "view_name": name}
    text = {"dialect": "duckdb", "sql": made.sql, "column_aliases": column_names_text(made.columns)}
    yield tables.view, {**row, **text}
    pin = None if made.pin is None else STORED_PIN.write(made.pin)
    tags = {SPARK_SQL: made.spark_sql, "comment": made.comment, PINNED: pin}
    yield from tag_rows(number, {key: text for key, text in tags.items() if text is not None})


def column_comment_rows(
    source: sa.Table, view: int, comments: Iterable[tuple[str, str | None]]
) -> Rows:
    """Return the rows of comments on columns of a view; one without a text has a row too."""
    for name, text in comments:
        yield source, {"view_id": view, "column_name": name, "key": "comment", "value": text}


def definition_of(row: Any, tags: Iterable[Any]) -> ViewDefinition:
    """Return a view's definition; ``tags`` are its own, and the comments on named columns."""
    own: dict[str, str] = {}
    comments: list[tuple[str, str]] = []
    for tag in tags:
        if tag.column_name is None:
            own[tag.key] = tag.value
        elif tag.value is not None:
            comments.append((tag.column_name, tag.value))
    return ViewDefinition(
        row.sql,
        column_names(row.column_aliases),
        own.get(SPARK_SQL),
        own.get("comment"),
        STORED_PIN.read(own[PINNED], f"view {row.view_name}") if PINNED in own else None,
        tuple(sorted(comments)),
    )


def column_names(text: str | None) -> tuple[str, ...]:
    """Return the names in the catalog's text, quoted and joined by commas; none for an empty one.

    >>> column_names('"x","y"')
    ('x', 'y')
    """
    names: list[str] = []
    at = 0
    while text and at < len(text):
        match = _NAME.match(text, at)
        if match is None:
            raise CorruptLake(f"cannot parse column_aliases of a view: {text!r}")
        names.append(match[1].replace('""', '"'))
        at = match.end()
    return tuple(names)


def column_names_text(names: tuple[str, ...]) -> str:
    """Return names in the catalog's form."""
    return ",".join(double_quoted(n) for n in names)


def macro_rows(number: int, schema: SchemaId, macro: MacroVersion) -> Rows:
    """Return the rows of a macro, its bodies and their parameters, and Spark's texts of bodies."""
    mine: Row = {"macro_id": number}
    yield tables.macro, {**mine, "schema_id": schema, "macro_name": macro.name}
    for at, body in enumerate(macro.bodies):
        text = {"dialect": body.dialect, "sql": body.sql, "type": macro.kind.value}
        yield tables.macro_impl, {**mine, "impl_id": at, **text}
        for place, parameter in enumerate(body.parameters):
            has_default = parameter.default is not None
            yield (
                tables.macro_parameters,
                {
                    **mine,
                    "impl_id": at,
                    "column_id": place,
                    "parameter_name": parameter.name,
                    "parameter_type": parameter.type,
                    # DuckLake's form of no default.
                    "default_value": parameter.default if has_default else "NULL",
                    "default_value_type": parameter.default_type if has_default else UNKNOWN,
                },
            )
    texts = {_spark_key(at): body.spark_sql for at, body in enumerate(macro.bodies)}
    yield from tag_rows(number, {key: text for key, text in texts.items() if text is not None})


def bodies_of(rows: Iterable[Any], tags: Mapping[tuple[int, str], str]) -> tuple[MacroBody, ...]:
    """Return the bodies of a macro; each row is one with a parameter, or with NULL for none.

    ``tags`` are the values of tags by the id of their macro and their key.
    """
    bodies = []
    for number, group in groupby(rows, key=lambda r: r.impl_id):
        parts = list(group)
        body = MacroBody(
            tuple(_parameter(row) for row in parts if row.parameter_name is not None),
            parts[0].sql,
            tags.get((parts[0].macro_id, _spark_key(number))),
            parts[0].dialect,
        )
        bodies.append(body)
    return tuple(bodies)


def _parameter(row: Any) -> MacroParameter:
    default = row.default_value if row.default_value_type != UNKNOWN else None
    return MacroParameter(row.parameter_name, row.parameter_type, default, row.default_value_type)


def _spark_key(number: int) -> str:
    """Return the key of the tag with Spark's text of a macro's body of this number."""
    return f"{SPARK_SQL}.{number}"
