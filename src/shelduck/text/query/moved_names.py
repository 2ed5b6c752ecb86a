"""Texts of views and macros that go to another schema, whose tables they then read.

Only names of tables change. Where they stand, tokens tell in Spark's text, and sqlglot's tree in
DuckDB's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import expressions as exp
from sqlglot.errors import ParseError

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.tables.table_version import DEFAULT_SCHEMA
from shelduck.model.text.names import backticked, double_quoted, schema_names, schema_word
from shelduck.text.query.relations import find_relations
from shelduck.text.query.translate import CATALOG, OWN
from shelduck.text.tokens.lexer import edited, name_of, tokenize
from shelduck.text.tokens.trees import parse_tree

_SCALAR = "SELECT "


@dataclass(frozen=True, slots=True)
class Move:
    """The way of texts from the schema ``home`` ``to`` another one, both as words.

    ``left`` are the names, in lower case, of what only ``home`` has. They, and tables at a
    snapshot, mean there what they mean here.
    """

    home: str
    to: str
    left: Collection[str] = ()

    def schema_of(self, schema: str | None, name: str, *, is_past: bool) -> str | None:
        """Return the schema to write before a table that a text names, None for the same as now.

        ``schema`` is the one that it has there, None for none.
        """
        stays = is_past or name.lower() in self.left
        if schema is None:
            return self.home if stays else None
        return self.to if schema.lower() == self.home.lower() and not stays else None


@dataclass(frozen=True, slots=True)
class _Place:
    """A table in a text: the ``name``, the ``schema`` if it has one, and where a schema stands.

    ``behind`` follows a new one.
    """

    schema: str | None
    name: str
    start: int
    end: int
    is_past: bool = False
    behind: str = ""


def moved(text: str, dialect: str, move: Move, *, is_scalar: bool = False) -> str:
    """Return a query, or a scalar expression, of ``duckdb`` or ``spark`` for another schema.

    Raises Unsupported if nobody can tell which tables it reads.
    """
    try:
        if dialect == "spark":
            return _moved(text, _spark_places(text), move, backticked)
        prefix = _SCALAR if is_scalar else ""
        whole = prefix + text.replace(CATALOG, OWN)
        found = _moved(whole, _duckdb_places(whole), move, double_quoted)
    except (InvalidRequest, ParseError) as error:
        raise Unsupported(f"its text cannot be read: {error}") from error
    return found.removeprefix(prefix).replace(OWN, CATALOG)


def _moved(text: str, places: Iterable[_Place], move: Move, quoted: Callable[[str], str]) -> str:
    edits = []
    for at in places:
        schema = move.schema_of(at.schema, at.name, is_past=at.is_past)
        if schema is None:
            continue
        # DuckDB's own texts have no quotes.
        is_plain = schema == DEFAULT_SCHEMA and text[at.start : at.end].isidentifier()
        words = schema if is_plain else ".".join(map(quoted, schema_names(schema)))
        edits.append((at.start, at.end, f"{words}{at.behind}"))
    return edited(text, edits)


def _spark_places(text: str) -> Iterator[_Place]:
    tokens = tokenize(text)
    for found in find_relations(text, tokens)[0]:
        if found.call is not None:
            raise InvalidRequest(f"it calls {found.call.procedure}")
        *schema, name = found.parts
        is_past = (found.version, found.timestamp, found.computed) != (None, None, None)
        if not schema:
            yield _Place(None, name, found.start, found.start, is_past, ".")
            continue
        inside = [t for t in tokens if found.start <= t.start < found.end and t.may_name]
        last = inside[len(schema) - 1]
        assert name_of(last) == schema[-1]
        yield _Place(schema_word(schema), name, found.start, last.end, is_past)


def _duckdb_places(text: str) -> Iterator[_Place]:
    """Yield the tables of a text, and those before columns."""
    tree = parse_tree(text, "duckdb")
    queries = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    past: dict[str, bool] = {}
    for table in tree.find_all(exp.Table):
        parts = table.parts
        is_named = all(isinstance(part, exp.Identifier) for part in parts)
        if is_named and (len(parts) > 1 or parts[0].name.lower() not in queries):
            past[table.name.lower()] = is_past = table.args.get("when") is not None
            yield _of_parts(parts, is_past)
    for column in tree.find_all(exp.Column):
        *parts, _ = column.parts
        if len(parts) > 1 and (name := parts[-1].name.lower()) in past:
            yield _of_parts(parts, past[name])


def _of_parts(parts: Sequence[exp.Expr], is_past: bool) -> _Place:
    is_own = len(parts) > 1 and parts[0].name == OWN
    *schema, table = parts[1:] if is_own else parts
    if schema:
        word = schema_word(part.name for part in schema)
        start, end = schema[0].meta["start"], schema[-1].meta["end"] + 1
        return _Place(word, table.name, start, end, is_past)
    # A catalog alone before a table means its default schema.
    at = table.meta["start"]
    return _Place(DEFAULT_SCHEMA if is_own else None, table.name, at, at, is_past, ".")
