"""INSERT: of values or of a query, OVERWRITE, REPLACE WHERE, PARTITION, WITH SCHEMA EVOLUTION."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

from shelduck.engine.named_errors import AnalysisException, first_line
from shelduck.engine.rows.assign import has_rules
from shelduck.engine.session import DataFrame, replaces_partitions, temporary_views, with_values
from shelduck.engine.types import default_sql
from shelduck.errors import InvalidRequest
from shelduck.lake.done import Done, Loaded, inlined
from shelduck.lake.operation import Operation, Runner
from shelduck.lake.results import Result, Staged
from shelduck.lake.unit import UnitOfWork, carry_out
from shelduck.model.changes.evolution import FULL_EVOLUTION, NO_EVOLUTION, Evolution
from shelduck.model.tables.computed import computed_of
from shelduck.model.tables.keys import folds
from shelduck.model.tables.schema import Field, Schema
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked, quote_name
from shelduck.model.types.data_types import Member
from shelduck.read.scan.matching import Where
from shelduck.read.table_rows import TableRows
from shelduck.text.query.expressions import skip_expression
from shelduck.text.query.relations import Found
from shelduck.text.query.rewriting import Rewriting, Span, begins_query, read_query, skip_query
from shelduck.text.query.value_rows import (
    DefaultCell,
    is_values,
    literal_rows,
    time_word,
    with_times,
    without_defaults,
)
from shelduck.text.tokens.arguments import literal_text, read_writer_words
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import TokenKind
from shelduck.text.tokens.parts import Expression, OfTable, Query, Selection
from shelduck.write.appending import Manner, append, is_plain, load
from shelduck.write.changes.append import append_rows, limits_of, literal_batch, placing
from shelduck.write.changes.overwrite import (
    overwrite_matching,
    overwrite_partitions,
    overwrite_table,
    overwrite_where,
)
from shelduck.write.hooks import carry_out_rows, settled_rows
from shelduck.write.schema_evolution import evolving, require_expected
from shelduck.write.statement.row_sources import PartitionValue, partition_value

_MOST_LITERALS = 1000
_SOURCE = "__shelduck_new"
_UNREAD = "INVALID_INLINE_TABLE.FAILED_SQL_EXPRESSION_EVALUATION"


@dataclass(frozen=True, slots=True)
class RowMatch:
    """Which rows the source's rows replace in REPLACE USING and REPLACE ON: those that match.

    They match if they are equal in some columns, or by a condition, in which ``alias`` is the
    source and ``target`` the table.
    """

    columns: tuple[str, ...] = ()
    condition: Expression | None = None
    alias: str | None = None
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Insert(OfTable):
    """INSERT INTO, INSERT OVERWRITE, or INSERT INTO ... REPLACE WHERE, USING or ON.

    ``columns`` is None when the text lists none. With ``by_name`` the source's columns go to the
    columns of their names, else by position; see `targets`. ``defaults`` are words in
    ``source.text`` to replace by the default of the column at that position. ``replaced`` are the
    rows that the source's rows replace, None but for REPLACE WHERE; ``matching`` says the same for
    REPLACE USING and ON. ``default_values``: one row of defaults instead of a source. ``expects``
    are columns that the table must have.
    """

    source: Query
    columns: tuple[str, ...] | None = None
    by_name: bool = False
    mode: Literal["append", "overwrite", "replace_where", "replace_matching"] = "append"
    defaults: tuple[DefaultCell, ...] = ()
    partition: tuple[PartitionValue, ...] = ()
    replaced: Selection | None = None
    schema_evolution: bool = False
    default_values: bool = False
    matching: RowMatch | None = None
    expects: tuple[Member, ...] = ()

    def targets(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the columns, of those of the table, to which the source's go by position.

        They are those that the text lists, else all in the table's order, without those that have
        a value in ``partition``.
        """
        if self.columns is not None:
            return self.columns
        fixed = {p.column.lower() for p in self.partition if p.value is not None}
        return tuple(name for name in columns if name.lower() not in fixed)


def read_insert(cursor: Cursor) -> Insert:
    """Read the statement behind ``INSERT``."""
    evolution, expects = read_writer_words(cursor)
    mode = cursor.accept_any("INTO", "OVERWRITE")
    if not mode:
        raise cursor.failure("INTO or OVERWRITE")
    _refuse_directory(cursor)
    cursor.accept("TABLE")
    first = cursor.peek()
    name = cursor.table_name()
    end = cursor.tokens[cursor.at - 1].end
    target = Found(name, first.start, end, end)
    alias = _alias(cursor)
    _refuse_clauses(cursor)
    partition = _partition(cursor) if cursor.accept("PARTITION") else ()
    _refuse_clauses(cursor)
    columns, by_name = _columns_or_by_name(cursor)
    condition = None
    if cursor.sees("REPLACE", "USING") or cursor.sees("REPLACE", "ON"):
        _require_into(cursor, mode, partition)
        matching = _matching(cursor, target, alias)
        matching = replace(matching, columns=columns, by_name=by_name)
        return replace(matching, schema_evolution=evolution, expects=expects)
    if cursor.sees("REPLACE"):
        condition = _replace_where(cursor, mode, partition)
        columns_behind, by_name_behind = _columns_or_by_name(cursor)
        columns, by_name = columns or columns_behind, by_name or by_name_behind
    _refuse_clauses(cursor)
    is_plain = columns is None and not by_name and not partition and condition is None
    if is_plain and cursor.accept("DEFAULT", "VALUES"):
        cursor.end()
        how: Literal["append", "overwrite"] = "append" if mode == "INTO" else "overwrite"
        return Insert(name, Query(""), mode=how, default_values=True, expects=expects)
    source, replaced = _source(cursor, target, condition)
    source, defaults = without_defaults(source)
    return Insert(
        name,
        source,
        columns,
        by_name,
        "replace_where" if replaced else "overwrite" if mode == "OVERWRITE" else "append",
        defaults,
        partition,
        replaced,
        evolution,
        expects=expects,
    )


def _refuse_directory(cursor: Cursor) -> None:
    ahead = 1 if cursor.sees("LOCAL") else 0
    if cursor.peek(ahead).key == "DIRECTORY" and cursor.peek(ahead + 1).kind is TokenKind.STRING:
        raise cursor.refusal("INSERT OVERWRITE DIRECTORY", "use df.write")


def _refuse_clauses(cursor: Cursor) -> None:
    if cursor.sees("IF"):
        raise cursor.refusal("INSERT ... IF NOT EXISTS", "leave it out")


def _alias(cursor: Cursor) -> str | None:
    """Take the alias of the table before REPLACE ON or USING, or nothing."""
    ahead = 2 if cursor.sees("AS") else 1
    replaces = cursor.peek(ahead).key == "REPLACE" and cursor.peek(ahead + 1).key in ("ON", "USING")
    if not replaces or not cursor.peek(ahead - 1).may_name:
        return None
    cursor.accept("AS")
    return cursor.name("an alias")


def _matching(cursor: Cursor, target: Found, alias: str | None) -> Insert:
    """Read REPLACE USING (…) or REPLACE ON … and the query, to the end."""
    assert target.name is not None
    cursor.expect("REPLACE")
    if cursor.accept("USING"):
        columns = cursor.columns()
        source = read_query(cursor)
        return Insert(
            target.name, source, mode="replace_matching", matching=RowMatch(columns, target=alias)
        )
    cursor.expect("ON")
    condition = skip_expression(cursor, before_query=True, what="a condition")
    query, called = _aliased_query(cursor)
    texts = Rewriting(cursor, [condition, query], target=replace(target, alias_at=None))
    matching = RowMatch((), texts.expression(condition), called, alias or target.parts[-1])
    return Insert(target.name, texts.query(query), mode="replace_matching", matching=matching)


def _aliased_query(cursor: Cursor) -> tuple[Span, str | None]:
    """Take the query that ends the statement; one in brackets may have an alias."""
    first = cursor.at
    if not cursor.sees("("):
        return skip_query(cursor), None
    cursor.skip_group()
    behind = cursor.at
    is_alias = cursor.sees("AS") or cursor.peek(1).kind is TokenKind.END
    if cursor.peek().kind is TokenKind.END or not is_alias:
        cursor.at = first
        return skip_query(cursor), None
    cursor.accept("AS")
    called = cursor.name("an alias")
    cursor.end()
    return (first, behind), called


def _require_into(cursor: Cursor, mode: str, partition: tuple[PartitionValue, ...]) -> None:
    if mode == "OVERWRITE":
        raise cursor.failure("a query (REPLACE is written after INSERT INTO t)")
    if partition:
        raise cursor.failure("a query (write the partition in the condition of REPLACE)")


def _columns_or_by_name(cursor: Cursor) -> tuple[tuple[str, ...] | None, bool]:
    """Take the columns in brackets, BY NAME or neither."""
    by_name = cursor.accept("BY", "NAME")
    columns = None
    if cursor.sees("(") and not begins_query(cursor):
        columns = cursor.columns()
    by_name = cursor.accept("BY", "NAME") or by_name
    if by_name and columns is not None:
        cursor.at -= 2
        raise cursor.failure("a query (with BY NAME, the query names the columns, not a list)")
    return columns, by_name


def _partition(cursor: Cursor) -> tuple[PartitionValue, ...]:
    taken: set[str] = set()

    def value(cursor: Cursor) -> PartitionValue:
        column = cursor.new_column(taken)
        return PartitionValue(column, literal_text(cursor) if cursor.accept("=") else None)

    return cursor.in_brackets(value)


def _replace_where(cursor: Cursor, mode: str, partition: tuple[PartitionValue, ...]) -> Span:
    _require_into(cursor, mode, partition)
    cursor.expect("REPLACE", "WHERE")
    return skip_expression(cursor, before_query=True, what="a condition")


def _source(
    cursor: Cursor, target: Found, condition: Span | None
) -> tuple[Query, Selection | None]:
    if condition is None:
        return read_query(cursor), None
    query = skip_query(cursor)
    texts = Rewriting(cursor, [condition, query], target=target)
    return texts.query(query), Selection(texts.target(None), texts.expression(condition))


def insert(runner: Runner, statement: Insert) -> Result:
    """INSERT INTO … VALUES or SELECT, and the forms that replace rows or change columns."""
    if statement.default_values:
        plain = _plain_columns(runner.version(statement.name))
        row = ", ".join(default_sql(field) or "NULL" for field in plain)
        names = tuple(field.name for field in plain)
        statement = replace(statement, source=Query(f"VALUES ({row})"), columns=names)
    replaces = statement.mode != "append" or statement.partition or statement.schema_evolution
    done = None if replaces or statement.expects else _insert_literals(runner, statement)
    if done is not None:
        return done
    name = runner.name(statement.name)
    source = statement.source
    if is_values(source):
        # Only VALUES can contain DEFAULT, so only VALUES needs the columns of the table here.
        columns = runner.version(statement.name).columns
        source = replace(source, text=with_times(source.text, _times(statement, columns)))
        source = _with_defaults(replace(statement, source=source), columns)
    if replaces:
        return _insert_over(runner, statement, source)
    rows = _planned(runner, statement, source)
    # Spark splits even two rows of a VALUES list into tasks, and each would write a file.
    how = Manner(evolution=_evolution(statement), in_one_task=is_values(source))
    if statement.columns is None:
        how = replace(how, by_position=not statement.by_name)
        return append(runner.state, runner.unit, name, rows, how)
    if len(statement.columns) != len(rows.columns):
        raise InvalidRequest(
            f"INSERT INTO {name} lists {len(statement.columns)} column(s),"
            f" but its rows have {len(rows.columns)}"
        )
    return append(runner.state, runner.unit, name, rows.toDF(*statement.columns), how)


def _planned(runner: Runner, statement: Insert, source: Query) -> DataFrame:
    """Return the rows of an INSERT; Spark reads the texts of dates and times when it plans them."""
    try:
        return runner.query(source)
    except AnalysisException as error:
        if source.text == statement.source.text or error.getCondition() != _UNREAD:
            raise
        raise InvalidRequest(
            f"INSERT INTO {statement.name}: a text is not the date or time that its column needs:"
            f" {first_line(error)}"
        ) from error


def _insert_literals(runner: Runner, statement: Insert) -> Result | None:
    """Insert a few rows of plain literals without Spark; None if Spark is needed."""
    if statement.by_name or statement.defaults:
        return None
    rows = literal_rows(statement.source.text, _MOST_LITERALS)
    if rows is None:
        return None
    has_staged = False

    def stage(unit: UnitOfWork) -> None:
        nonlocal has_staged
        # When staged again after a Conflict, the name may be another table.
        has_staged = False
        table = unit.workspace.table(runner.name(statement.name))
        if runner.unit is not None:
            # A schema change must not end between this statement and the commit.
            table = unit.writer.register(table)
        is_ruled = has_rules(table)
        if is_ruled or not is_plain(table) or len(rows) > limits_of(runner.state.store, table).new:
            return
        batch = literal_batch(table.columns, statement.columns, rows)
        if batch is not None:
            unit.stage(inlined(table, batch))
            has_staged = True

    result = carry_out(runner.state, runner.unit, stage)
    if not has_staged:
        return None
    return result if runner.unit is None else Staged(rows=len(rows), inserted=len(rows))


def _with_defaults(statement: Insert, columns: Schema) -> Query:
    """Return the source with every DEFAULT replaced by the SQL of its column's default."""
    text = statement.source.text
    for cell in statement.defaults:
        names = statement.targets(columns.names)
        if cell.position >= len(names):
            raise InvalidRequest(f"INSERT INTO {statement.name}: DEFAULT is after the last column")
        field = columns.get((names[cell.position],), str(statement.name))
        text = text.replace(cell.placeholder, default_sql(field) or "NULL")
    return replace(statement.source, text=text)


def _times(statement: Insert, columns: Schema) -> list[str | None]:
    """Return for each place of the rows the type of its column, where that is a date or a time."""
    names = statement.targets(columns.names)
    fields = [next((f for f in columns if f.name.lower() == n.lower()), None) for n in names]
    return [time_word(f) for f in fields]


def _evolution(statement: Insert) -> Evolution:
    found = FULL_EVOLUTION if statement.schema_evolution else NO_EVOLUTION
    return replace(found, expects=statement.expects)


def _insert_over(runner: Runner, statement: Insert, source: Query) -> Result:
    """Append rows of ``source``, in which DEFAULT is resolved, or replace others by them."""
    evolution = _evolution(statement)

    def prepare(unit: UnitOfWork) -> Done | Loaded:
        inside = runner.inside(unit)
        rows = settled_rows(unit, inside.name(statement.name))
        require_expected(rows.table, statement.expects)
        own = _values(inside, source)
        new = _named(statement, rows.table, own)
        if statement.mode == "append" and folds(rows.table):
            return load(unit, inside.name(statement.name), new, Manner(evolution=evolution))

        def write(rows: TableRows) -> Done:
            if statement.matching is not None:
                return _matched(runner, inside, statement, rows, (own, new))
            return _written(runner, inside, statement, rows, new)

        return evolving(runner.state, rows, new.schema, evolution, write)

    return carry_out_rows(runner.state, runner.unit, prepare)


def _values(inside: Runner, source: Query) -> DataFrame:
    rows = inside.query(source)
    # Spark splits even two literal rows into several tasks, and each would write a file.
    return rows.coalesce(1) if is_values(source) else rows


def _written(
    runner: Runner, inside: Runner, statement: Insert, rows: TableRows, new: DataFrame
) -> Done:
    spark, how = runner.state.spark, placing(runner.state, rows.table)
    if statement.mode == "append":
        return append_rows(spark, new, rows.table, how)
    if statement.replaced is not None:
        condition = statement.replaced.condition
        assert condition is not None
        with inside.views(condition) as named:
            where = Where(named(condition.text), statement.replaced.target.alias)
            return overwrite_where(spark, rows, new, where, how)
    if rows.table.partition and replaces_partitions(spark):
        return overwrite_partitions(spark, rows, new, how)
    fixed = _fixed(statement, rows.table)
    if fixed:
        same = " AND ".join(f"{backticked(name)} <=> {value}" for name, value in fixed.items())
        return overwrite_where(spark, rows, new, Where(same), how)
    return overwrite_table(spark, rows, new, how)


def _matched(
    runner: Runner,
    inside: Runner,
    statement: Insert,
    rows: TableRows,
    source: tuple[DataFrame, DataFrame],
) -> Done:
    """Replace the rows that match a new one; ``source`` has those under both kinds of names."""
    spark, matching = runner.state.spark, statement.matching
    assert matching is not None
    own, new = source
    table, alias = matching.target or rows.table.name, matching.alias or _SOURCE
    for name in matching.columns:
        rows.table.columns.get((name,), rows.table.full_name)
    condition = matching.condition
    equal = " AND ".join(
        f"{backticked(alias)}.{column} = {backticked(table)}.{column}"
        for column in map(backticked, matching.columns)
    )

    @contextmanager
    def chosen(written: DataFrame) -> Iterator[Where]:
        # The condition has the names of the query.
        names = zip(new.columns, own.columns, strict=True)
        known = written.selectExpr(*[f"{backticked(n)} AS {backticked(o)}" for n, o in names])
        with inside.views(condition) as told, temporary_views(spark, {_SOURCE: known}) as made:
            on = equal if condition is None else told(condition.text)
            text = f"EXISTS (SELECT 1 FROM {made[_SOURCE]} AS {backticked(alias)} WHERE {on})"
            yield Where(text, table)

    return overwrite_matching(spark, rows, new, chosen, placing(runner.state, rows.table))


def _named(statement: Insert, table: TableVersion, rows: DataFrame) -> DataFrame:
    """Return the rows under the names of their target columns."""
    fixed = _fixed(statement, table)
    if not statement.by_name:
        listed = statement.targets(table.columns.names)
        if len(listed) > len(rows.columns):
            listed = statement.targets([f.name for f in _plain_columns(table)])
        if statement.schema_evolution and statement.columns is None:
            # Those behind the table's columns are new ones, under their own names.
            listed += tuple(rows.columns[len(listed) :])
        if len(listed) != len(rows.columns):
            raise InvalidRequest(
                f"INSERT into {table.full_name} needs rows with {len(listed)} column(s),"
                f" {', '.join(map(quote_name, listed))}, but its rows have {len(rows.columns)}"
            )
        rows = rows.toDF(*listed)
    return with_values(rows, fixed)


def _plain_columns(table: TableVersion) -> list[Field]:
    """Return the columns that the table does not compute itself."""
    computed = computed_of(table.properties, table.full_name)
    return [f for f in table.columns if computed.of(f.id) is None]


def _fixed(statement: Insert, table: TableVersion) -> dict[str, str]:
    """Return the values of the PARTITION clause by column, as SQL."""
    identities = {k.column_id for k in table.partition if k.transform == "identity"}
    found: dict[str, str] = {}
    for given in statement.partition:
        field = table.columns.get((given.column,), table.full_name)
        if field.id not in identities:
            raise InvalidRequest(
                f"{table.full_name} is not partitioned by {quote_name(field.name)} itself; use"
                " REPLACE WHERE instead of PARTITION, or leave it out"
            )
        if given.value is not None:
            found[field.name] = partition_value(field, given.value, table.full_name)
    return found


OPERATIONS = (Operation("INSERT", Insert, insert, read_insert, counts=True),)
