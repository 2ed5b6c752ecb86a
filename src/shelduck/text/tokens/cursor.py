"""A place in the tokens of one statement, and the small readings that all statements share."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import TypeVar

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.tables.schema import Path
from shelduck.model.text.intervals import whole_number
from shelduck.model.text.names import split_name
from shelduck.model.types.data_types import DataType, declared_type
from shelduck.text.tokens.lexer import (
    BRACKETS,
    Token,
    TokenKind,
    as_written,
    moved,
    name_of,
    place,
    string_of,
)
from shelduck.text.tokens.parts import NamedTable, SchemaName

T = TypeVar("T")
_ANGLES = {"<": 1, ">": -1}
# Words that are often mistyped.
_KEYWORDS = frozenset(
    """AFTER AGGREGATE ALTER BUCKETS COLUMN COLUMNS COMMENT CREATE DEFAULT DELETE DESCRIBE
    DISTRIBUTED DROP DUPLICATE EXISTS FIRST FROM INSERT MERGE MODIFY NULL OPTIMIZE PARTITIONED
    PROPERTIES RENAME RESTORE ROLLUP SCHEMA SELECT SORTED TABLE TBLPROPERTIES TIMESTAMP TRUNCATE
    TYPE UNIQUE UPDATE USING VALUES VERSION VIEW WHERE""".split()
)


def _is_near(word: str, keyword: str) -> bool:
    return bool(difflib.get_close_matches(word, [keyword], cutoff=0.75))


class Cursor:
    """Reads the tokens of one statement from left to right.

    With ``ntz`` a bare TIMESTAMP is a type without a time zone.
    """

    def __init__(self, text: str, tokens: list[Token], at: int = 0, *, ntz: bool = False) -> None:
        self.text = text
        self.tokens = tokens
        self.ntz = ntz
        self.at = at

    def moved(self, *parts: slice | str) -> Cursor:
        """Return a cursor over parts of the text in another order, with texts between them."""
        return Cursor(*moved(self.text, self.tokens, *parts), ntz=self.ntz)

    def peek(self, ahead: int = 0) -> Token:
        """Return a token further on without taking it; the END token stands after the last."""
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    def take(self) -> Token:
        """Return the next token and go on."""
        token = self.peek()
        if token.kind is TokenKind.END:
            raise self.failure("more")
        self.at += 1
        return token

    def sees(self, *keys: str) -> bool:
        """Tell whether these keywords or symbols come next, in this order."""
        return all(self.peek(n).key == key for n, key in enumerate(keys))

    def accept(self, *keys: str) -> bool:
        """Take these keywords or symbols if they come next, all or none."""
        if not self.sees(*keys):
            return False
        self.at += len(keys)
        return True

    def accept_any(self, *keys: str) -> str:
        """Take one of these keywords if it comes next and return it, else ''."""
        key = self.peek().key
        if key not in keys:
            return ""
        self.at += 1
        return key

    def accept_if(self, *keys: str) -> bool:
        """Take IF and these keywords if they come next; InvalidRequest if the last is mistyped."""
        if self.accept("IF", *keys):
            return True
        *before, last = keys
        if self.sees("IF", *before) and _is_near(self.peek(len(keys)).key, last):
            self.at += len(keys)
            raise self.failure(last)
        return False

    def made_how(self, what: str) -> tuple[bool, bool]:
        """Take IF NOT EXISTS if it comes next; tell that, and whether CREATE has OR REPLACE.

        ``what`` is the kind of object, such as a table. Raises InvalidRequest for both.
        """
        or_replace = self.tokens[1].key == "OR"
        found = self.accept_if("NOT", "EXISTS")
        if found and or_replace:
            raise self.failure(
                f"the name of a {what} (OR REPLACE and IF NOT EXISTS cannot be used together)",
                self.at - 3,
            )
        return found, or_replace

    def expect(self, *keys: str) -> None:
        """Take these keywords or symbols or raise InvalidRequest."""
        for key in keys:
            if not self.accept(key):
                raise self.failure(key)

    def end(self) -> None:
        """Raise InvalidRequest unless the statement ends here."""
        if self.peek().kind is not TokenKind.END:
            raise self.failure("the end of the statement")

    def failure(self, expected: str, at: int | None = None) -> InvalidRequest:
        """Return the error that something else was expected here, or ``at`` a token."""
        self.at = self.at if at is None else at
        token = self.peek()
        found = "the statement ends" if token.kind is TokenKind.END else f"found {token.text!r}"
        where = place(self.text, token.start)
        return self.error(f"expected {expected} at {where}, but {found}{self.spelling()}")

    def spelling(self) -> str:
        """Return ``; did you mean COLUMN?`` if a word next to the cursor is nearly a keyword."""
        for token in reversed(self.tokens[max(0, self.at - 2) : self.at + 1]):
            if (
                token.kind is TokenKind.WORD
                and 2 < len(token.key) < 20
                and token.key not in _KEYWORDS
            ):
                near = difflib.get_close_matches(token.key, _KEYWORDS, n=1, cutoff=0.75)
                if near:
                    return f"; did you mean {near[0]} instead of {token.text}?"
        return ""

    def error(self, why: str) -> InvalidRequest:
        """Return the error that the statement cannot be understood."""
        return InvalidRequest(f"cannot parse {self.excerpt()}: {why}", about="text")

    def refusal(self, what: str, instead: str) -> Unsupported:
        """Return the error that this can be read but not done."""
        return Unsupported(f"{what} is not supported: {self.excerpt()}; {instead}")

    def excerpt(self) -> str:
        """Return the statement's text, shortened, in quotes."""
        if self.tokens[0].kind is TokenKind.END:
            return "an empty statement"
        text = as_written(self.text, self.tokens[0].start, self.tokens[-2].end)
        # More than is shown: blanks go. Errors in a long statement are cheap, too.
        text = " ".join(text[:1000].split())
        return repr(text if len(text) <= 120 else text[:117] + "...")

    def name(self, what: str = "a name") -> str:
        """Take one name, quoted or not."""
        if not self.peek().may_name:
            raise self.failure(what)
        found = name_of(self.take())
        if not found:
            raise self.failure(f"{what}, not an empty name", self.at - 1)
        return found

    def new_column(self, taken: set[str]) -> str:
        """Take a column's name that is not among those before it, whatever the case.

        ``taken`` are these names in lower case; the new one is added.
        """
        start = self.at
        found = self.name("a column")
        if found.lower() in taken:
            raise self.failure("each column only once", start)
        taken.add(found.lower())
        return found

    def columns(self) -> tuple[str, ...]:
        """Take the names of top-level columns in brackets, each only once."""
        taken: set[str] = set()

        def column(_: Cursor) -> str:
            start = self.at
            found = self.new_column(taken)
            if self.sees("."):
                raise self.failure("a top-level column (quote a name that contains a dot)", start)
            return found

        return self.in_brackets(column)

    def in_brackets(self, read: Callable[[Cursor], T]) -> tuple[T, ...]:
        """Take one part or more in brackets, with commas between them."""
        self.expect("(")
        found = self.listed(read)
        self.expect(")")
        return tuple(found)

    def listed(self, read: Callable[[Cursor], T]) -> list[T]:
        """Take one part or more, with commas between them."""
        found = [read(self)]
        while self.accept(","):
            found.append(read(self))
        return found

    def path(self, what: str = "a column") -> Path:
        """Take names joined by dots."""
        parts = [self.name(what)]
        while self.accept("."):
            parts.append(self.name(what))
        return tuple(parts)

    def table_name(self) -> NamedTable:
        """Take the name of a table with its schema and catalog, if they are written."""
        return NamedTable(self._identifier() or self.path("a table"))

    def _identifier(self) -> Path:
        """Take ``IDENTIFIER('name')``, which Spark has for names in parameters; else nothing."""
        if not (self.sees("IDENTIFIER", "(") and self.peek(2).text.startswith("'")):
            return ()
        self.at += 2
        name = self.string()
        if not self.accept(")"):
            raise self.failure("')' (the name in IDENTIFIER is one text; build it before)")
        return split_name(name)

    def schema_name(self) -> SchemaName:
        """Take the name of a schema with its catalog, if it is written."""
        return SchemaName(self.path("a schema"))

    def string(self, what: str = "a string") -> str:
        """Take a string literal and return its value."""
        if self.peek().kind is not TokenKind.STRING:
            raise self.failure(what)
        return string_of(self.take())

    def job(self) -> int:
        """Take the id of a job."""
        return self.whole("the id of a job")

    def whole(self, what: str = "a whole number") -> int:
        """Take a whole number from 0."""
        number = whole_number(self.peek().text)
        if number is None:
            raise self.failure(what)
        self.take()
        return number

    def type(self) -> DataType:
        """Take a data type in the words of Spark, DuckDB or DuckLake."""
        start = self.at
        if self.peek().kind is not TokenKind.WORD:
            raise self.failure("a data type")
        word = self.take().key
        if word == "DOUBLE":
            self.accept("PRECISION")
        if self.sees("("):
            self.skip_group()
        elif self.sees("<") or self.sees("<>"):
            self._skip_angles()
        if word in ("TIMESTAMP", "TIME") and self.accept_any("WITH", "WITHOUT"):
            self.expect("TIME", "ZONE")
        while self.sees("["):
            self.skip_group()
        # Without the comments that may stand between two tokens.
        written, end = "", self.tokens[start].start
        for token in self.tokens[start : self.at]:
            written += token.text if token.start == end else f" {token.text}"
            end = token.end
        try:
            return declared_type(written, ntz=self.ntz)
        except InvalidRequest as error:
            self.at = start
            where = place(self.text, self.peek().start)
            raise self.error(f"{error} at {where}{self.spelling()}") from None

    def since(self, start: int) -> str:
        """Return the text from a token to the last one that was taken."""
        return self.text[self.tokens[start].start : self.tokens[self.at - 1].end]

    def skip(self) -> None:
        """Take the next token, or a whole bracket if one opens."""
        if BRACKETS.get(self.peek().key, 0) > 0:
            self.skip_group()
        else:
            self.take()

    def rest(self) -> str:
        """Take all that is left of the statement, and return its text."""
        start, self.at = self.peek().start, len(self.tokens) - 1
        return self.text[start : self.tokens[-2].end]

    def skip_group(self) -> None:
        """Go behind the bracket that closes the one that comes next."""
        depth = 0
        while True:
            if self.peek().kind is TokenKind.END:
                raise self.failure("a closing bracket")
            depth += BRACKETS.get(self.take().key, 0)
            if depth == 0:
                return

    def at_top(self, word: str, start: int) -> int | None:
        """Return where a word stands outside of brackets, at a token or behind it."""
        depth = 0
        for n, token in enumerate(self.tokens):
            depth += BRACKETS.get(token.key, 0)
            if depth == 0 and n >= start and token.key == word:
                return n
        return None

    def _skip_angles(self) -> None:
        depth = 0
        while True:
            if self.peek().kind is TokenKind.END:
                raise self.failure("'>'")
            token = self.take()
            if token.kind is TokenKind.SYMBOL:
                depth += sum(_ANGLES.get(c, 0) for c in token.text)
            if depth <= 0:
                return
