"""Columns and constraints as CREATE TABLE and ALTER TABLE write them, and what expressions name.

CREATE TABLE writes computed columns as GENERATED … AS, with an expression or IDENTITY.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from sqlglot import expressions as exp

from shelduck.errors import Unsupported
from shelduck.model.changes.constraining import (
    AddConstraint,
    ConstraintChange,
    DropConstraint,
    ValidateConstraint,
)
from shelduck.model.changes.definition import Definition, Position
from shelduck.model.tables.computed import Identity, WrittenComputed
from shelduck.model.tables.constraints import ConstraintKind
from shelduck.model.tables.keys import Aggregation
from shelduck.model.tables.row_expressions import NameUse, WrittenExpression
from shelduck.model.tables.schema import Default
from shelduck.model.text.names import quote_name
from shelduck.text.ddl.defaults import read_default
from shelduck.text.query.expressions import skip_expression
from shelduck.text.query.harmless import refuse_harmful
from shelduck.text.query.translate import read_tree
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import Token, TokenKind, name_of, tokenize

KEY_WORDS = {
    "PRIMARY": ConstraintKind.PRIMARY_KEY,
    "UNIQUE": ConstraintKind.UNIQUE,
    "FOREIGN": ConstraintKind.FOREIGN_KEY,
}
# Functions whose value does not follow from a row, by what to say of them.
_NOT_OF_ROW = {
    **dict.fromkeys(
        """rand randn random randstr uniform uuid shuffle monotonically_increasing_id
        input_file_name spark_partition_id input_file_block_start
        input_file_block_length""".split(),
        "has another value each time",
    ),
    **dict.fromkeys(
        """current_user session_user user current_database current_schema current_catalog
        current_path current_timezone version""".split(),
        "asks the session",
    ),
}
_CLOCK = dict.fromkeys(
    """current_timestamp current_date current_time localtimestamp localtime now curdate
    unix_timestamp""".split(),
    "tells the time",
)
# Spark calls them without brackets too, where no column has their name.
_BARE = frozenset(
    """current_timestamp current_date current_time localtimestamp localtime current_user
    session_user user""".split()
)
# Nothing else asks how large a number its columns can hold.
_EXACT = (
    *(exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Neg),
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.Between, exp.In),
    *(exp.Is, exp.Not, exp.And, exp.Or, exp.Add, exp.Sub, exp.Mul, exp.Mod),
    *(exp.Case, exp.If, exp.Coalesce),
)
_NO_ROW = "{0} {1!r} {2}; use an expression over the columns of one row"
# What says that nobody enforces a key, as is the case.
_Words = tuple[tuple[str, ...], ...]
_SAID_OF_KEYS: _Words = (
    ("NOT", "ENFORCED"),
    ("DEFERRABLE",),
    ("INITIALLY", "DEFERRED"),
    ("NORELY",),
)
_SAID_OF_FOREIGN: _Words = (
    ("MATCH", "FULL"),
    ("ON", "UPDATE", "NO", "ACTION"),
    ("ON", "DELETE", "NO", "ACTION"),
)


def _begins_constraint(cursor: Cursor) -> bool:
    """Return whether a constraint, named or not, comes next and not a column of that name."""
    if cursor.sees("CONSTRAINT"):
        return cursor.peek(1).may_name and cursor.peek(2).key in ("CHECK", *KEY_WORDS)
    word, behind = cursor.peek().key, cursor.peek(1).key
    wanted = {"CHECK": ("(",), "UNIQUE": ("(", "KEY"), "PRIMARY": ("KEY",), "FOREIGN": ("KEY",)}
    return behind in wanted.get(word, ())


def take_constraint(
    cursor: Cursor, into: list[AddConstraint], *, is_new_table: bool = False
) -> bool:
    """Take a constraint of a table if one comes next, and return whether it did."""
    if not _begins_constraint(cursor):
        return False
    into.append(_constraint(cursor, is_new_table=is_new_table))
    return True


def _constraint(cursor: Cursor, *, is_new_table: bool = False) -> AddConstraint:
    """Take a constraint of a table, with its name if it has one."""
    name = cursor.name("the name of a constraint") if cursor.accept("CONSTRAINT") else None
    if cursor.sees("CHECK"):
        return _check(cursor, name, is_new_table=is_new_table)
    kind = KEY_WORDS[cursor.take().key]
    if kind is ConstraintKind.UNIQUE:
        _refuse_model(cursor)
    else:
        cursor.expect("KEY")
    columns = cursor.columns()
    return _key(cursor, name, kind, columns)


def read_constraint_change(cursor: Cursor) -> ConstraintChange | None:
    """Read ADD, DROP and VALIDATE CONSTRAINT; None where a column follows."""
    if cursor.sees("ADD"):
        cursor.at += 1
        if _begins_constraint(cursor):
            return _constraint(cursor)
        cursor.at -= 1
    word = cursor.peek().key
    named = 4 if cursor.sees("DROP", "CONSTRAINT", "IF") else 2
    if word not in ("DROP", "VALIDATE") or not cursor.sees(word, "CONSTRAINT"):
        return None
    if not cursor.peek(named).may_name or cursor.peek(named).kind is TokenKind.END:
        return None
    cursor.expect(word, "CONSTRAINT")
    if_exists = word == "DROP" and cursor.accept_if("EXISTS")
    name = cursor.name("the name of a constraint")
    if word == "VALIDATE":
        return ValidateConstraint(name)
    cursor.accept_any("CASCADE", "RESTRICT")
    return DropConstraint(name, if_exists)


def read_column_constraint(cursor: Cursor, column: str) -> AddConstraint | None:
    """Take a constraint behind the type of a column, None if none comes next."""
    start = cursor.at
    name = cursor.name("the name of a constraint") if cursor.accept("CONSTRAINT") else None
    if cursor.sees("CHECK"):
        return _check(cursor, name, is_new_table=True)
    if cursor.sees("PRIMARY", "KEY"):
        cursor.expect("PRIMARY", "KEY")
        return _key(cursor, name, ConstraintKind.PRIMARY_KEY, (column,))
    if cursor.accept("UNIQUE"):
        _refuse_model(cursor)
        return _key(cursor, name, ConstraintKind.UNIQUE, (column,))
    if cursor.sees("REFERENCES") or cursor.accept("FOREIGN", "KEY"):
        return _key(cursor, name, ConstraintKind.FOREIGN_KEY, (column,))
    cursor.at = start
    return None


def read_expression(cursor: Cursor, what: str, *, may_tell_time: bool) -> WrittenExpression:
    """Take an expression in brackets."""
    first = cursor.at + 1
    if not cursor.sees("("):
        raise cursor.failure(f"{what} in brackets")
    cursor.skip_group()
    if cursor.at - 1 == first:
        raise cursor.failure(what, first)
    text = cursor.text[cursor.tokens[first].start : cursor.tokens[cursor.at - 2].end]
    return written_expression(text, what, may_tell_time=may_tell_time)


def written_expression(text: str, what: str, *, may_tell_time: bool) -> WrittenExpression:
    """Return an expression with the columns that it names.

    Raises InvalidRequest for a text that is not an expression, and Unsupported for one whose value
    does not follow from its row alone.
    """
    tree = read_tree(text, "spark", what)
    _require_of_row(tree, text, what)
    uses = {use.start: use for use in map(_use, tree.find_all(exp.Column))}
    for name, token, is_bare in _functions(text):
        why = _NOT_OF_ROW.get(name) or (None if may_tell_time else _CLOCK.get(name))
        if is_bare:
            known = NameUse(token.start, (token.text,), (token.end,), is_function=why is None)
            uses[token.start] = known
        elif why is not None:
            raise Unsupported(_NO_ROW.format(what, text, why))
    is_exact = all(isinstance(n, _EXACT) and not n.args.get("is_string") for n in tree.walk())
    return WrittenExpression(text, tuple(uses[start] for start in sorted(uses)), is_exact)


def _functions(text: str) -> Iterator[tuple[str, Token, bool]]:
    """Yield the functions that a text may call, by name, and whether one has no brackets."""
    before = ""
    for token, behind in pairwise(tokenize(text)):
        name = name_of(token).lower() if token.may_name else ""
        if behind.key == "(":
            yield name, token, False
        elif token.kind is TokenKind.WORD and name in _BARE and before != ".":
            yield name, token, True
        before = token.key


def _check(cursor: Cursor, name: str | None, *, is_new_table: bool) -> AddConstraint:
    cursor.expect("CHECK")
    made = read_expression(cursor, "a condition", may_tell_time=True)
    validates = True
    while True:
        if cursor.sees("NOT", "ENFORCED"):
            raise cursor.refusal(
                "CHECK ... NOT ENFORCED", "every write is checked; leave it out, or drop the CHECK"
            )
        if not is_new_table and cursor.accept("NOT", "VALID"):
            validates = False
        elif not cursor.accept("ENFORCED"):
            break
    return AddConstraint(ConstraintKind.CHECK, name, made, validates=validates)


def _refuse_model(cursor: Cursor) -> None:
    if cursor.sees("KEY"):
        raise cursor.refusal(
            "UNIQUE KEY among the columns",
            "write UNIQUE (...) for information, or UNIQUE KEY (...) behind the columns for a table"
            " in which loads replace the row of a key",
        )


def _key(
    cursor: Cursor, name: str | None, kind: ConstraintKind, columns: tuple[str, ...]
) -> AddConstraint:
    references, said = "", _SAID_OF_KEYS
    if kind is ConstraintKind.FOREIGN_KEY:
        cursor.expect("REFERENCES")
        references = str(cursor.table_name())
        if cursor.sees("("):
            references += f" ({', '.join(map(quote_name, cursor.columns()))})"
        said = (*said, *_SAID_OF_FOREIGN)
    relies = False
    while True:
        if cursor.sees("ENFORCED"):
            raise cursor.refusal(
                f"{kind.value} ... ENFORCED", "keys are information; write NOT ENFORCED"
            )
        if cursor.accept("RELY"):
            relies = True
        elif not any(cursor.accept(*words) for words in said):
            break
    return AddConstraint(kind, name, None, columns, references, relies)


def _use(column: exp.Column) -> NameUse:
    parts = column.parts
    spans = [(int(part.meta["start"]), int(part.meta["end"]) + 1) for part in parts]
    return NameUse(spans[0][0], tuple(part.name for part in parts), tuple(end for _, end in spans))


def _require_of_row(tree: exp.Expr, text: str, what: str) -> None:
    for node in tree.walk():
        if isinstance(node, exp.Query | exp.AggFunc | exp.Window | exp.Subquery):
            raise Unsupported(_NO_ROW.format(what, text, "looks at other rows"))
        if isinstance(node, exp.Star) or node.key == "placeholder":
            raise Unsupported(_NO_ROW.format(what, text, f"has {node.sql('spark')}"))
    try:
        refuse_harmful(text, "use functions of Spark over the columns of one row")
    except Unsupported as error:
        raise Unsupported(f"{what} {text!r}: {error}") from error


CONSTRAINTS = frozenset(("PRIMARY", "FOREIGN", "UNIQUE", "CHECK", "REFERENCES", "CONSTRAINT"))
_AGGREGATIONS = frozenset(how.value for how in Aggregation)
_NO_AGGREGATIONS = frozenset(("HLL_UNION", "BITMAP_UNION", "QUANTILE_UNION", "GENERIC"))
_OPTIONS = ("NOT", "NULL", "DEFAULT", "COMMENT", "FIRST", "AFTER", "KEY", *_AGGREGATIONS)
_SAME_OPTION = {"NOT": "NULL", "AFTER": "FIRST", **dict.fromkeys(_AGGREGATIONS, "SUM")}
_NO_OPTIONS = {
    "GENERATED": ("a generated column here", "create it with the table"),
    "AS": ("a computed column", "write GENERATED ALWAYS AS (...), or use a view"),
    "IDENTITY": ("IDENTITY alone", "write BIGINT GENERATED ALWAYS AS IDENTITY"),
    "COLLATE": ("a collation", "DuckLake has no collations; leave it out"),
    "AUTO_INCREMENT": ("AUTO_INCREMENT", "write BIGINT GENERATED BY DEFAULT AS IDENTITY"),
}
_ENDS_DEFAULT = frozenset(
    ("DEFAULT", "COMMENT", "FIRST", "AFTER", "KEY", "TO", "FROM", ",", ")")
) | CONSTRAINTS.union(_AGGREGATIONS, _NO_AGGREGATIONS, _NO_OPTIONS)
# In INTERVAL '1-2' YEAR TO MONTH no rollup is meant.
_INTERVAL_UNITS = ("YEAR", "DAY", "HOUR", "MINUTE")


def read_definition(cursor: Cursor, beside: Beside | None = None) -> Definition:
    """Take a column's path, its type and its options in any order.

    Constraints behind the type, and what computes the column, are added to ``beside``, and refused
    without it.
    """
    path = cursor.path()
    # Types such as HLL have one aggregation, which says more of them than an unknown type does.
    _refuse_aggregation(cursor, ahead=1)
    kind = cursor.type()
    found: dict[str, Any] = {}
    seen: set[str] = set()
    while True:
        if beside is not None and _takes_beside(cursor, path[-1], beside):
            continue
        option = cursor.accept_any(*_OPTIONS)
        if not option:
            break
        slot = _SAME_OPTION.get(option, option)
        if slot in seen:
            cursor.at -= 1
            what = "an aggregation" if option in _AGGREGATIONS else option
            raise cursor.failure(f"{what} only once")
        seen.add(slot)
        if option == "NOT":
            cursor.expect("NULL")
            found["nullable"] = False
        elif option == "DEFAULT":
            found["default"] = take_default(cursor)
        elif option == "COMMENT":
            found["comment"] = cursor.string("the comment as a string")
        elif option in ("FIRST", "AFTER"):
            found["position"] = take_position(cursor, option)
        elif option == "KEY":
            found["key"] = True
        elif option in _AGGREGATIONS:
            found["aggregation"] = Aggregation(option)
    _refuse_aggregation(cursor)
    refuse_option(cursor)
    return Definition(path, kind, **found)


def _takes_beside(cursor: Cursor, column: str, beside: Beside) -> bool:
    """Take a constraint behind a type, or what computes the column, if one comes next."""
    if cursor.accept("GENERATED"):
        read_computed(cursor, column, beside.computed)
        return True
    constraint = None
    if cursor.peek().key in CONSTRAINTS:
        constraint = read_column_constraint(cursor, column)
    if constraint is not None:
        beside.constraints.append(constraint)
    return constraint is not None


def refuse_option(cursor: Cursor) -> None:
    """Raise Unsupported if an option of a column comes next that DuckLake lacks."""
    word = cursor.peek().key
    if word in CONSTRAINTS:
        raise cursor.refusal(
            f"the constraint {word} here", "use ALTER TABLE t ADD CONSTRAINT name CHECK (...)"
        )
    if word in _NO_OPTIONS:
        raise cursor.refusal(*_NO_OPTIONS[word])


def take_position(cursor: Cursor, word: str) -> Position:
    """Return the place that FIRST or AFTER, already taken, means."""
    if word == "FIRST":
        return Position()
    return Position(after=cursor.path("the column after which it is placed")[-1])


def take_default(cursor: Cursor) -> Default | None:
    """Take the expression behind DEFAULT, up to the next option of the column."""
    start = cursor.at
    while not _default_ends(cursor, start):
        cursor.skip()
    if cursor.at == start:
        raise cursor.failure("a default")
    return read_default(cursor.since(start))


def _refuse_aggregation(cursor: Cursor, ahead: int = 0) -> None:
    word = cursor.peek(ahead).key
    if word in _NO_AGGREGATIONS:
        known = ", ".join(how.value for how in Aggregation)
        raise cursor.refusal(f"the aggregation {word}", f"use {known}")


def _default_ends(cursor: Cursor, start: int) -> bool:
    if cursor.peek().kind is TokenKind.END:
        return True
    if cursor.at == start:
        return cursor.peek().key in (",", ")")
    before = cursor.tokens[cursor.at - 1].key
    if cursor.sees("NOT", "NULL"):
        return before != "IS"
    if cursor.sees("NULL"):
        return before not in ("IS", "NOT")
    if cursor.peek().key in _AGGREGATIONS and cursor.peek(1).key == "(":
        # A function, such as Spark's replace().
        return False
    if cursor.sees("TO") and before in _INTERVAL_UNITS:
        return False
    return cursor.peek().key in _ENDS_DEFAULT or cursor.sees("PROPERTIES", "(")


@dataclass
class Beside:
    """What stands behind types and among columns, and is of the table.

    ``computed`` is None where a column cannot be computed, because rows are there.
    """

    constraints: list[AddConstraint] = field(default_factory=list)
    computed: list[WrittenComputed] | None = None


def read_computed(cursor: Cursor, column: str, into: list[WrittenComputed] | None) -> None:
    """Take what stands behind GENERATED, of a column that is new with its table."""
    how = "ALWAYS" if cursor.accept("ALWAYS") else "BY DEFAULT"
    if how != "ALWAYS":
        cursor.expect("BY", "DEFAULT")
    cursor.expect("AS")
    if into is None:
        raise cursor.refusal(
            "a computed column in a table that is there", "create it with the table"
        )
    if cursor.accept("IDENTITY"):
        into.append(WrittenComputed(column, identity=_identity(cursor, always=how == "ALWAYS")))
        return
    if how != "ALWAYS":
        raise cursor.failure("IDENTITY")
    made = read_expression(cursor, "a generated value", may_tell_time=False)
    into.append(WrittenComputed(column, made))


def _identity(cursor: Cursor, *, always: bool) -> Identity:
    start, step = 1, 1
    if cursor.accept("("):
        while not cursor.accept(")"):
            if cursor.accept("START"):
                cursor.expect("WITH")
                start = _number(cursor)
            else:
                cursor.expect("INCREMENT", "BY")
                step = _number(cursor)
                if step == 0:
                    raise cursor.failure("a number other than 0", cursor.at - 1)
            cursor.accept(",")
    return Identity(start, step, always)


def _number(cursor: Cursor) -> int:
    sign = -1 if cursor.accept("-") else 1
    token = cursor.peek()
    if token.kind is not TokenKind.NUMBER or not token.text.rstrip("lL").isdecimal():
        raise cursor.failure("a whole number")
    return sign * int(cursor.take().text.rstrip("lL"))


def read_columns(cursor: Cursor, beside: Beside) -> tuple[Definition, ...]:
    """Take the columns in brackets, and what is ``beside`` them."""
    cursor.expect("(")
    columns: list[Definition] = []
    while True:
        if columns and take_constraint(cursor, beside.constraints, is_new_table=True):
            if not cursor.accept(",") or cursor.sees(")"):
                break
            continue
        start = cursor.at
        found = read_definition(cursor, beside)
        if len(found.path) > 1:
            raise cursor.failure("the name of a column (quote a name that contains a dot)", start)
        if found.position is not None:
            raise cursor.failure("',' or ')' (FIRST and AFTER are for ALTER TABLE)", cursor.at - 1)
        columns.append(found)
        # Doris' documentation and DuckDB leave a comma behind the last column.
        if not cursor.accept(",") or cursor.sees(")"):
            break
    cursor.expect(")")
    return tuple(columns)


def take_conversion(cursor: Cursor) -> tuple[str | None, bool]:
    """Take USING with its expression, and ON ERROR NULL."""
    using = None
    if cursor.accept("USING"):
        first, behind = skip_expression(cursor, ("ON", ",", "PROPERTIES"))
        start, end = cursor.tokens[first].start, cursor.tokens[behind - 1].end
        using = cursor.text[start:end]
    return using, cursor.accept("ON", "ERROR", "NULL")
