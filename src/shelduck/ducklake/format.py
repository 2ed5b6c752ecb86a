"""The versions of the DuckLake format as values: what a catalog of each version has.

`shelduck.ducklake.tables` has what all versions share. A newer version has more tables, and more
columns at the end of some: DuckDB inserts by position.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import sqlalchemy as sa

from shelduck.ducklake import tables
from shelduck.ducklake.checked import TEXT, check_columns, checked_numbers
from shelduck.ducklake.tables import columns_of, table_of
from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.tables.partition import COUNTS
from shelduck.model.tables.table_version import PartitionColumn
from shelduck.model.text.names import INSIDE

_OPTION = "ducklake"
"""The execution option of an engine that names the version of its lake."""
VIEW_COLUMN_TAG = "ducklake_view_column_tag"
_OF_SCHEMA = ("path", "path_is_relative", "parent_schema_id")
_KEYS = ("row_id", "begin_snapshot", "end_snapshot")


@dataclass(frozen=True, eq=False)
class Format:
    """One version of DuckLake."""

    version: str
    added: Mapping[str, str]
    """Columns beyond those of `tables`, in its words, by table; one that is not there is new."""
    system_columns: tuple[str, str, str]
    """How a table for inlined rows names the row id, the begin and the end of a row."""
    reserved_prefix: str
    """The beginning that no name of a column may have where rows can be inlined."""
    always_reserved: bool
    """Whether it must not where no rows can be inlined, either."""
    counts_time: bool
    """Whether it has the transforms ``epoch_year`` to ``epoch_hour`` of partition keys."""
    needs: str
    """The oldest DuckDB that opens it."""
    repairs: Sequence[str] = ()
    """Repairs of a migration to it: names of `shelduck.catalog.upkeep.migrate`, in their order."""

    @cached_property
    def metadata(self) -> sa.MetaData:
        """All tables of a catalog, in the order in which DuckDB makes them."""
        made = sa.MetaData()
        for known in tables.DUCKLAKE.tables.values():
            copy = known.to_metadata(made)
            for each in columns_of(self.added[known.name]) if known.name in self.added else ():
                copy.append_column(each)
        for name in self.added.keys() - tables.DUCKLAKE.tables.keys():
            table_of(made, name, self.added[name])
        check_columns(made)
        return made

    def table(self, known: sa.Table | str) -> sa.Table:
        """Return a table with the columns of this version."""
        return self.metadata.tables[known if isinstance(known, str) else known.name]

    def has(self, table: sa.Table | str, name: str) -> bool:
        """Return whether this version has a table, and the column in it."""
        known = self.metadata.tables.get(table if isinstance(table, str) else table.name)
        return known is not None and name in known.c

    @property
    def view_column_tag(self) -> sa.Table | None:
        """The table with comments on columns of views, None if there is none."""
        return self.metadata.tables.get(VIEW_COLUMN_TAG)

    def lacking(self, what: str) -> str:
        """Return that this version does not support something, for messages."""
        return f"DuckLake {self.version} does not support {what}"

    @property
    def nests(self) -> bool:
        """Whether a schema can be inside another one."""
        return self.has(tables.schema, "parent_schema_id")

    @cached_property
    def schemas(self) -> sa.FromClause:
        """The schemas by whole name: ``ducklake_schema``, or what `_nested_schemas` makes of it."""
        return _nested_schemas(self.table(tables.schema)) if self.nests else tables.schema

    @cache  # noqa: B019 - versions live as long as the process
    def insertion(self, table: sa.Table) -> sa.Insert:
        """Return the statement that inserts rows of this version into a table."""
        return sa.insert(self.table(table))

    @cache  # noqa: B019
    def _lacking(self, table: str) -> frozenset[str]:
        """The columns of other versions that a table of this one does not have."""
        return frozenset(_EVERY[table].difference(self.table(table).c.keys()))

    def fitting(
        self, table: sa.Table, rows: Iterable[Mapping[str, Any]]
    ) -> list[Mapping[str, Any]]:
        """Return rows without the columns that this version does not have."""
        lacking = self._lacking(table.name)
        if not lacking:
            return list(rows)
        return [{name: row[name] for name in row if name not in lacking} for row in rows]

    def asked(self, query: Asked) -> sa.Select[Any]:
        """Return a question as one asks it in this version."""
        return query if isinstance(query, sa.Select) else query(self)

    def or_null(self, table: sa.Table | str, name: str) -> sa.ColumnElement[Any]:
        """Return a column of `table`, or NULL by its name if this version does not have it."""
        known = self.table(table).c
        return known[name] if name in known else sa.null().label(name)

    def inlined(self, name: str) -> sa.TableClause:
        """Return a table for inlined rows; its columns have the keys of `_KEYS` in any version."""
        return checked_numbers(name, *zip(_KEYS, self.system_columns, strict=True))

    def reserved(self, names: Iterable[str]) -> str | None:
        """Return the first of some names of columns that DuckLake uses for itself."""
        for name in names:
            lower = name.lower()
            if lower in self.system_columns or lower.startswith(self.reserved_prefix):
                return name
        return None

    def require(
        self, table: str, names: Iterable[str], partition: Iterable[PartitionColumn]
    ) -> None:
        """Refuse names of new columns, and partition keys, that no table of this version may have.

        Raises InvalidRequest for a name, and Unsupported for a key.
        """
        found = next((key.transform for key in partition if key.transform in COUNTS), None)
        if found is not None and not self.counts_time:
            raise Unsupported(
                f"cannot partition {table} by {found}: DuckLake {self.version} does not have it;"
                f" use {found.removeprefix('epoch_')}s(), or migrate the lake"
            )
        if not self.always_reserved:
            return
        name = self.reserved(names)
        if name is not None:
            raise InvalidRequest(
                f"column name {name!r} of {table} is reserved, like all names that begin with"
                f" {self.reserved_prefix} in a lake of DuckLake {self.version}; choose another name"
            )

    def renames(self, columns: Sequence[str]) -> Mapping[str, str] | None:
        """Return which columns of a table for inlined rows have other names in this version.

        None if it does not begin with the row id, the begin and the end of a row in any version.
        """
        found = {}
        for place, wanted in enumerate(self.system_columns):
            name = columns[place].lower() if place < len(columns) else ""
            if name not in {each.system_columns[place] for each in FORMATS.values()}:
                return None
            if name != wanted:
                found[name] = wanted
        return found

    def beyond(self, present: Mapping[str, Collection[str]]) -> list[sa.Table | sa.Column[Any]]:
        """Return the tables, and columns of other tables, that a catalog of this version has more.

        ``present`` are the columns of the tables that are there.
        """
        found: list[sa.Table | sa.Column[Any]] = []
        for table in self.metadata.tables.values():
            known = present.get(table.name)
            if known is None:
                found.append(table)
            else:
                found += [c for c in table.c if c.name not in known]
        return found

    def after(self, older: Format) -> list[Format]:
        """Return the versions after an older one up to this one, none if that is not older."""
        every = list(FORMATS.values())
        return every[every.index(older) + 1 : every.index(self) + 1]


Asked = sa.Select[Any] | Callable[[Format], sa.Select[Any]]
"""A question, or what makes it for a version."""


V1_0 = Format(
    "1.0",
    added={},
    system_columns=_KEYS,
    reserved_prefix="_ducklake_internal_",
    always_reserved=False,
    counts_time=False,
    needs="DuckDB 1.5",
)
_EXACT = "min_is_exact bool, max_is_exact bool"
V1_1 = Format(
    "1.1",
    added={
        "ducklake_schema": "parent_schema_id",
        "ducklake_data_file": "row_group_count",
        "ducklake_delete_file": "row_group_count",
        "ducklake_file_column_stats": _EXACT,
        "ducklake_table_column_stats": _EXACT,
        VIEW_COLUMN_TAG: "view_id, column_name text, begin_snapshot, end_snapshot, key text,"
        " value text",
    },
    system_columns=("_ducklake_row_id", "_ducklake_begin_snapshot", "_ducklake_end_snapshot"),
    reserved_prefix="_ducklake_",
    always_reserved=True,
    counts_time=True,
    needs="DuckDB 2.0",
    repairs=("schema versions", "defaults of fields", "types of inlined rows", "bounds"),
)
FORMATS = {each.version: each for each in (V1_0, V1_1)}
VERSIONS = " and ".join(map(repr, FORMATS))
"""Their names, as messages say them."""
OLDEST = V1_0
DEFAULT = V1_0
"""The version of a new lake if nobody names one: most readers open it."""
_EVERY: dict[str, set[str]] = {}
for _known in FORMATS.values():
    for _table in _known.metadata.tables.values():
        _EVERY.setdefault(_table.name, set()).update(_table.c.keys())


def first_with(table: str, name: str) -> str:
    """Return the first version of DuckLake that has a column of a table, for messages."""
    return next(f"DuckLake {each.version}" for each in FORMATS.values() if each.has(table, name))


def format_of(connection: sa.Connection | sa.Engine) -> Format:
    """Return the format of the lake of a connection; no statement."""
    return FORMATS[connection.get_execution_options().get(_OPTION, OLDEST.version)]


def known_format(version: str) -> Format:
    """Return a version of DuckLake by its name, or raise InvalidRequest."""
    if version not in FORMATS:
        raise InvalidRequest(f"DuckLake version {version!r} is not one of {VERSIONS}")
    return FORMATS[version]


def follow(connection: sa.Connection, version: str | None) -> bool:
    """Work in the version that the catalog has, and return whether somebody has migrated the lake.

    The connection and later ones of its engine know it from then on. Raises Unsupported for a
    version that Shelduck does not know.
    """
    was = format_of(connection).version
    if version is None or version == was:
        return False
    if version not in FORMATS:
        raise Unsupported(
            f"the lake now has DuckLake version {version!r}, but was opened with {was!r}; nothing"
            " was written"
        )
    options = options_of(FORMATS[version])
    connection.engine.update_execution_options(**options)
    connection.execution_options(**options)
    return True


def schemas_of(connection: sa.Connection) -> sa.FromClause:
    """Return the schemas of the lake of a connection by whole name, as `Format.schemas` does."""
    return format_of(connection).schemas


def options_of(known: Format) -> Mapping[str, str]:
    """Return the execution options by which `format_of` knows a format."""
    return {_OPTION: known.version}


def _nested_schemas(source: sa.Table) -> sa.CTE:
    """Return the rows of ``ducklake_schema`` with ``schema_name`` as `schema_word` has it.

    ``begin_snapshot`` and ``end_snapshot`` are those of the schema and of all schemas around it
    together. A schema that is in no existing one is left out.
    """
    s, kind = source.c, source.c.schema_name.type

    def named(name: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        return sa.type_coerce(sa.cast(name, TEXT), kind).label("schema_name")

    top = (
        sa.select(s.schema_id, s.begin_snapshot, s.end_snapshot, named(s.schema_name))
        .add_columns(*(s[name] for name in _OF_SCHEMA))
        .where(s.parent_schema_id.is_(None))
        .cte("ducklake_schemas", recursive=True)
    )
    inside = source.alias("inside")
    inner = inside.c
    begin = sa.case(
        (inner.begin_snapshot < top.c.begin_snapshot, top.c.begin_snapshot),
        else_=inner.begin_snapshot,
    )
    outlives = sa.or_(inner.end_snapshot.is_(None), inner.end_snapshot > top.c.end_snapshot)
    # A schema that begins after the end of the one around it is never there.
    end = sa.case(
        (outlives & (top.c.end_snapshot < begin), begin),
        (outlives, top.c.end_snapshot),
        else_=inner.end_snapshot,
    )
    below = (
        sa.select(inner.schema_id, begin, end)
        .add_columns(named(top.c.schema_name + sa.literal(INSIDE, TEXT) + inner.schema_name))
        .add_columns(*(inner[name] for name in _OF_SCHEMA))
        .join_from(inside, top, inner.parent_schema_id == top.c.schema_id)
    )
    return top.union_all(below)
