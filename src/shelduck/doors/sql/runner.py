"""The base of the statements of one text: the lake, the open unit of work, names and queries."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Any, get_type_hints

from shelduck.doors.sql.sql_session import SqlSession
from shelduck.doors.sql.targets import QueryScope, relation_frame, text_over
from shelduck.engine.bridge import engine_for
from shelduck.engine.query import answer, constant, session_has, temporary_views
from shelduck.engine.session import DataFrame
from shelduck.errors import InvalidRequest
from shelduck.lake.results import PlainRows, Result, TableName, table_name
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork, view_of
from shelduck.lake.workspace import Workspace
from shelduck.model.tables.table_version import SchemaInfo, TableVersion
from shelduck.objects.catalog_verbs import CatalogVerbs
from shelduck.objects.table import Table
from shelduck.text.query.rewriting import with_variables
from shelduck.text.statements import statement_values as st
from shelduck.text.tokens.lexer import tokenize
from shelduck.text.tokens.parts import Call, Expression, FunctionRelation, SessionName

Answer = DataFrame | PlainRows | Result

_HINT = re.compile(r"/\*\+\s*no_rollup(\s*\(\s*\))?\s*\*/", re.IGNORECASE)
TABLE_FUNCTIONS: dict[str, Callable[[Runner, Call], Answer]] = {}
"""Functions of a query's FROM by name; `shelduck.doors.sql.calls.functions` fills it."""

Procedure = Callable[..., Answer]
Run = Callable[["Runner", Any], Answer]


class Runner:
    """One lake, or one open transaction, as statements see it."""

    def __init__(
        self, state: LakeState, unit: UnitOfWork | None, session: SqlSession | None = None
    ) -> None:
        self.state = state
        self.unit = unit
        self.session = session or SqlSession(state, unit)

    @property
    def verbs(self) -> CatalogVerbs:
        """The verbs over tables and schemas by name."""
        return CatalogVerbs(self.state, self.unit)

    def query(
        self, query: st.Query, prefix: str = "", given: Mapping[str, DataFrame] | None = None
    ) -> DataFrame:
        """Return the DataFrame of a query; all its tables are read at one snapshot.

        ``given`` are tables by names that the lake is not asked for.
        """
        text, rollups = without_hint(query.text)
        frames, others = self._frames(query, rollups=rollups, given=given)
        text = text_over(replace(query, text=text), frames)
        for word, name in others.items():
            text = text.replace(word, name)
        return engine_for(self.state.spark).query(prefix + text, frames)

    @contextmanager
    def views(self, *parts: st.Query | Expression | None) -> Iterator[Callable[[str], str]]:
        """Register the tables that parts of a statement read as Spark views, at one snapshot.

        Yields a function that replaces the placeholders in a text by the names of the views.
        """
        frames: dict[str, DataFrame] = {}
        names: dict[str, str] = {}
        for part in parts:
            if part is not None:
                found, others = self._frames(part)
                frames.update(found)
                names.update(others)
        with temporary_views(self.state.spark, frames) as made:
            names.update(made)
            yield lambda text: reduce(lambda t, word: t.replace(word, names[word]), names, text)

    def _frames(
        self,
        part: st.Query | Expression,
        *,
        rollups: bool = False,
        given: Mapping[str, DataFrame] | None = None,
    ) -> tuple[dict[str, DataFrame], dict[str, str]]:
        """Return the lake's tables, and the names of the session's tables, by placeholder."""
        unit = self.view()
        frames = {f.placeholder: self._function(f) for f in part.functions}
        others: dict[str, str] = {}
        for found in part.relations:
            relation = self._at_its_time(found)
            word, name = relation.placeholder, str(relation.name)
            if given is not None and name in given:
                frames[word] = given[name]
                continue
            if isinstance(relation.name, SessionName):
                others[word] = name
                continue
            try:
                scope = QueryScope(self.state.current.schema, rollups=rollups)
                frames[word] = relation_frame(unit, relation, scope)
            except InvalidRequest as error:
                # Not in this lake: a temporary view, or a table of another catalog of the session.
                # Those do not have the lake's snapshots, so time travel always means the lake.
                travels = relation.version is not None or relation.timestamp is not None
                if travels or error.about == "option" or not session_has(self.state.spark, name):
                    raise
                others[word] = name
        return frames, others

    def _function(self, relation: FunctionRelation) -> DataFrame:
        call, table = relation.call, relation.table
        if table is not None:
            call = replace(call, positional=(str(table), *call.positional))
        found = TABLE_FUNCTIONS[call.procedure](self, call)
        if isinstance(found, PlainRows):
            return answer(self.state.spark, found.columns, found.rows)
        assert isinstance(found, DataFrame)
        return found

    def _at_its_time(self, relation: st.Relation) -> st.Relation:
        """Return a relation with its time, which Spark computes first if it is an expression."""
        if relation.computed is None:
            return relation
        kind, text = relation.computed.kind, with_variables(relation.computed.text)
        is_version = kind == "VERSION"
        wanted = f"CAST(({text}) AS BIGINT)" if is_version else f"CAST(({text}) AS TIMESTAMP)"
        value = constant(self.state.spark, wanted if is_version else f"unix_micros({wanted})")
        if value is None:
            raise InvalidRequest(
                f"the {kind.lower()} of {relation.name} is NULL: {relation.computed.text}"
            )
        if is_version:
            return replace(relation, version=value, computed=None)
        time = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=value)
        return replace(relation, timestamp=time.isoformat(), computed=None)

    def name(self, found: st.NamedTable, default: str | None = None) -> TableName:
        """Return the schema and table that a name in a statement refers to."""
        return table_name(found.parts, default or self.state.current.schema)

    def table(self, found: st.NamedTable) -> Table:
        """Return the table object that a name in a statement refers to."""
        return Table(self.state, self.name(found), self.unit)

    def version(self, found: st.NamedTable) -> TableVersion:
        """Return the table as it is now."""
        return self.view().workspace.table(self.name(found))

    def schema(self, found: st.SchemaName | None) -> tuple[Workspace, SchemaInfo]:
        """Return a schema by its name, or the one of names without a schema, and what has it."""
        workspace = self.view().workspace
        return workspace, workspace.schema(found.schema if found else self.state.current.schema)

    def view(self) -> UnitOfWork:
        """Return the open unit, or a new one that is only read from."""
        return view_of(self.state, self.unit)


def without_hint(text: str) -> tuple[str, bool]:
    """Return a query without the hint ``/*+ NO_ROLLUP */``, and whether rollups may answer it."""
    if not _HINT.search(text):
        return text, True
    parts, last = [], 0
    for token in tokenize(text):
        # Comments are between tokens; a hint inside of a string is part of a token.
        parts += [_HINT.sub("", text[last : token.start]), text[token.start : token.end]]
        last = token.end
    found = "".join(parts)
    return found, found == text


def by_statement(*functions: Run) -> dict[type, Run]:
    """Return functions by the type of the statement that each takes, as its signature says."""
    return {list(get_type_hints(function).values())[1]: function for function in functions}
