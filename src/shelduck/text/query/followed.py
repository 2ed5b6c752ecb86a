"""A query that is kept follows the tables and columns that it reads to their new names.

Its text stays as it was written: only names change, and what a SELECT shows keeps the name that it
had (``a`` becomes ``b AS a``). A ``*`` shows the columns that are there. A name that would mean
something else afterwards gets its table in front. What cannot be followed is Unsupported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from sqlglot import expressions as exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token, TokenType

from shelduck.errors import Unsupported
from shelduck.model.text.names import backticked, double_quoted
from shelduck.text.query.names_read import (
    ColumnNames,
    Columns,
    Find,
    FoundColumns,
    NameSide,
    Scopes,
    Source,
    look_up,
    moved_fields,
    named,
    numbered,
)
from shelduck.text.query.translate import CATALOG, OWN, parse_tree
from shelduck.text.tokens.lexer import edited

_QUOTED = {"spark": backticked, "duckdb": double_quoted}
# What a SELECT evaluates, in the order in which it is written.
_PARTS = (
    *("distinct", "expressions", "where", "group", "having", "windows", "qualify"),
    *("order", "sort", "cluster", "distribute", "limit", "offset"),
)
_ENDS = frozenset(
    {
        *(TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING),
        *(TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET, TokenType.QUALIFY),
        *(TokenType.UNION, TokenType.INTERSECT, TokenType.WINDOW, TokenType.LATERAL),
        *(TokenType.SORT_BY, TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY, TokenType.SEMICOLON),
    }
)
_OPENS = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSES = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)


@dataclass(frozen=True, slots=True)
class Followed:
    """A query after a change: its text, what it shows, and which columns it reads that are gone.

    ``columns`` is None if nobody can tell what it shows. ``has_new_types``: it reads columns that
    get another type.
    """

    text: str
    columns: Columns | None
    gone: tuple[str, ...] = ()
    has_new_types: bool = False


def followed(text: str, dialect: str, find: Find, names: Sequence[str] = ()) -> Followed:
    """Return a query of "spark" or "duckdb" as it has to be after a change.

    ``find`` returns what the parts of a table's name mean. ``names`` are what the query shows, for
    expressions without a name. Raises Unsupported with the reason if it cannot be followed.
    """
    read = text.replace(CATALOG, OWN)
    try:
        tree = parse_tree(read, dialect)
    except ParseError as error:
        raise Unsupported(f"its query cannot be read: {error}") from error
    reader = _Reader(read, dialect, find)
    columns = reader.query(tree, {}, (), names)
    gone = tuple(dict.fromkeys(reader.gone))
    edits = ((*place, words) for place, words in reader.edits.items())
    return Followed(edited(read, edits).replace(OWN, CATALOG), columns, gone, reader.has_new_types)


class _Reader:
    """Reads one query, and collects what has to be written in which places of its text."""

    def __init__(self, text: str, dialect: str, find: Find) -> None:
        self.text, self.dialect, self.find = text, dialect, find
        self.quoted = _QUOTED[dialect]
        self.edits: dict[tuple[int, int], str] = {}
        self.gone: list[str] = []
        self.has_new_types = False
        self.items: list[tuple[int, int]] | None = None
        # Names of fields that change, as far as the tables that were read tell.
        self.fields: set[str] = set()

    def query(
        self,
        node: exp.Expr,
        known: dict[str, Columns | None],
        around: Scopes,
        names: Sequence[str] = (),
    ) -> Columns | None:
        """Read a query; return what it shows. ``known`` are the queries of WITH around it."""
        known = dict(known)
        for cte in (node.args.get("with_") or exp.With()).expressions:
            known[cte.alias.lower()] = None  # as it reads itself
            known[cte.alias.lower()] = _aliased(cte, self.query(cte.this, known, around))
        if isinstance(node, exp.Subquery):
            return self.query(node.this, known, around, names)
        if isinstance(node, exp.SetOperation):
            shown = self.query(node.this, known, around, names)
            self.query(node.expression, known, around)
            return shown
        if not isinstance(node, exp.Select):
            return None
        return self._select(node, known, around, names)

    def _select(
        self,
        node: exp.Select,
        known: dict[str, Columns | None],
        around: Scopes,
        names: Sequence[str],
    ) -> Columns | None:
        sources: list[Source] = []
        scopes: Scopes = (sources, *around)
        if node.args.get("from_") is not None:
            self._source(node.args["from_"].this, known, scopes)
        joins = node.args.get("joins") or []
        for join in joins:
            self._source(join.this, known, scopes)
        for lateral in node.args.get("laterals") or []:
            self._source(lateral, known, scopes)
        for join in joins:
            self._join(join, known, scopes)
        shown = frozenset(e.alias_or_name.lower() for e in node.expressions)
        for part in _PARTS:
            here = node.args.get(part)
            for each in here if isinstance(here, list) else [here] if here else []:
                self._expressions(each, known, scopes, shown if part == "order" else frozenset())
        return self._shown(node, scopes, names)

    def _source(self, node: exp.Expr, known: dict[str, Columns | None], scopes: Scopes) -> None:
        """Add what an entry of FROM is to the sources of its SELECT."""
        sources = scopes[0]
        assert isinstance(sources, list)
        in_brackets = isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table)
        source = Source(node.alias_or_name, None)
        if isinstance(node, exp.Table) and all(isinstance(p, exp.Identifier) for p in node.parts):
            source = self._table(node, known)
        elif in_brackets:
            self._source(node.this, known, scopes)
        elif isinstance(node, exp.Query):
            source = replace(source, columns=_aliased(node, self.query(node, known, scopes)))
        else:
            self._expressions(node, known, scopes)
        for join in node.args.get("joins") or []:
            self._source(join.this, known, scopes)
            self._join(join, known, scopes)
        if node.args.get("pivots"):
            self._refuse_if_any_changes(source.columns, "PIVOT")
            source = replace(source, columns=None)
        if not in_brackets:
            sources.append(source)

    def _table(self, node: exp.Table, known: dict[str, Columns | None]) -> Source:
        """Return what a table is to its SELECT; write its new name."""
        parts = [part for part in node.parts if part.name != OWN]
        alias = node.alias_or_name
        if len(parts) == 1 and parts[0].name.lower() in known:
            return Source(alias, _aliased(node, known[parts[0].name.lower()]))
        found = self.find(tuple(part.name for part in parts))
        if found is None or node.args.get("version") or node.args.get("when"):
            return Source(alias, None)
        self.fields.update(moved_fields(found.columns or ()))
        if found.place is not None:
            for part, name in zip(reversed(parts), reversed(found.place), strict=False):
                if part.name != name:
                    self._write(part, self.quoted(name))
            if not node.alias:
                at = parts[-1].meta["end"] + 1
                self.edits[at, at] = f" AS {self.quoted(parts[-1].name)}"
        schema = None if node.alias else parts[-2].name if len(parts) > 1 else ""
        return Source(alias, _aliased(node, found.columns), schema, found.place is not None)

    def _join(self, join: exp.Join, known: dict[str, Columns | None], scopes: Scopes) -> None:
        if join.args.get("method") == "NATURAL":
            for source in scopes[0]:
                self._refuse_if_any_changes(source.columns, "NATURAL JOIN")
        for name in join.args.get("using") or []:
            found = [
                c for s in scopes[0] for c in named(s.columns or (), name.name, NameSide.BEFORE)
            ]
            after = {c.after for c in found}
            if len(after) > 1:
                raise Unsupported(f"JOIN … USING ({name.name}) needs the name on both sides")
            if None in after:
                self.gone.append(name.name)
            elif after and after != {c.before for c in found}:
                self._write(name, self.quoted(str(after.pop())))
        if join.args.get("on") is not None:
            self._expressions(join.args["on"], known, scopes)

    def _expressions(
        self,
        node: exp.Expr,
        known: dict[str, Columns | None],
        scopes: Scopes,
        shown: frozenset[str] = frozenset(),
    ) -> None:
        """Write the new names into an expression.

        In ORDER BY, ``shown`` are what its SELECT shows, which comes before columns of tables; in
        DuckDB only if it stands alone.
        """
        if isinstance(node, exp.Query):
            self.query(node, known, scopes)
            return
        if isinstance(node, exp.Dot):
            self._dot(node, scopes)
        if isinstance(node, exp.Column):
            alone = self.dialect == "spark" or isinstance(node.parent, exp.Ordered)
            if not (alone and not node.table and node.name.lower() in shown):
                self._column(node, scopes)
            return
        if isinstance(node, exp.Window):
            shown = frozenset()
        if isinstance(node, exp.Literal) and node.is_string and node.name.lower() in self.fields:
            raise Unsupported(f"the text {node.name!r} may be the name of a field that changes")
        for child in node.iter_expressions():
            self._expressions(child, known, scopes, shown)

    def _column(self, node: exp.Column, scopes: Scopes) -> None:
        """Write a column's new names, and those of fields behind it."""
        parts = [part for part in node.parts if part.name != OWN]
        names = [part.name for part in parts]
        if len(names) > 2:
            self._unqualify(parts, scopes)
        if isinstance(node.this, exp.Star):
            return
        found = look_up(names, scopes, NameSide.BEFORE)
        if found is None:
            if look_up(names, scopes, NameSide.AFTER) is not None:
                raise Unsupported(f"{node.sql(self.dialect)} would be another column then")
            return
        self.has_new_types |= any(column.has_new_type for column in found.columns)
        after = {column.after for column in found.columns}
        if len(after) > 1:
            raise Unsupported(f"JOIN … USING ({names[found.at]}) needs the name on both sides")
        new = list(names)
        for at, column in enumerate(found.path(names), found.at):
            new[at] = column.after or new[at]
            self._rename(parts[at], column)
        if found.at == 0 and None not in after:
            self._qualify(node, parts, found, new, scopes)

    def _rename(self, part: exp.Expr, column: ColumnNames) -> None:
        if column.after is None:
            self.gone.append(part.name)
        elif column.before != column.after:
            self._write(part, self.quoted(column.after))

    def _qualify(
        self,
        node: exp.Column,
        parts: Sequence[exp.Expr],
        found: FoundColumns,
        new: list[str],
        scopes: Scopes,
    ) -> None:
        """Put the table before a column whose name alone would mean another one then."""
        means = look_up(new, scopes, NameSide.AFTER)
        is_new = new[0] != parts[0].name
        hides = is_new and any(s.columns is None for s in scopes[0])
        if means is not None and means.columns == found.columns and not hides:
            return
        named_so = look_up([found.source.alias, *new], scopes, NameSide.AFTER)
        is_in_star = node.find_ancestor(exp.Star) is not None
        if named_so is None or named_so.columns != found.columns or is_in_star:
            raise Unsupported(f"{node.sql(self.dialect)} would be another column then")
        at = parts[0].meta["start"]
        self.edits[at, at] = f"{self.quoted(found.source.alias)}."

    def _unqualify(self, parts: Sequence[exp.Expr], scopes: Scopes) -> None:
        """Leave out the schema before a table that has got an alias."""
        schema, table = (part.name for part in parts[:2])
        for source in chain.from_iterable(scopes):
            is_it = source.alias.lower() == table.lower() and source.may_follow(schema)
            if is_it and source.has_new_name:
                self.edits[parts[0].meta["start"], parts[1].meta["start"]] = ""

    def _dot(self, node: exp.Dot, scopes: Scopes) -> None:
        name = node.expression
        if not isinstance(name, exp.Identifier):
            return
        owner = self._node(node.this, scopes)
        field = None if owner is None else owner.field(name.name)
        if field is not None:
            self._rename(name, field)
        elif owner is None and name.name.lower() in self.fields:
            raise Unsupported(f"{node.sql(self.dialect)} may be a field that changes")

    def _node(self, node: exp.Expr, scopes: Scopes) -> ColumnNames | None:
        """Return the column or field that an expression is, None if it is none."""
        if isinstance(node, exp.Paren):
            return self._node(node.this, scopes)
        if isinstance(node, exp.Bracket):
            owner = self._node(node.this, scopes)
            return None if owner is None else owner.item()
        if isinstance(node, exp.Dot):
            owner = self._node(node.this, scopes)
            return None if owner is None else owner.field(node.expression.name)
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            return None
        names = [part.name for part in node.parts if part.name != OWN]
        found = look_up(names, scopes, NameSide.BEFORE)
        path = [] if found is None else found.path(names)
        return path[-1] if found is not None and len(path) == len(names) - found.at else None

    def _shown(self, node: exp.Select, scopes: Scopes, names: Sequence[str]) -> Columns | None:
        """Return what a SELECT shows; write the names that its columns would lose."""
        shown: list[ColumnNames] = []
        is_known = True
        given = names if len(names) == len(node.expressions) else ()
        for n, each in enumerate(node.expressions):
            if each.is_star:
                some = self._star(each, scopes)
                is_known = is_known and some is not None
                shown += some or ()
                continue
            inner = each.this if isinstance(each, exp.Alias) else each
            column = self._node(inner, scopes)
            name = each.alias or (given[n] if given else self._name(each))
            if not each.alias:
                self._keep_name(each, name)
            inside = column.inside if column is not None else ()
            read = inner.find_all(exp.Column) if self.has_new_types else ()
            found = (self._node(one, scopes) for one in read)
            is_new = any(one.has_new_type for one in found if one is not None)
            shown.append(ColumnNames(name, name, inside, is_new))
        if not is_known:
            return None
        return tuple(shown) if self.dialect == "spark" else numbered(shown)

    def _star(self, node: exp.Expr, scopes: Scopes) -> Columns | None:
        """Return the columns of ``*`` or ``t.*``, None if nobody can tell."""
        star = node.this if isinstance(node, exp.Column) else node
        sources = scopes[0]
        if isinstance(node, exp.Column):
            sources = [s for s in sources if s.alias.lower() == node.table.lower()]
        if not isinstance(star, exp.Star) or not sources:
            return None
        left_out = {each.name.lower() for each in star.args.get("except_") or ()}
        some = [s.columns for s in sources]
        for column in chain.from_iterable(columns or () for columns in some):
            if not column.stays and (star.args.get("replace") or star.args.get("rename")):
                raise Unsupported("it replaces or renames columns of *")
        if any(columns is None for columns in some):
            return None
        every = chain.from_iterable(columns or () for columns in some)
        return tuple(c for c in every if (c.before or "").lower() not in left_out)

    def _name(self, node: exp.Expr) -> str:
        """Return the name that an engine gives to an expression without one."""
        bare = node.unnest()
        if isinstance(bare, exp.Column | exp.Dot):
            return bare.name
        if self.dialect == "duckdb" and (places := _names_in(node)):
            # DuckDB writes an expression as it names it.
            start, end = self._item(node, places[0])
            return self.text[start:end].strip()
        whole = node.transform(lambda n: exp.Paren(this=n.copy()) if _is_operation(n) else n)
        return str(whole.sql(dialect=self.dialect, normalize_functions="lower"))

    def _keep_name(self, node: exp.Expr, name: str) -> None:
        """Write ``AS`` and the name of what would lose it: its text changes."""
        places = _names_in(node)
        if not places:
            return
        bare = node.unnest()
        one_name = isinstance(bare, exp.Column | exp.Dot)
        first = places[-1].meta["start"] if one_name else places[0].meta["start"]
        last = places[-1].meta["end"]
        written = [words for (start, _), words in self.edits.items() if first <= start <= last]
        if any(not (one_name and words.endswith(".")) for words in written):
            end = last + 1 if bare is node and one_name else self._item(node, places[0])[1]
            self.edits[end, end] = f" AS {self.quoted(name)}"

    def _item(self, node: exp.Expr, part: exp.Expr) -> tuple[int, int]:
        """Return where an entry of a SELECT's list stands; ``part`` is a name somewhere in it."""
        if self.items is None:
            self.items = list(_items(Dialect.get_or_raise(self.dialect).tokenize(self.text)))
        at = part.meta["start"]
        around = [(end - start, start, end) for start, end in self.items if start <= at < end]
        inner = 0
        while part is not node and part.parent is not None:
            inner += isinstance(part.parent, exp.Select) and part.arg_key == "expressions"
            part = part.parent
        _, start, end = sorted(around)[inner]
        return start, end

    def _write(self, part: exp.Expr, words: str) -> None:
        self.edits[part.meta["start"], part.meta["end"] + 1] = words

    def _refuse_if_any_changes(self, columns: Columns | None, what: str) -> None:
        if not all(column.stays for column in columns or ()):
            raise Unsupported(f"{what} goes by the names of columns")


def _items(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Yield the places of the entries of all lists of SELECT."""
    begun: list[int | None] = [None]
    for n, token in enumerate(tokens):
        kind = token.token_type
        last = tokens[n - 1] if n else token
        is_except = kind is TokenType.EXCEPT and last.token_type is not TokenType.STAR
        if begun[-1] is not None and (kind in _ENDS or kind in _CLOSES or is_except):
            yield begun[-1], last.end + 1
            begun[-1] = None
        if kind in _OPENS:
            begun.append(None)
        elif kind in _CLOSES and len(begun) > 1:
            begun.pop()
        elif kind is TokenType.SELECT and n + 1 < len(tokens):
            begun[-1] = tokens[n + 1].start
        elif kind is TokenType.COMMA and begun[-1] is not None:
            yield begun[-1], last.end + 1
            begun[-1] = token.end + 1
    if begun[-1] is not None:
        yield begun[-1], tokens[-1].end + 1


def _aliased(node: exp.Expr, columns: Columns | None) -> Columns | None:
    """Return columns under the names that an alias such as ``t (x, y)`` gives them."""
    names = list(node.alias_column_names)
    if columns is None or not names:
        return columns
    new = [
        ColumnNames(n, n, c.inside, c.has_new_type) for n, c in zip(names, columns, strict=False)
    ]
    return (*new, *columns[len(new) :])


def _names_in(node: exp.Expr) -> list[exp.Expr]:
    """Return the names in an expression, in the order of the text."""
    found = [each for each in node.find_all(exp.Identifier) if "start" in each.meta]
    return sorted(found, key=lambda each: int(each.meta["start"]))


def _is_operation(node: exp.Expr) -> bool:
    return isinstance(node, exp.Binary) and not isinstance(node, exp.Dot)
