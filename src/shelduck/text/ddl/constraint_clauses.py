"""Constraints as CREATE TABLE and ALTER TABLE write them, and the columns that expressions name."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from sqlglot import expressions as exp
from sqlglot.errors import ParseError

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.changes.constraining import (
    AddConstraint,
    ConstraintChange,
    DropConstraint,
    ValidateConstraint,
)
from shelduck.model.tables.constraints import ConstraintKind
from shelduck.model.tables.row_expressions import NameUse, WrittenExpression
from shelduck.model.text.names import quote_name
from shelduck.text.query.harmless import refuse_harmful
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import Token, TokenKind, name_of, tokenize
from shelduck.text.tokens.trees import parse_tree

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
    try:
        tree = parse_tree(text, "spark")
    except ParseError as error:
        raise InvalidRequest(f"cannot parse {what} {text!r}: {error}", about="text") from error
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
