"""What Hive's statements say of partitions and of all columns at once, and ANALYZE."""

from __future__ import annotations

from shelduck.model.changes.constraining import AddConstraint
from shelduck.model.tables.constraints import ConstraintKind
from shelduck.model.tables.partition import NULL_DIRECTORY
from shelduck.model.text.quoting import quote_name
from shelduck.text.ddl.column_clauses import Beside
from shelduck.text.ddl.create_clauses import read_columns
from shelduck.text.ddl.partitioning import read_partition_field
from shelduck.text.statements import statement_values as st
from shelduck.text.tokens.arguments import literal_text, text_of
from shelduck.text.tokens.cursor import Cursor

_EQUAL = ("=", "==")
_COMPARISONS = (*_EQUAL, "<>", "!=", "<", "<=", ">", ">=")


def read_partition_spec(cursor: Cursor) -> st.PartitionSpec:
    """Take ``PARTITION (key = value, …)``; a value is a literal, and NULL goes with ``=`` only."""
    cursor.expect("PARTITION")
    taken: set[str] = set()

    def item(cursor: Cursor) -> tuple[str, str, str]:
        column = cursor.new_column(taken)
        comparison = cursor.accept_any(*_COMPARISONS)
        if not comparison:
            raise cursor.failure("a comparison, such as = or <")
        value = literal_text(cursor)
        if comparison in _EQUAL:
            return column, "=", value
        if is_null_key(value):
            what = f"PARTITION ({quote_name(column)} {comparison} {value})"
            raise cursor.refusal(what, "NULL is not compared; use = for the partition of NULL")
        return column, comparison, value

    return st.PartitionSpec(cursor.in_brackets(item))


def is_null_key(literal: str) -> bool:
    """Return whether a literal of a PARTITION clause means NULL, as Spark reads it."""
    return literal.upper() == "NULL" or text_of(literal) == NULL_DIRECTORY


def read_partition_change(
    cursor: Cursor, name: st.NamedTable, if_exists: bool
) -> st.Statement | None:
    """Read a change of partitions, all columns, Iceberg's key or an identity; None for others."""
    if cursor.sees("ALTER") or cursor.sees("CHANGE"):
        begin = cursor.at + 1 + (cursor.peek(3).key == "SYNC")
        if [cursor.peek(begin - cursor.at + n).key for n in (1, 2)] != ["SYNC", "IDENTITY"]:
            return None
        cursor.at = begin
        column = cursor.name("a column")
        cursor.expect("SYNC", "IDENTITY")
        cursor.end()
        return st.SyncIdentity(name, column, if_exists)
    if any(cursor.sees(word, "PARTITION", "FIELD") for word in ("ADD", "DROP", "REPLACE")):
        return read_partition_field(cursor, name, if_exists)
    for words in (("DROP", "PARTITION", "("), ("DROP", "IF", "EXISTS", "PARTITION", "(")):
        if cursor.sees(*words):
            cursor.expect("DROP")
            return _drop_partitions(cursor, name)
    if cursor.accept("SET", "IDENTIFIER", "FIELDS"):
        # Iceberg's name for a key that nobody enforces.
        fields = tuple(cursor.listed(lambda c: c.name("a column")))
        cursor.end()
        key = AddConstraint(ConstraintKind.PRIMARY_KEY, "identifier_fields", columns=fields)
        return st.AlterTableStatement(name, (key,), if_exists)
    if cursor.accept("REPLACE", "COLUMNS"):
        beside = Beside()
        columns = read_columns(cursor, beside)
        if beside.constraints:
            raise cursor.refusal("a constraint in REPLACE COLUMNS", "use ADD CONSTRAINT")
        cursor.end()
        return st.ReplaceColumns(name, columns, if_exists)
    return None


def _drop_partitions(cursor: Cursor, name: st.NamedTable) -> st.DropPartitions:
    if_exists = cursor.accept_if("EXISTS")
    specs = [read_partition_spec(cursor)]
    while cursor.accept(","):
        specs.append(read_partition_spec(cursor))
    if cursor.sees("PURGE"):
        raise cursor.refusal(
            "DROP PARTITION ... PURGE", "files are kept for time travel; leave it out"
        )
    cursor.end()
    return st.DropPartitions(name, tuple(specs), if_exists)


def read_analyze(cursor: Cursor) -> st.Analyze:
    """Read the statement behind ``ANALYZE TABLE``."""
    name = cursor.table_name()
    of_partition = cursor.sees("PARTITION")
    if of_partition:
        read_partition_spec(cursor)
    cursor.expect("COMPUTE", "STATISTICS")
    if of_partition and cursor.sees("FOR"):
        raise cursor.refusal(
            "ANALYZE TABLE ... PARTITION ... FOR COLUMNS",
            "values are counted for the whole table; leave PARTITION out",
        )
    columns: tuple[str, ...] | None = ()
    if cursor.accept("FOR", "COLUMNS"):
        columns = tuple(cursor.listed(lambda c: c.name("a column")))
    elif cursor.accept("FOR", "ALL", "COLUMNS"):
        columns = None
    else:
        cursor.accept("NOSCAN")
    cursor.end()
    return st.Analyze(name, columns)
