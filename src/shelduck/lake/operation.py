"""What a statement is declared as, an `Operation`, and what it runs on, a `Runner`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import reduce
from itertools import product
from typing import Any, TypeVar

from shelduck.engine.bridge import engine_for
from shelduck.engine.session import DataFrame, answer, constant, session_has, temporary_views
from shelduck.errors import InvalidRequest
from shelduck.lake.branch_names import name_on_branch
from shelduck.lake.lookup import TableHandle
from shelduck.lake.results import (
    Committed,
    PlainRows,
    Result,
    Staged,
    TableName,
    Unchanged,
    table_name,
)
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork, view_of
from shelduck.lake.workspace import Workspace
from shelduck.model.tables.table_version import SchemaInfo, TableVersion
from shelduck.model.tables.view import ViewVersion
from shelduck.read.scan.matching import virtual_columns
from shelduck.text.query.rewriting import with_variables
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import tokenize
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

Answer = DataFrame | PlainRows | Result
Procedure = Callable[..., Answer]
Verbs = TypeVar("Verbs", bound=TableHandle)

_HINT = re.compile(r"/\*\+\s*no_rollup(\s*\(\s*\))?\s*\*/", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class QueryScope:
    """Where names are looked up: the schema of names without one, and a snapshot id.

    ``views`` are the views being read, outermost first, by full name in lower case. ``rollups``
    says whether rollups may answer for their tables.
    """

    schema: str
    version: int | None = None
    views: tuple[str, ...] = ()
    rollups: bool = True


@dataclass(frozen=True, slots=True)
class Sources:
    """What names in queries mean, which whoever makes a `Runner` knows.

    ``relation`` gives the rows of a table, a view or a metadata table, and raises NotFound for a
    name that is none. ``view`` gives those of a view under the names that its query gives to the
    columns. ``functions`` are the table functions by name.
    """

    relation: Callable[[UnitOfWork, Relation, QueryScope], DataFrame]
    view: Callable[[UnitOfWork, ViewVersion], DataFrame]
    functions: Mapping[str, Callable[[Runner, Call], Answer]]


class Runner:
    """One lake, or one open transaction, as statements see it."""

    def __init__(self, session: SqlSession, sources: Sources) -> None:
        self.session = session
        self.state = session.state
        self.unit = session.unit
        self.sources = sources

    def inside(self, unit: UnitOfWork) -> Runner:
        """Return the same for a unit of work that a statement has opened itself."""
        return Runner(SqlSession(self.state, unit), self.sources)

    def query(
        self, query: Query, prefix: str = "", given: Mapping[str, DataFrame] | None = None
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
    def views(self, *parts: Query | Expression | None) -> Iterator[Callable[[str], str]]:
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
        part: Query | Expression,
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
                frames[word] = self.sources.relation(unit, relation, scope)
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
        found = self.sources.functions[call.procedure](self, call)
        if isinstance(found, PlainRows):
            return answer(self.state.spark, found.columns, found.rows)
        assert isinstance(found, DataFrame)
        return found

    def _at_its_time(self, relation: Relation) -> Relation:
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

    def name(self, found: NamedTable, default: str | None = None) -> TableName:
        """Return the schema and table that a name in a statement refers to."""
        name = table_name(found.parts, default or self.state.current.schema)
        branch = self.state.branch
        return name_on_branch(self.view().workspace, name, branch) if branch else name

    def verbs(self, kind: type[Verbs], found: NamedTable) -> Verbs:
        """Return verbs of one kind, of the table that a name in a statement refers to."""
        return kind(self.state, self.name(found), self.unit)

    def version(self, found: NamedTable) -> TableVersion:
        """Return the table as it is now."""
        return self.view().workspace.table(self.name(found))

    def schema(self, found: SchemaName | None) -> tuple[Workspace, SchemaInfo]:
        """Return a schema by its name, or the one of names without a schema, and what has it."""
        workspace = self.view().workspace
        return workspace, workspace.schema(found.schema if found else self.state.current.schema)

    def view(self) -> UnitOfWork:
        """Return the open unit, or a new one that is only read from."""
        return view_of(self.state, self.unit)


Reader = Callable[[Cursor], Statement]
Form = Callable[[Cursor, NamedTable], Statement | None]
"""Reads what stands behind the table of ALTER TABLE; None if it is a column of that name."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One kind of statement: its name in outcomes, its value, how it runs, and how it is read.

    ``read`` reads what stands behind ``words``, which are the title if there are no others, and
    ``also`` has more words with readers of their own. ``forms`` read what stands behind the table
    of ALTER TABLE, with its words. For the words see `phrases`. Without a reader, that of another
    operation returns the value. ``counts``: the outcome has inserted, updated and deleted rows.

    The rest is for sessions that have lakes among their catalogs. ``makes``: it names something
    new, which is the catalog's whatever temporary views there are. ``only_lakes``: it has no
    meaning for a temporary view, and no words in Spark. ``of_current``: it may name no table and no
    schema. ``sparks``: Spark runs it right.
    """

    title: str
    value: type[Statement]
    run: Callable[[Runner, Any], Answer]
    read: Reader | None = None
    words: str = ""
    also: Mapping[str, Reader] = field(default_factory=dict)
    forms: Mapping[str, Form] = field(default_factory=dict)
    counts: bool = False
    makes: bool = False
    only_lakes: bool = False
    of_current: bool = False
    sparks: bool = False

    @property
    def readers(self) -> dict[str, Reader]:
        """What reads the rest of a statement, by the words that begin it."""
        own = {} if self.read is None else {self.words or self.title: self.read}
        return {**own, **self.also}


def phrases(pattern: str) -> Iterator[tuple[str, ...]]:
    """Yield what a pattern means: ``A|B`` is one of both, and ``[A B]`` may be missing."""
    parts = re.findall(r"\[(.*?)\]|(\S+)", pattern)
    for chosen in product(*((may, "") if may else word.split("|") for may, word in parts)):
        yield tuple(" ".join(chosen).split())


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


def text_over(query: Query, frames: Mapping[str, DataFrame]) -> str:
    """Return the text of a query over these frames, in which ``*`` shows no virtual column."""
    named = [r.placeholder for r in query.relations if r.virtual and r.placeholder in frames]
    return query.without({word: virtual_columns(frames[word]) for word in named})


class SqlSession:
    """The context of statements: the transaction that BEGIN opened, or each by itself.

    ``given`` is the unit of a `Transaction`, which statements can neither begin nor end.
    """

    def __init__(self, state: LakeState, given: UnitOfWork | None = None) -> None:
        self.state = state
        self._given = given
        self._begun: UnitOfWork | None = None

    @property
    def unit(self) -> UnitOfWork | None:
        """The open unit of work, None when each statement commits by itself."""
        return self._given or self._begun

    def begin(self) -> Staged:
        """Open a transaction; it reads as of now."""
        if self._given is not None:
            raise InvalidRequest(
                "cannot BEGIN inside lake.transaction(): a transaction is already open"
            )
        if self._begun is not None:
            raise InvalidRequest("a transaction is already open; COMMIT or ROLLBACK it first")
        unit = UnitOfWork(self.state)
        _ = unit.workspace.base
        self._begun = unit
        self._undo_use = self.state.current.undo()
        return Staged()

    def commit(self) -> Committed | Unchanged:
        """Commit everything since BEGIN; after an error the transaction is over too."""
        unit = self._end("COMMIT")
        try:
            return unit.commit()
        except BaseException:
            self._undo_use()
            raise

    def rollback(self) -> Staged:
        """Discard everything since BEGIN, including the schema that USE chose."""
        unit = self._end("ROLLBACK")
        self._undo_use()
        unit.rollback()
        return Staged()

    def close(self) -> None:
        """Roll back the transaction that BEGIN opened, if one is open."""
        if self._begun is not None:
            self.rollback()

    def _end(self, word: str) -> UnitOfWork:
        if self._given is not None:
            raise InvalidRequest(
                f"cannot {word} inside lake.transaction(), which ends with its block; to end it"
                f" earlier, call its {word.lower()}()"
            )
        if self._begun is None:
            raise InvalidRequest(f"cannot {word}: no transaction is open; use BEGIN first")
        unit, self._begun = self._begun, None
        return unit
