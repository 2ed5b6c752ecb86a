"""Time travel: the words that say which state of a table is read, or which changes."""

from __future__ import annotations

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.text.intervals import whole_number
from shelduck.text.tokens.arguments import read_properties
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import Edit, TokenKind, edited, string_of, tokenize
from shelduck.text.tokens.parts import Call, TimeExpression, TimestampText

_INSTANTS = frozenset(("TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMPTZ", "DATE"))
_TIMES = ("VERSION", "TIMESTAMP")
CHANGES = "changes"
"""The function that stands for Spark's CHANGES; nobody can call it by this name."""
_VERSIONS = ("VERSION", "SYSTEM_VERSION")
_WRITE = "a time such as '2026-01-31 12:00:00'"


def read_time(cursor: Cursor) -> tuple[int | None, str | None]:
    """Take DuckLake's ``AT (...)``, Spark's ``VERSION AS OF`` and their kin, or nothing.

    Returns (version, timestamp text), of which at most one is set.
    """
    if any(cursor.sees("AT", "(", word, "=>") for word in _TIMES):
        return _duckdb(cursor)
    ahead = 1 if cursor.sees("FOR") else 0
    word = cursor.peek(ahead).key
    if cursor.peek(ahead + 1).key == "AS" and cursor.peek(ahead + 2).key == "OF":
        if word in _VERSIONS:
            cursor.at += ahead + 3
            return read_version(cursor), None
        if word in ("TIMESTAMP", "SYSTEM_TIME"):
            cursor.at += ahead + 3
            return None, _timestamp(cursor)
    if cursor.sees("@"):
        return _at_sign(cursor)
    if cursor.sees("CHANGES", "FROM"):
        raise cursor.refusal("CHANGES FROM here", "use (SELECT * FROM t CHANGES FROM …)")
    return None, None


def read_any_time(cursor: Cursor) -> tuple[int | str | None, str | None, TimeExpression | None]:
    """Take a time as `read_time` does, or ``AT (...)`` with an expression to compute.

    A version may be the name of a branch or a tag: ``VERSION AS OF 'b'``.
    """
    start = cursor.at
    named = _branch(cursor)
    if named is not None:
        return named, None, None
    computes = any(cursor.sees("AT", "(", word, "=>") for word in _TIMES)
    if not computes or _may_be_literal(cursor, 4):
        try:
            return *read_time(cursor), None
        except InvalidRequest:
            cursor.at = start
            if not computes:
                raise
    cursor.at += 1
    cursor.skip_group()
    first, last = start + 4, cursor.at - 2
    if last < first:
        raise cursor.failure("a time", first)
    text = cursor.text[cursor.tokens[first].start : cursor.tokens[last].end]
    return None, None, TimeExpression(cursor.tokens[start + 2].key, text)


def _branch(cursor: Cursor) -> str | None:
    ahead = 1 if cursor.sees("FOR") else 0
    version, *rest = (cursor.peek(ahead + n).key for n in range(3))
    if version not in _VERSIONS or rest != ["AS", "OF"]:
        return None
    token = cursor.peek(ahead + 3)
    if token.kind is not TokenKind.STRING or string_of(token).isdigit():
        return None
    cursor.at += ahead + 3
    return cursor.string()


def read_changes(cursor: Cursor) -> Call | None:
    """Take Spark's ``CHANGES FROM VERSION a TO VERSION b WITH (…)``, or nothing.

    Both ends may be times, and say EXCLUSIVE. The call's arguments are those of `changes` among the
    table functions, without the table.
    """
    if not cursor.accept("CHANGES", "FROM"):
        return None
    words = _VERSIONS if cursor.peek().key in _VERSIONS else ("TIMESTAMP", "SYSTEM_TIME")
    start, excludes_start = _end_of_changes(cursor, words)
    end, excludes_end = _end_of_changes(cursor, words) if cursor.accept("TO") else (None, False)
    options = read_properties(cursor) if cursor.accept("WITH") else {}
    pairs = tuple(part for pair in options.items() for part in pair)
    excludes = ("excludes_start", excludes_start), ("excludes_end", excludes_end)
    return Call(CHANGES, (start, end), (*excludes, ("options", pairs)))


def _end_of_changes(cursor: Cursor, words: tuple[str, ...]) -> tuple[int | TimestampText, bool]:
    """Take one end of a range of changes; return it, and whether it is not part of the range."""
    if not cursor.accept_any(*words):
        raise cursor.failure(" or ".join(words))
    found = read_version(cursor) if words is _VERSIONS else TimestampText(_timestamp(cursor))
    return found, cursor.accept_any("INCLUSIVE", "EXCLUSIVE") == "EXCLUSIVE"


def in_sparks_words(text: str) -> str:
    """Return a text with ``AT (VERSION => 3)`` and ``t@v3`` as ``VERSION AS OF 3``, if it can be.

    It is meant for a text that Spark could not read: a function may be called ``at`` too.
    """
    try:
        tokens = tokenize(text)
    except InvalidRequest:
        return text
    edits: list[Edit] = []
    for n, token in enumerate(tokens):
        cursor = Cursor(text, tokens, n)
        is_time = cursor.sees("@") or any(cursor.sees("AT", "(", word, "=>") for word in _TIMES)
        if not is_time or (edits and token.start < edits[-1][1]):
            continue
        try:
            read_time(cursor)
        except (InvalidRequest, Unsupported):
            return text
        if token.key == "@":
            time = f" VERSION AS OF {tokens[n + 1].text[1:]}"
        else:
            given = text[tokens[n + 4].start : tokens[cursor.at - 2].end]
            time = f"{tokens[n + 2].text} AS OF {given} "
        edits.append((token.start, tokens[cursor.at - 1].end, time))
    return edited(text, edits)


def _duckdb(cursor: Cursor) -> tuple[int | None, str | None]:
    cursor.expect("AT", "(")
    by_version = cursor.accept_any("VERSION", "TIMESTAMP") == "VERSION"
    cursor.expect("=>")
    version = read_version(cursor) if by_version else None
    timestamp = None if by_version else _timestamp(cursor)
    cursor.expect(")")
    return version, timestamp


def _may_be_literal(cursor: Cursor, ahead: int) -> bool:
    token = cursor.peek(ahead)
    return token.kind is not TokenKind.WORD or token.key in _INSTANTS or token.key == "CAST"


def read_version(cursor: Cursor) -> int:
    """Take the id of a snapshot."""
    token = cursor.peek()
    text = string_of(token) if token.kind is TokenKind.STRING else token.text
    number = whole_number(text)
    if number is None:
        raise cursor.failure("the id of a snapshot")
    cursor.take()
    return number


def _timestamp(cursor: Cursor) -> str:
    start = cursor.at
    if cursor.accept("CAST", "("):
        text = cursor.string(_WRITE)
        cursor.expect("AS")
        if cursor.peek().key not in _INSTANTS:
            raise cursor.refusal(f"a time as {cursor.peek().text}", _WRITE)
        cursor.type()
        cursor.expect(")")
        return text
    if cursor.peek().key in _INSTANTS and cursor.peek(1).kind is TokenKind.STRING:
        cursor.take()
    if cursor.peek().kind is not TokenKind.STRING:
        raise cursor.failure(_WRITE, start)
    text = cursor.string()
    if cursor.accept("::"):
        if cursor.peek().key not in _INSTANTS:
            raise cursor.refusal(f"a time as {cursor.peek().text}", _WRITE)
        cursor.type()
    if cursor.peek().key in ("+", "-", "||"):
        raise cursor.failure(f"the end of the time ({_WRITE})")
    return text


def _at_sign(cursor: Cursor) -> tuple[int, None]:
    word = cursor.peek(1).text
    number = whole_number(word[1:])
    if word[:1] not in ("v", "V") or number is None:
        raise cursor.failure("a version such as t@v3")
    cursor.at += 2
    return number, None
