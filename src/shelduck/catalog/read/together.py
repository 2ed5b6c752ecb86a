"""Several questions to the catalog in one statement, so that one round trip answers all of them.

The SELECTs become one UNION ALL. Its columns are slots: one for each column of the widest SELECT,
kind of value by kind of value. Values are checked and converted as if each SELECT ran alone.
"""

from __future__ import annotations

from collections import Counter, namedtuple
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.types import NullType, TypeEngine

from shelduck.ducklake.checked import BIGINT, BOOLEAN, TEXT, TIMESTAMP, UUID, Checked, StoredFlag
from shelduck.ducklake.format import Asked

Selects = tuple[tuple[str, sa.Select[Any]], ...]
"""SELECTs by name."""
Questions = tuple[tuple[str, Asked], ...]
"""SELECTs by name, or what makes them for a version.

A commit asks about :of_tables, the tables that exist, :of_converted, those that get converted
columns, or :of_files, the data files whose rows it deletes or moves.
"""
OF_TABLES: sa.BindParameter[Any] = sa.bindparam("of_tables", type_=BIGINT, expanding=True)
OF_CONVERTED: sa.BindParameter[Any] = sa.bindparam("of_converted", type_=BIGINT, expanding=True)
OF_FILES: sa.BindParameter[Any] = sa.bindparam("of_files", type_=BIGINT, expanding=True)

Answers = Mapping[str, list[Any]]
"""The rows that each question found, by its name; their columns are attributes."""

_Decoder = Callable[[Any], Any] | None
# Without a type, SQLAlchemy returns what the driver does.
_RAW = NullType()
_NULL: sa.ColumnElement[Any] = sa.literal_column("NULL", _RAW)
_SLOTS: Mapping[type, TypeEngine[Any]] = {
    int: BIGINT,
    str: TEXT,
    bool: BOOLEAN,
    datetime: TIMESTAMP,
}


@dataclass(frozen=True, slots=True)
class _Part:
    """One question: which slots its columns are in, and how to read them."""

    name: str
    make: Callable[[Iterable[Any]], Any]
    columns: tuple[tuple[int, _Decoder], ...]


@dataclass
class Together:
    """SELECTs by name, which share their parameters. Rows of one SELECT come in any order."""

    questions: Mapping[str, sa.Select[Any] | sa.CompoundSelect[Any]]
    _built: dict[str, tuple[sa.CompoundSelect[Any], list[_Part]]] = field(default_factory=dict)

    def ask(self, connection: sa.Connection, parameters: Mapping[str, Any]) -> Answers:
        """Return the rows of each question; one statement."""
        dialect = connection.dialect
        if dialect.name not in self._built:
            self._built[dialect.name] = _build(self.questions, dialect)
        statement, parts = self._built[dialect.name]
        found: dict[str, list[Any]] = {part.name: [] for part in parts}
        for row in connection.execute(statement, parameters):
            part = parts[row[0]]
            values = (row[at] if decode is None else decode(row[at]) for at, decode in part.columns)
            found[part.name].append(part.make(values))
        return found


def _build(
    questions: Mapping[str, sa.Select[Any] | sa.CompoundSelect[Any]], dialect: sa.Dialect
) -> tuple[sa.CompoundSelect[Any], list[_Part]]:
    sources = {name: query.subquery() for name, query in questions.items()}
    kinds = {name: [_kind_of(c, dialect) for c in source.c] for name, source in sources.items()}
    width: Counter[TypeEngine[Any]] = Counter()
    for found in kinds.values():
        width |= Counter(found)
    slots = list(width.elements())
    selects: list[Any] = []
    parts: list[_Part] = []
    for number, (name, source) in enumerate(sources.items()):
        free = list(enumerate(slots))
        # The first SELECT gives each slot its type. A shorter text takes less of everybody's time.
        shown: list[sa.ColumnElement[Any]] = [_NULL] * len(slots)
        if not selects:
            shown = [sa.type_coerce(sa.cast(sa.null(), kind), _RAW) for kind in slots]
        read: list[tuple[int, _Decoder]] = []
        for column, kind in zip(source.c, kinds[name], strict=True):
            at, _ = place = next(slot for slot in free if slot[1] is kind)
            free.remove(place)
            impl = column.type.dialect_impl(dialect)
            shown[at] = sa.type_coerce(_fetched(column, dialect), _RAW)
            read.append((at + 1, impl.result_processor(dialect, None)))
        selects.append(sa.select(sa.literal_column(str(number)), *shown).select_from(source))
        made = namedtuple(name, source.c.keys(), rename=True)  # type: ignore[misc] # noqa: PYI024
        parts.append(_Part(name, made._make, tuple(read)))
    return sa.union_all(*selects), parts


def _fetched(column: sa.ColumnElement[Any], dialect: sa.Dialect) -> sa.ColumnElement[Any]:
    """Return a column as the driver can return it."""
    converted = column.type.dialect_impl(dialect).column_expression(column)
    return column if converted is None else converted


def _kind_of(column: sa.ColumnElement[Any], dialect: sa.Dialect) -> TypeEngine[Any]:
    """Return the kind of value that is fetched for a column, which decides its slots."""
    if _fetched(column, dialect) is not column:
        return BIGINT
    kind = column.type.stored if isinstance(column.type, Checked) else column.type
    if isinstance(kind, StoredFlag):
        return BOOLEAN
    return UUID if kind is UUID else _SLOTS[kind.python_type]
