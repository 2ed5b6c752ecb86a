"""Statements of a session that has lakes among its catalogs: whose they are, and what they name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

from shelduck.doors.sql.explain import Explain
from shelduck.doors.sql.parse import OPERATIONS
from shelduck.lake.branch_names import may_be_twin
from shelduck.model.text.names import inside
from shelduck.objects.statement.show import ShowTables
from shelduck.objects.statement.views import ShowViews
from shelduck.text.tokens.lexer import dotted_names, edited, name_of, tokenize
from shelduck.text.tokens.parts import (
    Call,
    Expression,
    FunctionRelation,
    NamedTable,
    Query,
    Relation,
    SchemaName,
    SessionName,
    Statement,
)

Value = TypeVar("Value")

_SESSION = "session"


@dataclass(frozen=True, slots=True)
class LakeNames:
    """The meaning of names in a session: lakes by lower name, and the catalog that it uses.

    ``temporary`` tells of a name of one part whether it is a temporary view. ``reads`` says that
    Spark itself finds the lakes' tables, as it does where there is a JVM. ``shared`` is the schema
    of temporary views of all sessions. ``nesting`` are the lakes that can have schemas inside
    schemas, and ``foreign`` tells of a word whether another catalog has this name.
    """

    lakes: Collection[str]
    current: str
    temporary: Callable[[str], bool]
    reads: bool = True
    shared: str = "global_temp"
    nesting: Collection[str] = ()
    foreign: Callable[[str], bool] = bool

    def lake(self, catalog: str) -> str | None:
        """Return the lake that a catalog's name means, None when it means none."""
        return catalog.lower() if catalog.lower() in self.lakes else None

    def lake_of(self, parts: tuple[str, ...]) -> str | None:
        """Return the lake that a name of a table is in, None when it is in none.

        As everywhere in Spark, temporary views come before what is in a catalog.
        """
        found = self.lake_for(parts)
        return None if found is not None and self.is_sessions(parts) else found

    def lake_for(self, parts: tuple[str, ...]) -> str | None:
        """Return the lake in which something new of that name is made, None when it is in none."""
        if len(parts) > 1 and parts[0].lower() in self.lakes:
            return parts[0].lower()
        current = self.current.lower()
        nests = current in self.nesting or may_be_twin(parts[-1])
        is_long = len(parts) > 2 and (not nests or self.foreign(parts[0]))
        return current if current in self.lakes and not is_long else None

    def is_sessions(self, parts: tuple[str, ...]) -> bool:
        """Return whether a name is that of a temporary view, and so the session's own."""
        if len(parts) == 1:
            return self.temporary(parts[0])
        if len(parts) > 2 or parts[0].lower() in self.lakes:
            return False
        schema = parts[0].lower()
        return schema == self.shared.lower() or (schema == _SESSION and self.temporary(parts[1]))


def owner(statement: Statement, names: LakeNames) -> str | None:
    """Return the lake that has to run a statement, None for one that Spark runs right.

    Queries are Spark's, but for those with a table function of a lake, a computed time or a virtual
    column, which Spark does not know.
    """
    operation = OPERATIONS[type(statement)]
    if operation.sparks and (names.reads or not isinstance(statement, ShowTables)):
        return None
    if isinstance(statement, Query):
        return _owner_of_query(statement, names)
    if isinstance(statement, Explain):
        if statement.changed is None:
            return _owner_of_query(statement.query, names)
        return names.lake_of(statement.changed.parts)
    if isinstance(statement, Call):
        return names.lake(statement.catalog or names.current)
    targets = list(_targets(statement))
    if not targets:
        return names.lake(names.current) if operation.of_current else None
    first = targets[0]
    if isinstance(first, SchemaName):
        # Where Spark lists, a name of one part is a catalog's before it is a schema's.
        lists = isinstance(statement, ShowViews | ShowTables)
        alone = names.lake(first.parts[0]) if lists else None
        written = first.parts[0] if len(first.parts) > 1 else names.current
        return alone or names.lake(written) or names.lake_for((*first.parts, ""))
    return (names.lake_for if operation.makes else names.lake_of)(first.parts)


def is_left_to_spark(statement: Statement, names: LakeNames) -> bool:
    """Return whether Spark runs a statement right that reads no rows, as if no lake were there."""
    return OPERATIONS[type(statement)].sparks and owner(statement, names) is None


def temporary_view(statement: Statement, names: LakeNames) -> NamedTable | None:
    """Return the name of the temporary view that a statement with a lake's words is about.

    None for all others. Spark runs such a statement, if it knows it at all.
    """
    operation = OPERATIONS[type(statement)]
    if operation.makes or operation.sparks or isinstance(statement, Query | Explain | Call):
        return None
    first = next(_targets(statement), None)
    if not isinstance(first, NamedTable) or names.lake_for(first.parts) is None:
        return None
    return first if names.is_sessions(first.parts) else None


def is_for_tables(statement: Statement) -> bool:
    """Return whether Spark has no words for a statement, which only a table of a lake can obey."""
    return OPERATIONS[type(statement)].only_lakes


def within(statement: Value, lake: str, names: LakeNames) -> Value:
    """Return a statement as the lake itself understands it: without the name of the catalog.

    Tables that are not in the lake become names of the session.
    """

    def change(value: Any) -> Any:
        match value:
            case Call():
                return replace(value, catalog=None)
            case ShowViews(SchemaName((only,))) | ShowTables(SchemaName((only,))) if (
                only.lower() == lake
            ):
                return replace(value, schema=None)
            case NamedTable():
                return NamedTable(inside(value.parts, lake))
            case SchemaName():
                return SchemaName(inside(value.parts, lake))
            case Relation():
                return replace(value, name=_relation_name(value.name, lake, names))
        return value

    found: Value = _changed(statement, change)
    return found


def without_catalog(text: str, lake: str) -> str:
    """Return the text of a view without the name of the catalog: other readers do not know it.

    Only names of three parts are taken for names of tables.
    """
    tokens = tokenize(text)
    edits = []
    for n, token in enumerate(tokens):
        is_inside = n > 0 and tokens[n - 1].key == "."
        names = dotted_names(tokens, n) if token.may_name and not is_inside else []
        if len(names) > 2 and name_of(token).lower() == lake:
            edits.append((token.start, names[1].start, ""))
    return edited(text, edits)


def _owner_of_query(query: Query, names: LakeNames) -> str | None:
    found = [_owner_of_function(relation, names) for relation in query.functions]
    # Nor does it know a time that has to be computed first, or a virtual column.
    found += [
        names.lake_of(relation.name.parts)
        for relation in query.relations
        if relation.computed is not None or relation.virtual or not names.reads
    ]
    return next((lake for lake in found if lake is not None), None)


def _owner_of_function(relation: FunctionRelation, names: LakeNames) -> str | None:
    if relation.call.catalog is not None:
        return names.lake(relation.call.catalog)
    if relation.table is not None:
        return names.lake_of(relation.table.parts)
    return names.lake(names.current)


def _targets(value: Any) -> Iterator[NamedTable | SchemaName]:
    """Yield what a statement is about, in the order in which it was written."""
    if isinstance(value, NamedTable | SchemaName):
        yield value
    elif isinstance(value, Query | Expression | Relation):
        return
    elif isinstance(value, tuple):
        for part in value:
            yield from _targets(part)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from _targets(getattr(value, field.name))


def _relation_name(name: NamedTable, lake: str, names: LakeNames) -> NamedTable:
    parts = inside(name.parts, lake)
    if parts != name.parts:
        return NamedTable(parts)
    return name if names.lake_of(name.parts) == lake else SessionName(name.parts)


def _changed(value: Any, change: Callable[[Any], Any]) -> Any:
    found = change(value)
    if found is not value:
        return found
    if isinstance(value, tuple):
        parts = [_changed(part, change) for part in value]
        same = all(new is old for new, old in zip(parts, value, strict=True))
        return value if same else tuple(parts)
    if is_dataclass(value) and not isinstance(value, type):
        now = {f.name: getattr(value, f.name) for f in fields(value) if f.init}
        new = {name: _changed(part, change) for name, part in now.items()}
        if any(new[name] is not part for name, part in now.items()):
            return replace(value, **new)
    return value
