"""Where scalar expressions end, and the small parts that statements about rows share.

An expression is not understood: Spark does that. It ends where the statement goes on, outside of
brackets and of CASE ... END.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from shelduck.model.tables.schema import Path
from shelduck.text.query.relations import JOINS, Found
from shelduck.text.query.rewriting import Rewriting, Span, begins_query
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import TokenKind
from shelduck.text.tokens.parts import Assignment, Expression

_OPERATORS = frozenset(
    """ALL AND ANY BETWEEN CASE DISTINCT DIV ELSE ESCAPE EXISTS FROM ILIKE IN INTERVAL IS LIKE NOT
    OR REGEXP RLIKE SOME THEN WHEN""".split()
)
_TAILS = {
    "FROM": "only UPDATE t SET … can have it, before WHERE",
    "LIMIT": "select the rows in a subquery: WHERE id IN (SELECT id FROM t LIMIT n)",
    "ORDER": "select the rows in a subquery: WHERE id IN (SELECT id FROM t ORDER BY c LIMIT n)",
}


def skip_expression(
    cursor: Cursor,
    ends: Collection[str] = (),
    *,
    before_query: bool = False,
    what: str = "an expression",
) -> Span:
    """Go behind an expression that one of ``ends`` or the statement's end closes.

    With ``before_query`` a query closes it too. Words of ``ends`` are not names of columns.
    """
    start = cursor.at
    cases = 0
    while cursor.peek().kind is not TokenKind.END:
        key = "" if cursor.at > start and _before(cursor) == "." else cursor.peek().key
        # IS DISTINCT FROM goes on: FROM closes only an expression that could end.
        closes = key in ends and (key not in _TAILS or ends_operand(cursor, cursor.at, start))
        if cases == 0 and (closes or (before_query and _begins_tail_query(cursor, start))):
            break
        if cases == 0 and key in _TAILS and ends_operand(cursor, cursor.at, start):
            raise cursor.refusal(f"{key} after an expression", _TAILS[key])
        if key == "CASE":
            cases += 1
        elif key == "END" and cases:
            cases -= 1
        cursor.skip()
    if cases:
        raise cursor.failure("END of CASE")
    if cursor.at == start:
        raise cursor.failure(what)
    return start, cursor.at


def take_target(cursor: Cursor, behind: str, *, alias: bool = True) -> tuple[Found, str | None]:
    """Take the name of the table to change and its alias; ``behind`` is the word that may follow.

    Returns the table as a `Rewriting` wants it, and the alias, None when there is none.
    """
    first = cursor.peek()
    name = cursor.table_name()
    if cursor.sees("VERSION", "AS", "OF") or cursor.sees("TIMESTAMP", "AS", "OF"):
        raise cursor.failure(
            "a table without VERSION AS OF or TIMESTAMP AS OF (old versions cannot be changed)"
        )
    end = cursor.tokens[cursor.at - 1].end
    found = take_alias(cursor, behind) if alias else None
    if found is not None and cursor.sees("("):
        raise cursor.refusal("an alias with columns", "use the table's own columns")
    return Found(name, first.start, end, None if found else end), found


def take_alias(cursor: Cursor, behind: str) -> str | None:
    """Take ``[AS] alias`` before the word ``behind``, or nothing."""
    if not cursor.accept("AS") and (
        not cursor.peek().may_name or cursor.peek().key in {behind} | JOINS
    ):
        return None
    return cursor.name("an alias")


@dataclass(frozen=True, slots=True)
class AssignmentSpan:
    """An assignment whose value is not rewritten yet; None for DEFAULT."""

    path: Path
    value: Span | None

    def rewritten(self, texts: Rewriting) -> Assignment:
        """Return the assignment as a statement holds it."""
        return Assignment(self.path, expression_of(texts, self.value))


def take_assignments(cursor: Cursor, *ends: str) -> list[AssignmentSpan]:
    """Take ``column = value, ...`` up to one of the words ``ends``."""
    found: list[AssignmentSpan] = []
    # The paths that are assigned, and those of the structs around them.
    assigned: set[Path] = set()
    around: set[Path] = set()
    while True:
        start = cursor.at
        path = cursor.path()
        lowered = tuple(p.lower() for p in path)
        outer = {lowered[:n] for n in range(1, len(lowered))}
        if lowered in assigned or lowered in around or outer & assigned:
            raise cursor.failure("each column only once", start)
        assigned.add(lowered)
        around |= outer
        cursor.expect("=")
        found.append(AssignmentSpan(path, take_value(cursor, (",", *ends))))
        if not cursor.accept(","):
            return found


def take_value(cursor: Cursor, ends: tuple[str, ...]) -> Span | None:
    """Take an expression up to one of ``ends``; None for DEFAULT alone."""
    behind = cursor.peek(1)
    if cursor.sees("DEFAULT") and (behind.key in ends or behind.kind is TokenKind.END):
        cursor.take()
        return None
    return skip_expression(cursor, ends, what="a value")


def expression_of(texts: Rewriting, span: Span | None) -> Expression | None:
    """Return the expression at ``span``, None for None."""
    return None if span is None else texts.expression(span)


def _before(cursor: Cursor) -> str:
    return cursor.tokens[cursor.at - 1].key


def ends_operand(cursor: Cursor, at: int, start: int = 0) -> bool:
    """Tell whether an expression could end before a token: no operator stands there."""
    if at == start:
        return False
    before = cursor.tokens[at - 1]
    if before.kind is TokenKind.SYMBOL:
        return before.key in (")", "]", "}")
    return before.key not in _OPERATORS


def _begins_tail_query(cursor: Cursor, start: int) -> bool:
    """Tell whether a query follows the expression: one in a bracket behind IN is part of it."""
    return ends_operand(cursor, cursor.at, start) and begins_query(cursor)
