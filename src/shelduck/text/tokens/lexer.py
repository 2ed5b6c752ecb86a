"""Tokens of Spark SQL with their places in the text.

Spark's own parser runs every query, so the text has to be cut exactly where Spark cuts it: nested
comments, ``''`` and backslash escapes, raw and dollar-quoted strings, typed numbers.

The limits of what is read are here too: `DEPTH`, `DIGITS`, and `LONGEST` of names. Whoever walks
over tokens can recurse into brackets and convert numbers without checks of its own.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from shelduck.errors import InvalidRequest
from shelduck.model.text.names import LONE_SURROGATE, LONGEST, unquoted_text


class TokenKind(Enum):
    """The kinds of tokens."""

    WORD = "word"
    QUOTED = "quoted name"
    STRING = "string"
    NUMBER = "number"
    SYMBOL = "symbol"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of text: ``text`` as it is written, from ``start`` to ``end`` (exclusive).

    ``key`` is what keywords and symbols are compared with: upper case, '' for names in quotes,
    strings and numbers.
    """

    kind: TokenKind
    text: str
    start: int
    end: int
    key: str = ""

    @property
    def may_name(self) -> bool:
        """True when the token can stand where a statement wants a name."""
        return self.kind in (TokenKind.WORD, TokenKind.QUOTED) or (
            self.kind is TokenKind.STRING and self.text.startswith('"')
        )


_TOKEN = re.compile(
    r"""
      (?P<skip>\s+|--(?:\\\n|[^\r\n])*)
    | (?P<comment>/\*)
    | (?P<quoted>`(?:[^`]|``)*`)
    | (?P<string>[rR]'[^']*'|[rR]"[^"]*"
        |'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    | (?P<dollar>\$(?:[^\W\d]\w*)?\$)
    | (?P<number>(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?:[bB][dD]|[lLsSyYdDfF])?(?!\w))
    | (?P<word>\w+)
    | (?P<symbol><=>|<=|>=|<>|!=|==|\|\||\|>|->|=>|::|\\[gG]\b|[^\s])
    """,
    re.VERBOSE | re.DOTALL,
)
_KINDS = {
    "quoted": TokenKind.QUOTED,
    "string": TokenKind.STRING,
    "number": TokenKind.NUMBER,
    "word": TokenKind.WORD,
    "symbol": TokenKind.SYMBOL,
}
_UNCLOSED = {"'": "string", '"': "string", "`": "quoted name"}
BRACKETS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}

DEPTH = 200
"""How deep brackets may be nested."""
DIGITS = 300
"""How many characters a number may have: Python's floats take a whole number of so many digits."""

_LONGEST = {TokenKind.NUMBER: DIGITS, TokenKind.STRING: sys.maxsize}


def tokenize(text: str) -> list[Token]:
    """Return the tokens of ``text`` without space and comments, closed by an END token.

    Raises InvalidRequest for a string, quoted name or comment that is not closed, for what exceeds
    a limit, and for halves of characters.
    """
    _require_characters(text)
    tokens: list[Token] = []
    at = depth = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        assert match is not None
        group, start, at = match.lastgroup, at, match.end()
        if group == "skip":
            continue
        if group == "comment":
            at = _after_comment(text, start)
            continue
        if group == "dollar":
            group, at = "string", _after_dollars(text, start, match[0])
        if group == "symbol" and match[0] in _UNCLOSED:
            raise _unclosed(_UNCLOSED[match[0]], text, start)
        written = text[start:at]
        kind = _KINDS[group or "symbol"]
        if kind is TokenKind.SYMBOL:
            depth = 0 if written == ";" else max(0, depth + BRACKETS.get(written, 0))
        if depth > DEPTH or len(written) > _LONGEST.get(kind, LONGEST):
            raise _excess(kind, text, start)
        key = written.upper() if kind in (TokenKind.WORD, TokenKind.SYMBOL) else ""
        tokens.append(Token(kind, written, start, at, key))
    tokens.append(Token(TokenKind.END, "", len(text), len(text)))
    return tokens


def statements_of(tokens: list[Token]) -> list[list[Token]]:
    r"""Cut at each ``;``, or MySQL's ``\G``; each piece is closed by an END token at its end."""
    pieces: list[list[Token]] = [[]]
    for token in tokens:
        if token.key not in (";", "\\G") and token.kind is not TokenKind.END:
            pieces[-1].append(token)
            continue
        pieces[-1].append(Token(TokenKind.END, "", token.start, token.start))
        pieces.append([])
    return [piece for piece in pieces if len(piece) > 1]


class MovedText(str):
    """Parts of a written text in another order, with other texts between them: see `moved`.

    Errors are about the text as it is written, in which ``statement`` is the whole statement.
    """

    __slots__ = ("parts", "statement", "written")
    written: str
    statement: str
    parts: tuple[slice | str, ...]

    def origin(self, offset: int) -> int:
        """Return where an offset of it was written; the end of the part before an added text."""
        at = origin = 0
        for part in self.parts:
            size = len(part) if isinstance(part, str) else part.stop - part.start
            if isinstance(part, slice) and at <= offset:
                origin = part.start + min(offset - at, size)
            at += size
        return origin


def moved(text: str, tokens: Sequence[Token], *parts: slice | str) -> tuple[str, list[Token]]:
    """Return parts of a statement, and texts between them, as one text with its tokens."""
    made = MovedText("".join(p if isinstance(p, str) else text[p] for p in parts))
    made.written, made.parts = text, parts
    made.statement = text[tokens[0].start : tokens[-1].start]
    return made, tokenize(made)


def as_written(text: str, start: int, end: int) -> str:
    """Return a part of a text for people: the whole statement if it was moved."""
    return text.statement if isinstance(text, MovedText) else text[start:end]


def place(text: str, offset: int) -> str:
    """Return 'line 2, column 7' of an offset in ``text``, as people wrote it."""
    if isinstance(text, MovedText):
        offset, text = text.origin(offset), text.written
    line = text.count("\n", 0, offset) + 1
    return f"line {line}, column {offset - text.rfind(chr(10), 0, offset)}"


Edit = tuple[int, int, str]
"""Where words begin and end in a text, and the words that come in their place."""


def edited(text: str, edits: Iterable[Edit], start: int = 0, end: int | None = None) -> str:
    """Return a text, or a part of it, with other words in some places."""
    out: list[str] = []
    for first, last, new in sorted(edits):
        out += [text[start:first], new]
        start = last
    return "".join([*out, text[start:end]])


def closing(tokens: Sequence[Token], opening: int) -> int | None:
    """Return where the bracket is closed that a token opens, None if it is not."""
    depth = 0
    for n in range(opening, len(tokens)):
        depth += BRACKETS.get(tokens[n].key, 0)
        if depth == 0:
            return n
    return None


def in_brackets(tokens: Sequence[Token]) -> bool:
    """Tell whether the first token opens a round bracket that the last token closes."""
    opens = bool(tokens) and tokens[0].key == "("
    return opens and closing(tokens, 0) == len(tokens) - 1


def listed_parts(tokens: Sequence[Token]) -> list[list[Token]]:
    """Return the tokens between the commas outside of brackets."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += BRACKETS.get(token.key, 0)
        if depth == 0 and token.key == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def dotted_names(tokens: Sequence[Token], at: int) -> list[Token]:
    """Return the names with dots between them that begin with the one at a place."""
    names = [tokens[at]]
    while tokens[at + 1].key == "." and tokens[at + 2].may_name:
        at += 2
        names.append(tokens[at])
    return names


def name_of(token: Token) -> str:
    """Return the name that a token with ``may_name`` stands for."""
    if token.kind is TokenKind.WORD:
        return token.text
    quote = token.text[0]
    if quote in "rR" or (quote == '"' and '\\"' in token.text):
        raise InvalidRequest(f"{token.text} is not a name; put the name in backticks", about="text")
    return token.text[1:-1].replace(quote * 2, quote)


def string_of(token: Token) -> str:
    """Return the value of a STRING token, escapes resolved as Spark does."""
    text = token.text
    if text[0] in "rR":
        return text[2:-1]
    if text[0] == "$":
        tag = text.index("$", 1) + 1
        return text[tag:-tag]
    return unquoted_text(text)


_COMMENT = re.compile(r"/\*|\*/")


def _after_comment(text: str, at: int) -> int:
    depth = 0
    for match in _COMMENT.finditer(text, at):
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return match.end()
    raise _unclosed("comment", text, at)


def _after_dollars(text: str, at: int, tag: str) -> int:
    closing = text.find(tag, at + len(tag))
    if closing < 0:
        raise _unclosed("string", text, at)
    return closing + len(tag)


def _unclosed(what: str, text: str, at: int) -> InvalidRequest:
    return InvalidRequest(
        f"the {what} that begins at {place(text, at)} is not closed", about="text"
    )


def _require_characters(text: str) -> None:
    found = LONE_SURROGATE.search(text)
    if found is not None:
        raise InvalidRequest(
            f"the statement has half of a character, U+{ord(found[0]):04X}, at"
            f" {place(text, found.start())}; leave it out",
            about="text",
        )


def _excess(kind: TokenKind, text: str, at: int) -> InvalidRequest:
    if kind is TokenKind.SYMBOL:
        return InvalidRequest(
            f"the brackets at {place(text, at)} are nested more than {DEPTH} deep; write parts of"
            " the statement as views or as names in WITH",
            about="text",
        )
    what = "number" if kind is TokenKind.NUMBER else "name"
    most = _LONGEST.get(kind, LONGEST)
    return InvalidRequest(
        f"the {what} at {place(text, at)} is longer than {most} characters; use a shorter one",
        about="text",
    )
