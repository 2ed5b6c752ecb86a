"""``spark.sql`` of a session with lakes: what Spark cannot run, the lake of the statement runs."""

from __future__ import annotations

import copy
import json
import re
import uuid
from collections.abc import Callable
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import replace
from enum import Enum
from functools import cache, partial
from typing import Any

from shelduck.doors.attached.attached_catalog import AttachedLake
from shelduck.doors.attached.attached_table import AttachedTable
from shelduck.doors.attached.enclosed import (
    immediate_in,
    is_immediate,
    is_script,
    refuse_transaction,
    script_refusal,
    statements_in,
    with_names,
)
from shelduck.doors.sql.catalogs import (
    LakeNames,
    is_for_tables,
    is_left_to_spark,
    owner,
    temporary_view,
    within,
    without_catalog,
)
from shelduck.doors.sql.execution import as_frame, run_statement, run_with_macros, runner_of
from shelduck.doors.sql.explain import Explain
from shelduck.doors.sql.parse import parse
from shelduck.doors.sql.transactions import SetVariable
from shelduck.engine.bridge import engine_for
from shelduck.engine.bridge.lake_catalog import (
    QUERY,
    held_frames,
    is_query,
    run_script,
    statements_of_script,
)
from shelduck.engine.named_errors import (
    ParseException,
    SparkError,
    as_sparks,
    lacks_function,
    told_as_sparks,
    was_unable,
)
from shelduck.engine.session import (
    DataFrame,
    SparkSession,
    branch_of,
    is_catalog,
    is_ntz,
    temporary_views,
)
from shelduck.errors import InvalidRequest, NotFound, ShelduckError, Unsupported
from shelduck.lake.branch_names import may_be_twin
from shelduck.lake.operation import Runner, SqlSession
from shelduck.lake.results import PlainRows, TableName, table_name
from shelduck.lake.state import LakeState
from shelduck.model.tables.table_version import DEFAULT_SCHEMA
from shelduck.model.text.names import LONE_SURROGATE, inside, schema_word, split_name
from shelduck.objects.statement.macros import without_macros
from shelduck.objects.statement.views import AlterView, CreateViewStatement
from shelduck.objects.targets import refuse_options
from shelduck.text.foreign_words import SPARKS, is_sparks_too, named_object
from shelduck.text.query.travel import in_sparks_words
from shelduck.text.tokens.lexer import Token, tokenize
from shelduck.text.tokens.parameters import with_parameters
from shelduck.text.tokens.parts import Query, Statement

_AS_JSON = re.compile(r"\s*DESC(RIBE)?\s.*\sAS\s+JSON\s*;?\s*$", re.IGNORECASE | re.DOTALL)
# What Spark tells of the view that stands for a table.
_SPARKS_OWN = ("view_", "created_", "last_access", "collation")
_TIMES = ("versionasof", "timestampasof")

Sql = Callable[..., DataFrame]


class TextKind(Enum):
    """What a text is, before anything of it runs."""

    SPARKS = "none of a lake's business"
    QUERY = "a query, which does nothing before its rows are read"
    STATEMENT = "what `SessionSql.run` runs at once"


class SessionSql:
    """The meaning of a session's statements; ``lakes`` are those attached to it, by lower name."""

    def __init__(self, spark: SparkSession, lakes: dict[str, AttachedLake] | None = None) -> None:
        self.lakes: dict[str, AttachedLake] = {} if lakes is None else lakes
        self._spark = spark

    def run(self, original: Sql, text: str, args: Any, kwargs: dict[str, Any]) -> DataFrame:
        """Run a text as `SparkSession.sql` does; ``original`` is that method.

        Of several statements, each is run and the last one answers.
        """
        names = self._names()
        several = self._several(text, args, kwargs, names)
        if several:
            *before, text = several
            for one in before:
                self.run(original, one, None, {})
            return self.run(original, text, None, {})
        with told_as_sparks():
            script = None if kwargs else self._script(text, args, names)
            if script is not None:
                return script
            text = self._unfolded(original, text, args, names)
            found, unread = self._taken(text, args, names)
            if found is not None:
                if kwargs:
                    return self._with_frames(original, text, args, kwargs)
                lake, statement = found
                return self._by_lake(lake, statement, text, args, names)
        try:
            # PySpark makes views of the frames among them, which keep their snapshots.
            with held_frames() if kwargs else nullcontext():
                rows = self._sparks(lambda text: original(text, args, **kwargs), text, unread)
            is_json = unread is not None and _AS_JSON.match(text) is not None
            return self._described(rows) if is_json else rows
        except SparkError as error:
            answer = None if kwargs else self._with_macros(text, args, names, error)
            if answer is None:
                raise
            return answer

    def _with_frames(
        self, original: Sql, text: str, args: Any, frames: dict[str, Any]
    ) -> DataFrame:
        """Run a statement of a lake in which ``{name}`` is a frame, as in Spark's queries."""
        if not all(isinstance(frame, DataFrame) for frame in frames.values()):
            raise Unsupported(
                "a statement that changes a lake takes frames as {names}, no columns and values;"
                " pass values as args={...}"
            )
        with temporary_views(self._spark, {f"__{name}_": f for name, f in frames.items()}) as made:
            names = {name: made[f"__{name}_"] for name in frames}
            return self.run(original, text.format_map(names), args, {})

    def kind(self, text: str) -> TextKind:
        """Return what a text is for those who plan it before they `run` it."""
        names = self._names()
        if not self._concerns_lakes(text, names):
            return TextKind.SPARKS
        if is_immediate(text):
            return TextKind.STATEMENT
        try:
            statements = self._parsed(text)
        except (InvalidRequest, Unsupported):
            return TextKind.QUERY if is_query(self._spark, text) else TextKind.STATEMENT
        if len(statements) == 1 and isinstance(statements[0], Query):
            return TextKind.QUERY
        is_sparks = len(statements) == 1 and is_left_to_spark(statements[0], names)
        return TextKind.SPARKS if is_sparks else TextKind.STATEMENT

    def _several(self, text: str, args: Any, kwargs: dict[str, Any], names: LakeNames) -> list[str]:
        """Return the statements of a text about lakes if it has more than one."""
        if ";" not in text or kwargs or not self._concerns_lakes(text, names, args):
            return []
        with told_as_sparks(), suppress(InvalidRequest):
            found = statements_in(_bound(text, args))
            return found if len(found) > 1 else []
        return []

    def _script(self, text: str, args: Any, names: LakeNames) -> DataFrame | None:
        """Have Spark run a script, and the lakes their statements in it; None if it has none."""
        if not (is_script(text) and names.reads and self._concerns_lakes(text, names, args)):
            return None
        bound = _bound(text, args)
        try:
            found = statements_of_script(self._spark, bound)
        except SparkError:
            # Spark says why it cannot read it.
            return None
        ours = [one for one in found if self._is_ours(one, names)]
        lake = next(iter(self.lakes))
        return run_script(self._spark, bound, ours, lake) if ours else None

    def _is_ours(self, text: str, names: LakeNames) -> bool:
        """Return whether a lake runs a statement of a script, be it to refuse it."""
        if is_immediate(text):
            return True
        try:
            found, _ = self._taken(text, None, names)
        except ShelduckError:
            return True
        return found is not None and not isinstance(found[1], SetVariable)

    def _unfolded(self, original: Sql, text: str, args: Any, names: LakeNames) -> str:
        """Return the statement that is meant: that in EXECUTE IMMEDIATE if it is a lake's.

        A name in IDENTIFIER(…) that has to be computed is computed.
        """
        refuse_transaction(text)

        def evaluate(items: str) -> list[Any]:
            [row] = original(f"SELECT {items}", args).collect()
            return list(row)

        if not is_immediate(text):
            is_computed = self._concerns_lakes(text, names, args)
            return with_names(text, evaluate) if is_computed else text
        found = immediate_in(text)
        inner = found.text(evaluate)
        if not self._concerns_lakes(inner, names):
            return text
        bound = found.bound(inner, evaluate)
        if self._taken(bound, None, names)[0] is None:
            return text
        if found.has_into:
            raise Unsupported(
                f"EXECUTE IMMEDIATE with INTO cannot run a statement of a lake: {inner!r}; use SET"
                " VAR x = (SELECT ...)"
            )
        return bound

    def _by_lake(
        self, lake: str, statement: Statement, text: str, args: Any, names: LakeNames
    ) -> DataFrame:
        """Have a lake run a statement of this text."""
        found = run_with_macros(
            self._runner(lake, names),
            statement,
            lambda: _bound(text, args),
            lambda again: _as_lakes(self._parsed(again)[0], lake, names),
            lake,
        )
        return as_frame(self._spark, found)

    def _with_macros(
        self, text: str, args: Any, names: LakeNames, error: Exception
    ) -> DataFrame | None:
        """Have the lake whose macros a query calls run it; None if it calls none."""
        if not (lacks_function(error) and self._concerns_lakes(text, names)):
            return None
        with told_as_sparks():
            bound = _bound(text, args)
            for lake in self.lakes:
                runner = self._runner(lake, names)
                again = without_macros(runner, bound, error, lake)
                if again is not None:
                    statement = _as_lakes(self._parsed(again)[0], lake, names)
                    return as_frame(self._spark, run_statement(runner, statement))
        return None

    def _runner(self, lake: str, names: LakeNames) -> Runner:
        state = self._state(self.lakes[lake])
        state.current.schema = self._schema(self.lakes[lake], names) or state.current.schema
        return runner_of(SqlSession(state))

    def _concerns_lakes(self, text: str, names: LakeNames, args: Any = None) -> bool:
        lowered = text.lower()
        if args and "identifier" in lowered:
            # The name may be in a parameter.
            lowered += str(args).lower()
        return names.current.lower() in self.lakes or any(n in lowered for n in self.lakes)

    def _sparks(
        self, run: Callable[[str], DataFrame], text: str, unread: ShelduckError | None
    ) -> DataFrame:
        """Have Spark run a text; ``unread`` is why it cannot be parsed here, if it cannot.

        It is raised if Spark cannot get the text or parse it either, or only says that tables of a
        lake do not support the statement.
        """
        if unread is not None and LONE_SURROGATE.search(text):
            raise as_sparks(unread) from unread
        try:
            return self._at_one_snapshot(lambda: run(text))
        except ParseException:
            in_its_words = in_sparks_words(text)
            if in_its_words != text:
                with suppress(ParseException):
                    return self._at_one_snapshot(lambda: run(in_its_words))
            if unread is None:
                raise
            raise as_sparks(unread) from unread
        except SparkError as error:
            if unread is None or not was_unable(error):
                raise
            raise as_sparks(unread) from error

    def _described(self, found: DataFrame) -> DataFrame:
        """Return what DESCRIBE AS JSON says, without how Spark reads a table of a lake."""
        [(text,)] = found.collect()  # one row of text
        told = json.loads(text)
        lake = self.lakes.get(str(told.get("catalog_name")).lower())
        if lake is None:
            return found
        name = TableName(schema_word(told["namespace"]), told["table_name"])
        is_table = AttachedTable(lake.state, told["catalog_name"], name).is_there
        kept = {k: v for k, v in told.items() if not k.startswith(_SPARKS_OWN)}
        kept["type"] = "MANAGED" if is_table else "VIEW"
        row = (json.dumps(kept, separators=(",", ":")),)
        return as_frame(self._spark, PlainRows("json_metadata string", [row]))

    def table(self, name: str) -> AttachedTable | None:
        """Return the table of a lake that a name refers to, None if it refers to none."""
        try:
            parts = split_name(name)
        except InvalidRequest:
            return None
        names = self._names()
        catalog = names.lake_of(parts)
        if catalog is None:
            return None
        parts = inside(parts, catalog)
        if len(parts) > 2 and catalog not in names.nesting and not may_be_twin(parts[-1]):
            return None
        lake = self.lakes[catalog]
        found = table_name(parts, self._schema(lake, names) or DEFAULT_SCHEMA)
        return AttachedTable.meant(self._state(lake), catalog, found)

    def has(self, name: str, length: int) -> bool | None:
        """Return whether a lake has a schema or table, None for a name that is not in a lake."""
        with suppress(InvalidRequest):
            parts = split_name(name)
            lake = self.lakes.get(parts[0].lower())
            if lake is not None and len(parts) == length:
                what = ("exists", *parts[1:]) if length > 2 else ("schema exists", parts[1], "")
                return bool(list(lake.answer(["", *what], None)))
        return None

    def _names(self) -> LakeNames:
        current = str(self._spark.catalog.currentCatalog())
        engine = engine_for(self._spark)
        temporary = cache(engine.is_temporary_view)
        shared = next((lake.database for lake in self.lakes.values()), "")
        nesting = [n for n, lake in self.lakes.items() if lake.state.store.format.nests]
        foreign = cache(partial(is_catalog, self._spark))
        return LakeNames(self.lakes, current, temporary, engine.has_jvm, shared, nesting, foreign)

    def _taken(
        self, text: str, args: Any, names: LakeNames
    ) -> tuple[tuple[str, Statement] | None, ShelduckError | None]:
        """Return whose statement it is, or why it cannot be parsed, if that may matter."""
        if not self._concerns_lakes(text, names, args):
            return None, None
        misfit = None
        try:
            try:
                bound = _bound(text, args)
            except InvalidRequest as error:
                bound, misfit = text, error
            statements = self._parsed(bound)
        except (InvalidRequest, Unsupported) as error:
            return None, _told_of_lake(bound, error, names)
        if len(statements) != 1:
            return None, None
        [statement] = statements
        lake = owner(statement, names)
        if lake is None:
            _refuse_options(statement, names)
            return None, _about_temporary(statement, names)
        if misfit is not None:
            raise misfit
        return (lake, _as_lakes(statement, lake, names)), None

    def _parsed(self, text: str) -> list[Statement]:
        return parse(text, ntz="timestamp" in text.lower() and is_ntz(self._spark))

    def _at_one_snapshot(self, act: Callable[[], DataFrame]) -> DataFrame:
        engine = engine_for(self._spark)
        if not engine.has_jvm:
            return act()
        query = uuid.uuid4().hex
        with ExitStack() as pins:
            pins.enter_context(engine.with_property(QUERY, query))
            for lake in list(self.lakes.values()):
                pins.enter_context(lake.pinned(query))
            return act()

    def _schema(self, lake: AttachedLake, names: LakeNames) -> str | None:
        """Return the schema of names without one, None if the lake is not the current catalog."""
        if self.lakes.get(names.current.lower()) is not lake:
            return None
        return schema_word(split_name(str(self._spark.catalog.currentDatabase())))

    def _state(self, lake: AttachedLake) -> LakeState:
        """Return the lake as this session reads and writes it."""
        state = copy.copy(lake.state)
        state.given_spark, state.branch = self._spark, branch_of(self._spark)
        return state


def _told_of_lake(
    text: str, error: InvalidRequest | Unsupported, names: LakeNames
) -> ShelduckError | None:
    """Return why a text cannot be read if that may matter; raise it if Spark must not try.

    It must not if the text is about an object of a lake, and nobody but the lake can answer.
    """
    tokens = _tokens(text)
    if tokens is not None and is_script(text):
        return script_refusal(text)
    named = None if tokens is None else named_object(tokens)
    if tokens is None or named is None:
        return None if error.about == SPARKS else error
    if names.lake_of(named) is None or (len(named) == 1 and names.temporary(named[0])):
        return None
    if error.about == SPARKS:
        return None
    if isinstance(error, Unsupported) or not is_sparks_too(tokens):
        raise error
    return error


def _tokens(text: str) -> list[Token] | None:
    try:
        return tokenize(text)
    except InvalidRequest:
        return None


def _bound(text: str, args: Any) -> str:
    return with_parameters(text, args) if args else text


def _as_lakes(statement: Statement, lake: str, names: LakeNames) -> Statement:
    """Return a statement as the lake itself understands it."""
    statement = within(statement, lake, names)
    if isinstance(statement, CreateViewStatement | AlterView):
        return replace(statement, text=without_catalog(statement.text, lake))
    return statement


def _about_temporary(statement: Statement, names: LakeNames) -> ShelduckError | None:
    """Return what to say if Spark does not know a statement about a temporary view."""
    view = temporary_view(statement, names)
    if view is None:
        return None
    lake, name = names.lake_for(view.parts), view.parts[-1]
    told = NotFound(
        f"{view} is a temporary view, which does not support this statement; for a table of the"
        f" lake, write {lake}.{DEFAULT_SCHEMA}.{name}",
        about="view instead of table",
    )
    if is_for_tables(statement):
        raise told
    return told


def _refuse_options(statement: Statement, names: LakeNames) -> None:
    """Refuse options of a lake's tables in a query that Spark runs: it ignores all but two."""
    query = statement.query if isinstance(statement, Explain) else statement
    for relation in query.relations if isinstance(query, Query) else ():
        if relation.options and names.lake_of(relation.name.parts) is not None:
            refuse_options(relation, _TIMES)
