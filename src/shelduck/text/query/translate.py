"""Texts of views and macros, for the other engine or for another schema, where they mean the same.

Queries go from Spark's text to DuckDB's and back. sqlglot would translate far more, some of it into
something else (``cast(1.7 as int)``, division by zero, the places of arrays): what is not listed
here is Unsupported, and says why. For another schema, only names of tables change. Where they
stand, tokens tell in Spark's text, and sqlglot's tree in DuckDB's. All such trees are made here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import expressions as exp
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.optimizer.scope import traverse_scope

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.tables.table_version import DEFAULT_SCHEMA
from shelduck.model.text.names import backticked, double_quoted, schema_names, schema_word
from shelduck.text.query.relations import find_relations
from shelduck.text.tokens.lexer import edited, name_of, tokenize
from shelduck.text.tokens.parts import NamedTable, Query, Relation

# What DuckLake puts where a view names its own catalog.
CATALOG = "{DUCKLAKE_CATALOG}"
OWN = "__own_catalog__"
"""A name in the place of CATALOG, which sqlglot can read."""

_SAME_IN_BOTH = frozenset(
    """select from where group having order ordered limit offset subquery union intersect except
    with cte join table tablealias alias column identifier star paren distinct boolean null
    and or not eq neq gt gte lt lte is in between exists nullsafeeq nullsafeneq
    add sub mul neg dpipe case if coalesce nullif
    count sum min max avg upper lower length abs currentdate currenttimestamp
    year month tsordstodate window windowspec filter rownumber rank denserank lag lead
    datatype datatypeparam""".split()
)
_INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")


def parse_tree(text: str, dialect: str) -> exp.Expr:
    """Return the tree of the one statement of a text.

    Raises sqlglot's ParseError, of one line, for another text and one that it cannot read, for one
    that is nested deeper than Python can follow, and for one with ``${…}``, which Spark replaces
    wherever it stands.
    """
    if "${" in text:
        raise ParseError("Spark would put a setting in the place of ${...}")
    try:
        trees = sqlglot.parse(text, read=dialect)
    except RecursionError:
        # The traceback of this one is long and says nothing.
        raise ParseError("the text is nested too deep") from None
    except SqlglotError as error:
        raise ParseError(str(error).split("\n", maxsplit=1)[0]) from error
    if len(trees) != 1 or trees[0] is None:
        raise ParseError("it is not one expression")
    return trees[0]


def read_tree(text: str, dialect: str, what: str) -> exp.Expr:
    """Return what `parse_tree` does; InvalidRequest says that ``what`` cannot be parsed."""
    try:
        return parse_tree(text, dialect)
    except ParseError as error:
        raise InvalidRequest(f"cannot parse {what} {text!r}: {error}", about="text") from error


def strict(tree: exp.Expr) -> exp.Expr:
    """Return the tree with casts that fail, as both engines' do, where sqlglot says TRY_CAST."""
    return tree.transform(
        lambda node: (
            exp.Cast(this=node.this, to=node.args["to"]) if isinstance(node, exp.TryCast) else node
        )
    )


def duckdb_query(query: Query, places: Mapping[str, tuple[str, str]], names: Sequence[str]) -> str:
    """Return the DuckDB text of a Spark query, or raise Unsupported with what stands in the way.

    ``places`` has DuckDB's words for the table and for its time (or '') for each placeholder;
    ``names`` are the columns as Spark calls them.
    """
    tree = _parsed(query.without({}), "spark")
    _check(tree, "spark")
    _name_columns(tree, names)
    text = strict(tree).sql(dialect="duckdb", comments=False)
    for word, place in places.items():
        text = _placed(text, word, *place)
    return text


def _placed(text: str, word: str, name: str, time: str) -> str:
    """Put a table in the places of its placeholder; DuckDB wants the time behind the alias."""
    pattern = re.compile(re.escape(word) + r'((?: AS (?:"(?:[^"]|"")*"|\w+))?)')
    return pattern.sub(lambda match: f"{name}{match[1]}{time and ' ' + time}", text)


def refusal_query(names: Sequence[str], reason: str) -> str:
    """Return a DuckDB query with these columns that fails with ``reason`` whatever is asked."""
    # A NULL would let DuckDB answer `WHERE column = 1` without looking: every part has to fail.
    failure = refusal_expression(reason)
    columns = ", ".join(f"{failure} AS {double_quoted(n)}" for n in names)
    return f"SELECT {columns} WHERE {failure}"


def refusal_expression(reason: str) -> str:
    """Return a DuckDB expression that fails with ``reason``."""
    return "error('" + reason.replace("'", "''") + "')"


def spark_query(text: str, *, nests: bool = False) -> Query:
    """Return the Spark query that a view's DuckDB text means, its tables as placeholders.

    With ``nests``, names of three parts are of schemas inside schemas, else of other databases.
    Raises Unsupported when it may mean something else to Spark, or nothing.
    """
    tree = _parsed(text.replace(CATALOG, OWN), "duckdb")
    _replace_count_star(tree, named=True)
    relations = _take_relations(tree, nests=nests)
    _check(tree, "duckdb")
    _name_columns(tree, ())
    return Query(strict(tree).sql(dialect="spark", comments=False), relations)


def _replace_count_star(tree: exp.Expr, *, named: bool) -> None:
    """Write DuckDB's count_star() as count(*), which keeps the name of a column if ``named``."""
    for node in list(tree.find_all(exp.Anonymous)):
        if str(node.name).lower() == "count_star" and not node.expressions:
            counted = exp.Count(this=exp.Star(), big_int=True)
            is_column = isinstance(node.parent, exp.Select) and node.arg_key == "expressions"
            shown = named and is_column
            node.replace(exp.alias_(counted, "count_star()", quoted=True) if shown else counted)


def _parsed(text: str, dialect: str) -> exp.Expr:
    try:
        tree = parse_tree(text, dialect)
    except ParseError as error:
        raise Unsupported(f"the query cannot be translated: {error}") from error
    if not isinstance(tree, exp.Query):
        raise Unsupported("the query cannot be translated: it is not one SELECT")
    return tree


def translated_macro(
    text: str, *, is_table: bool, macros: Collection[str], read: str, write: str
) -> str:
    """Return the text of a macro in the other dialect, "spark" or "duckdb".

    ``macros`` are the names, in lower case, of those that it may call. Raises Unsupported for text
    that may mean something else there.
    """
    tree = _parsed(text if is_table else f"SELECT {text}", read)
    _replace_count_star(tree, named=is_table)
    _check(tree, read, macros)
    found = strict(tree) if is_table else strict(tree).expressions[0]
    return str(found.sql(dialect=write, comments=False, normalize_functions=False))


def _check(tree: exp.Expr, dialect: str, macros: Collection[str] = ()) -> None:
    for node in tree.walk():
        if isinstance(node, exp.Anonymous) and str(node.name).lower() in macros:
            continue
        allowed = _JUDGES.get(node.key)
        fine = node.key in _SAME_IN_BOTH if allowed is None else allowed(node, dialect)
        if not fine:
            raise Unsupported(
                f"{node.sql(dialect)!r} may have different meanings in Spark and DuckDB"
            )
        if isinstance(node, exp.Select) and node.args.get("hint"):
            raise Unsupported("DuckDB does not support hints")
    joined = any(j.args.get("using") or j.args.get("method") for j in tree.find_all(exp.Join))
    if joined and any(s.is_star for s in tree.find_all(exp.Select)):
        raise Unsupported("Spark and DuckDB order the columns of * differently after JOIN … USING")


def _is_plain_cast(node: exp.Expr, _dialect: str) -> bool:
    """Tell whether a literal is cast to what it is written as."""
    value, kind = node.this, node.args["to"].this
    if not isinstance(value, exp.Literal):
        return False
    if value.is_string:
        return kind in (exp.DType.DATE, exp.DType.TIMESTAMPTZ)
    return kind.value in _INTEGERS and re.fullmatch(r"\d{1,18}", value.name) is not None


def _is_plain_like(node: exp.Expr, _dialect: str) -> bool:
    """Tell whether a pattern is a text without the backslash, which only Spark takes for escape."""
    pattern = node.expression
    return isinstance(pattern, exp.Literal) and pattern.is_string and "\\" not in pattern.name


def _has_plain_divisor(node: exp.Expr, _dialect: str) -> bool:
    divisor = node.expression
    if not isinstance(divisor, exp.Literal) or divisor.is_string:
        return False
    return re.fullmatch(r"[1-9]\d*", divisor.name) is not None


def _names_table(node: exp.Expr, _dialect: str) -> bool:
    """Return whether a table has a name of several schemas, with dots between them."""
    above: exp.Expr | None = node
    while isinstance(above, exp.Dot):
        if not isinstance(above.expression, exp.Identifier):
            return False
        above = above.parent
    return isinstance(above, exp.Table) and isinstance(above.this, exp.Dot)


_JUDGES: dict[str, Callable[[exp.Expr, str], bool]] = {
    "cast": _is_plain_cast,
    "trycast": _is_plain_cast,
    "like": _is_plain_like,
    "mod": _has_plain_divisor,
    # Spark's concat() is NULL when a part is, DuckDB's is not; sqlglot writes || for the first.
    "concat": lambda _node, dialect: dialect == "spark",
    "dot": _names_table,
    # DuckLake replaces that word wherever it stands.
    "literal": lambda node, _dialect: CATALOG not in node.name,
    "trim": lambda node, _dialect: {k for k, v in node.args.items() if v} == {"this"},
}


def _name_columns(tree: exp.Expr, names: Sequence[str]) -> None:
    """Give each expression without a name that of ``names``, or the name that DuckDB gives it."""
    select = tree
    while not isinstance(select, exp.Select):
        select = select.this
    shown = select.expressions
    stars = [n for n, e in enumerate(shown) if e.is_star]
    if len(stars) > 1:
        names = ()
    for n, expression in enumerate(shown):
        if isinstance(expression, exp.Alias | exp.Column) or expression.is_star:
            continue
        at = n if not stars or n < stars[0] else n - len(shown)
        name = names[at] if names else expression.sql(dialect="duckdb", normalize_functions="lower")
        select.set(
            "expressions",
            [
                exp.alias_(e, name, quoted=True) if e is expression else e
                for e in select.expressions
            ],
        )


def _take_relations(tree: exp.Expr, *, nests: bool) -> tuple[Relation, ...]:
    """Put placeholders in the places of the tables, and return what they stand for."""
    found: dict[tuple[object, ...], Relation] = {}
    owners: set[tuple[str, str]] = set()
    for scope in traverse_scope(tree):
        for source in scope.sources.values():
            if isinstance(source, exp.Table) and source.args.get("this"):
                _take_relation(source, found, owners, nests=nests)
    for column in tree.find_all(exp.Column):
        if (column.text("db").lower(), column.table.lower()) in owners:
            column.set("db", None)
            column.set("catalog", None)
    return tuple(found.values())


def _take_relation(
    table: exp.Table,
    found: dict[tuple[object, ...], Relation],
    owners: set[tuple[str, str]],
    *,
    nests: bool,
) -> None:
    if not all(isinstance(part, exp.Identifier) for part in table.parts):
        raise Unsupported(f"{table.sql('duckdb')!r} is a function of DuckDB")
    *schema, name = (part.name for part in table.parts)
    written = schema[-1] if schema else ""
    if schema == [OWN]:
        # A catalog alone before a table means its default schema.
        schema = [DEFAULT_SCHEMA]
    if len(schema) > 1 and schema[0] == OWN:
        schema = schema[1:]
    elif len(schema) > 1 and not nests:
        raise Unsupported(f"{table.sql('duckdb')!r} is a table of another database")
    version = _version_of(table)
    parts = (*schema, name)
    identity = (tuple(p.lower() for p in parts), version)
    if identity not in found:
        word = f"__lake_{len(found)}__"
        found[identity] = Relation(NamedTable(parts), word, version)
    if not table.alias:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(name, quoted=True)))
        owners.add((written.lower(), name.lower()))
    for key in ("catalog", "db", "when"):
        table.set(key, None)
    table.set("this", exp.to_identifier(found[identity].placeholder))


def _version_of(table: exp.Table) -> int | None:
    time = table.args.get("when")
    if time is None:
        return None
    number = time.args.get("expression")
    if str(time.args.get("kind")).upper() == "VERSION" and isinstance(number, exp.Literal):
        return int(number.name)
    raise Unsupported(f"{table.sql('duckdb')!r} has a time that is not a version")


def require_columns(names: Sequence[str], aliases: Sequence[str], view: str) -> tuple[str, ...]:
    """Return the column names of a view, or raise InvalidRequest when its list does not fit."""
    if aliases and len(aliases) != len(names):
        raise InvalidRequest(
            f"view {view} lists {len(aliases)} column(s), but its query has {len(names)}"
        )
    found = tuple(aliases or names)
    lowered = [n.lower() for n in found]
    twice = next((n for n in found if lowered.count(n.lower()) > 1), None)
    if twice is not None:
        raise InvalidRequest(
            f"view {view} has two columns called {twice!r}; give them different names"
        )
    return found


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
