"""Names of tables of branches and tags in Iceberg's words: ``t.branch_b``, ``t.tag_x``, a setting.

A table and its twin belong together by id, whatever their names are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from shelduck.catalog.read.read import Connection
from shelduck.catalog.read.twins import branches_at, twins_in
from shelduck.errors import NotFound, Unsupported
from shelduck.lake.results import TableName
from shelduck.model.tables.table_version import SchemaInfo, Snapshot, TableVersion
from shelduck.model.tables.twin import Branch, MarkBranch
from shelduck.model.text.names import schema_names, schema_word

_KINDS = {"branch": False, "tag": True}


class _Seen(Protocol):
    """What a `Workspace` tells of names."""

    @property
    def base(self) -> Snapshot: ...
    def reading(self) -> AbstractContextManager[Connection]: ...
    def schemas(self) -> list[SchemaInfo]: ...
    def word_of(self, text: str) -> str: ...
    def table(self, name: TableName) -> TableVersion: ...
    def find_table(self, name: TableName) -> TableVersion | None: ...
    def has_table(self, name: TableName) -> bool: ...


def may_be_twin(name: str) -> bool:
    """Return whether the last part of a name is one of Iceberg's for a branch or a tag."""
    return name.lower().startswith(("branch_", "tag_"))


def twin_named(seen: _Seen, name: TableName, current: str) -> TableName | None:
    """Return the table that ``t.branch_b`` or ``t.tag_x`` means, None if there is no table ``t``.

    Without a schema before it, ``t`` is in the schema ``current``. Raises NotFound if there is no
    such branch or tag of it.
    """
    if not may_be_twin(name.name):
        return None
    kind, _, ref = name.name.partition("_")
    *schema, owner = schema_names(name.home)
    table = TableName(schema_word(schema) or current, owner)
    return twin_on(seen, table, ref, is_tag=_KINDS[kind.lower()])


def twin_on(
    seen: _Seen, table: TableName, ref: str, *, is_tag: bool | None = None
) -> TableName | None:
    """Return the twin of a table on a branch, a tag, or one of both (None).

    A table that was dropped is looked for by its name; None if there is none either. Raises
    NotFound for an existing table without such a twin.
    """
    with seen.reading() as connection:
        found = _branch(seen, connection, ref)
        known = seen.find_table(table)
        schema = found[0] if found and is_tag in (None, found[1].is_tag) else None
        if schema is not None and known is None:
            same = TableName(schema.name, table.name)
            return same if seen.has_table(same) else None
        twins = {} if schema is None else twins_in(connection, schema.id, seen.base.id)
        if known is None:
            return None
        if schema is None or known.id not in twins:
            what = "branch or tag" if is_tag is None else "tag" if is_tag else "branch"
            raise NotFound(f"{what} {ref!r} of {known.full_name} does not exist")
        return TableName(schema.name, twins[known.id])


def name_on_branch(seen: _Seen, table: TableName, branch: str) -> TableName:
    """Return what a name means in a session that works on a branch: the twin if there is one.

    Raises NotFound if there is no such branch.
    """
    with seen.reading() as connection:
        found = _branch(seen, connection, branch)
        if found is None:
            raise NotFound(
                f"branch {branch!r} does not exist; make it with CREATE BRANCH, or unset"
                " shelduck.branch and spark.wap.branch"
            )
        if not seen.has_table(table):
            return table
        twins = twins_in(connection, found[0].id, seen.base.id)
        name = twins.get(seen.table(table).id)
    return table if name is None else TableName(found[0].name, name)


def refuse_tag(
    connection: Connection,
    at: Snapshot,
    known: Sequence[SchemaInfo],
    schema: SchemaInfo,
    staged: Iterable[object],
) -> None:
    """Raise Unsupported for a schema that is a tag, unless the staged changes mark it.

    One statement if it shares its files with another one of those that are ``known``.
    """
    if not any(s.path == schema.path for s in known if s.id != schema.id):
        return
    branch = branches_at(connection, at.id).get(schema.id)
    is_marked = any(isinstance(one, MarkBranch) and one.schema == schema for one in staged)
    if branch is not None and branch.is_tag and not is_marked:
        raise Unsupported(f"schema {schema.text!r} is a tag, which nobody changes")


def _branch(seen: _Seen, connection: Connection, name: str) -> tuple[SchemaInfo, Branch] | None:
    wanted = seen.word_of(name).lower()
    schema = next((s for s in seen.schemas() if s.name.lower() == wanted), None)
    branch = None if schema is None else branches_at(connection, seen.base.id).get(schema.id)
    return None if schema is None or branch is None else (schema, branch)
