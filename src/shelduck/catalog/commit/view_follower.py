"""Views and macros while the names of what they read change: new texts, and what cannot follow.

The texts mean the tables and columns that have the names before the change. Nothing is written.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from shelduck.ducklake.descriptions import column_names
from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.changes.change import AlterTable, DependentViews, RenameView
from shelduck.model.tables.schema import Field, FieldId
from shelduck.model.tables.table_version import DEFAULT_SCHEMA, SchemaInfo, TableVersion
from shelduck.model.tables.view import MacroBody, MacroKind, MacroVersion
from shelduck.model.text.names import INSIDE, quote_name, schema_names, schema_text
from shelduck.text.query.followed import Followed, followed
from shelduck.text.query.names_read import ColumnNames, Columns, ReadTable

Row = dict[str, Any]
_Name = tuple[str, str]


class Tables(Protocol):
    """What names mean before a change and after it."""

    def before(self, schema: str, name: str) -> TableVersion | None:
        """Return the table that has a name before the change."""

    def after(self, table: TableVersion) -> TableVersion | None:
        """Return the same table after the change, None if it is dropped."""

    def named_after(self, schema: str, name: str) -> TableVersion | None:
        """Return the other table that has the name after the change, if there is one."""

    def new_ids(self, table: TableVersion) -> Mapping[FieldId, FieldId]:
        """Return the ids of columns that get converted values, by those of the older ones."""


class ViewFollower:
    """The views of a lake while what they read changes.

    ``done`` are views with their new texts, ``broken`` those that cannot follow, and why, and
    ``retyped`` those that read a column which gets another type. ``moved`` are macros that get
    other texts.
    """

    def __init__(
        self, tables: Tables, schemas: Iterable[SchemaInfo], renamed: Iterable[RenameView] = ()
    ) -> None:
        self._tables = tables
        self._schemas = {schema.id: schema.name for schema in schemas}
        self._renamed = {each.view.id: each for each in renamed}
        self.done: list[tuple[Row, str, str | None]] = []
        self.broken: list[tuple[Row, str]] = []
        self.retyped: list[Row] = []
        self.moved: list[Row] = []
        self._known: dict[_Name, ReadTable | None] = {}
        self._views: dict[_Name, Row] = {}
        self._texts: dict[int, Followed | None] = {}
        self._uses: dict[int, set[int]] = {}
        self._names: set[str] = set()
        self._words: Collection[str] | None = None

    def take(
        self, rows: Sequence[Row], names: Iterable[str], words: Collection[str] | None
    ) -> None:
        """Follow the views that read tables with one of these names, or views that change then.

        ``words`` are the names of columns that come and go, None for any: only queries with one of
        them are read. What ``*`` shows changes without any.
        """
        for row in rows:
            self._views[self._schemas[row["schema_id"]].lower(), self._old_name(row).lower()] = row
        self._names, self._words = set(names), words
        waiting = list(rows)
        while reached := rows_with(waiting, self._names):
            waiting = [row for row in waiting if row not in reached]
            self._names |= {self._old_name(row) for row in reached if self._changes(row)}

    def require_all(self, table: str, views: DependentViews) -> None:
        """Raise InvalidRequest if an ALTER of the table breaks views, and must not."""
        if self.broken and views is DependentViews.RESTRICT:
            raise InvalidRequest(
                f"cannot alter table {table}, as it would break views"
                f" ({'; '.join(self.reasons)}); change or drop"
                " them first, or write CASCADE behind DROP COLUMN to drop them with the column"
            )

    @property
    def lost(self) -> list[int]:
        """The views that cannot follow, and those that read them."""
        found = [row["view_id"] for row, _ in self.broken]
        for number in found:
            found += [n for n, uses in self._uses.items() if number in uses and n not in found]
        return found

    @property
    def reasons(self) -> list[str]:
        """Why views and macros cannot follow, by their names."""
        return [f"{self._name(row)}: {why}" for row, why in self.broken]

    @property
    def told(self) -> tuple[str, ...]:
        """What happens to views, one line for each."""
        fails = (f"{self._name(row)} would fail: {why}" for row, why in self.broken)
        types = (f"{self._name(row)} reads a column of a new type" for row in self.retyped)
        followed = [*(row for row, _, _ in self.done), *self.moved]
        names = (f"{self._name(row)} gets the new names" for row in followed)
        return (*fails, *types, *names)

    def _name(self, row: Row) -> str:
        what = "view" if "sql" in row else "macro"
        return (
            f"{what} {schema_text(self._schemas[row['schema_id']])}.{quote_name(row['view_name'])}"
        )

    def _old_name(self, row: Row) -> str:
        renamed = self._renamed.get(row["view_id"])
        return str(row["view_name"] if renamed is None else renamed.view.name)

    def _concerns(self, row: Row) -> bool:
        """Tell whether a text has a name that changes, or reads a view that cannot follow."""
        if self._words is None:
            return True
        gone = set(self.lost)
        lost = {self._old_name(each) for each in self._views.values() if each["view_id"] in gone}
        return bool(rows_with([row], {*self._words, *lost, "natural"}))

    def _changes(self, row: Row) -> bool:
        """Follow one view; return whether views that read it have to follow."""
        if not self._concerns(row):
            return "*" in row["sql"]
        found = self._follow(row)
        if found is None or row["view_id"] in self.lost:
            return True
        return found.columns is None or not all(column.stays for column in found.columns)

    def _follow(self, row: Row) -> Followed | None:
        """Return what a view is after the commit, None if it reads itself or cannot follow."""
        number = row["view_id"]
        if number in self._texts:
            return self._texts[number]
        self._texts[number] = None
        find = partial(self._find, row)
        try:
            own = followed(row["sql"], row["dialect"], find)
            shown = [c.before or "" for c in own.columns or ()]
            spark = row["spark"] and followed(row["spark"], "spark", find, shown)
        except Unsupported as error:
            self.broken.append((row, str(error)))
            return None
        last = spark or own
        if last.has_new_types:
            self.retyped.append(row)
        if last.gone or own.gone:
            gone = ", ".join(quote_name(name) for name in last.gone or own.gone)
            self.broken.append((row, f"it reads {gone}"))
        elif own.text != row["sql"] or (spark and spark.text != row["spark"]):
            self.done.append((row, own.text, spark.text if spark else None))
        names = column_names(row["column_aliases"])
        if names and last.columns is not None:
            listed = zip(names, last.columns, strict=False)
            last = replace(
                last, columns=tuple(ColumnNames(n, n, c.inside, c.has_new_type) for n, c in listed)
            )
        self._texts[number] = last
        return last

    def macros(self, known: Iterable[MacroVersion]) -> dict[int, MacroVersion]:
        """Return the macros that get other bodies, by the ids that they had; views come first."""
        found: dict[int, MacroVersion] = {}
        for macro in known:
            row = {"view_id": -macro.id, "schema_id": macro.schema.id, "view_name": macro.name}
            own = {"sql": "\n".join(f"{body.sql} {body.spark_sql or ''}" for body in macro.bodies)}
            if not rows_with([own], self._names) or not self._concerns(own):
                continue
            try:
                bodies = tuple(self._body(body, macro.kind, row) for body in macro.bodies)
            except Unsupported as error:
                self.broken.append((row, str(error)))
                continue
            if bodies != macro.bodies:
                self.moved.append(row)
                found[macro.id] = replace(macro, bodies=bodies)
        return found

    def _body(self, body: MacroBody, kind: MacroKind, row: Row) -> MacroBody:
        # An expression is read as a query.
        before, behind = ("", "") if kind is MacroKind.TABLE else ("SELECT ", " AS whole")

        def then(text: str, dialect: str) -> str:
            found = followed(f"{before}{text}{behind}", dialect, partial(self._find, row))
            if found.gone:
                raise Unsupported(f"it reads {', '.join(map(quote_name, found.gone))}")
            return found.text[len(before) : len(found.text) - len(behind)]

        spark = None if body.spark_sql is None else then(body.spark_sql, "spark")
        return replace(body, sql=then(body.sql, body.dialect), spark_sql=spark)

    def _find(self, row: Row, parts: tuple[str, ...]) -> ReadTable | None:
        """Return the table or view that a name means in a view or a macro."""
        home = self._schemas[row["schema_id"]]
        homes = [INSIDE.join(parts[:-1])] if len(parts) > 1 else [home, DEFAULT_SCHEMA]
        for schema in dict.fromkeys(homes):
            key = (schema.lower(), parts[-1].lower())
            if (other := self._views.get(key)) is not None:
                self._uses.setdefault(row["view_id"], set()).add(other["view_id"])
            if key not in self._known:
                self._known[key] = self._read(schema, parts[-1])
            if (found := self._known[key]) is not None:
                return found
        return None

    def _read(self, schema: str, name: str) -> ReadTable | None:
        row = self._views.get((schema.lower(), name.lower()))
        if row is not None:
            found = self._follow(row)
            renamed = self._renamed.get(row["view_id"])
            place = None if renamed is None else (*schema_names(schema), renamed.new_name)
            return ReadTable(None if found is None else found.columns, place)
        before = self._tables.before(schema, name)
        if before is None:
            return None
        after = self._tables.after(before)
        if after is None or after.name != before.name:
            # A table that takes the name is what a view of this name reads from now on.
            after = self._tables.named_after(schema, name) or after
        if after is None:
            return None
        is_same = after.id == before.id
        is_moved = is_same and after.name != before.name
        place = (*schema_names(after.schema.name), after.name) if is_moved else None
        new_ids = self._tables.new_ids(before) if is_same else None
        return ReadTable(_columns(before.columns.fields, after.columns.fields, new_ids), place)


def _columns(
    old: Sequence[Field], new: Sequence[Field], new_ids: Mapping[FieldId, FieldId] | None
) -> Columns:
    """Return columns by both names: by id, and by name where a column has a new id.

    ``new_ids`` are those of converted columns, None for the columns of two tables, which have
    nothing but names in common.
    """
    by_id = {} if new_ids is None else {field.id: field for field in new}
    then = {f.id: by_id.get((new_ids or {}).get(f.id, f.id)) for f in old}
    taken = {field.id for field in then.values() if field is not None}
    names = {field.name.lower(): field for field in new if field.id not in taken}
    found: list[ColumnNames] = []
    for field in old:
        now = then[field.id] or names.pop(field.name.lower(), None)
        inside = _columns(field.children, () if now is None else now.children, new_ids)
        name, shape = (None, field.shape) if now is None else (now.name, now.shape)
        found.append(ColumnNames(field.name, name, inside, shape != field.shape))
    added = (ColumnNames(None, f.name, _columns((), f.children, new_ids)) for f in names.values())
    return (*found, *added)


def rows_with(rows: Iterable[Row], names: Iterable[str]) -> list[Row]:
    """Return the views and macros whose texts have one of these names anywhere, quoted or not."""
    ways = {
        way for name in names for way in (name, name.replace('"', '""'), name.replace("`", "``"))
    }
    if not ways:
        return []
    any_of = "|".join(re.escape(way) for way in sorted(ways))
    # DuckDB calls the second `a` of a query `a_1`.
    named = re.compile(rf"(?<!\w)({any_of})(_\d+)?(?!\w)", re.IGNORECASE)
    return [row for row in rows if named.search(f"{row['sql']} {row.get('spark') or ''}")]


def changed_names(altered: Iterable[AlterTable]) -> set[str]:
    """Return the names of columns and fields that tables get and lose."""
    found: set[str] = set()
    for alter in altered:
        for change in alter.changed:
            rows = (change.before, change.after)
            was, now = (None if row is None else row.field.name for row in rows)
            found |= {name for name in (was, now) if name is not None and was != now}
    return found
