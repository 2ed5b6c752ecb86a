"""What the query of a materialized view is made of: tables, groups, sums; no I/O.

A query is never written again: `shelduck.materialized.refresh` runs it as it stands over fewer rows
of its tables. This module says for which queries that gives all that changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import pairwise

from sqlglot import expressions as exp
from sqlglot.errors import ParseError

from shelduck.text.query.translate import parse_tree
from shelduck.text.tokens.lexer import TokenKind, tokenize

# What depends on the moment or the session, or is drawn; some need no brackets.
_UNSTABLE = frozenset(
    """current_catalog current_database current_date current_path current_schema current_time
    current_timestamp current_timezone current_user curdate input_file_block_length
    input_file_block_start input_file_name localtime localtimestamp monotonically_increasing_id now
    rand randn random randstr session_user shuffle spark_partition_id uniform user uuid
    version""".split()
)
_CLAUSES = {
    "with_": "WITH",
    "laterals": "LATERAL VIEW",
    "having": "HAVING",
    "qualify": "QUALIFY",
    "windows": "WINDOW",
    "order": "ORDER BY",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "pivots": "PIVOT",
    "sample": "TABLESAMPLE",
    "hint": "a hint",
}
_ONE_ROW = (exp.Count, exp.Sum, exp.Min, exp.Max)


class NeedsAllError(Exception):
    """Only all rows of its tables give the rows of the query; the text says why."""


class Fold(Enum):
    """How a column of groups is computed from its value for some rows and that for others."""

    SUM = "sum"
    COUNT = "count"
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class JoinedOn:
    """How the table of a LEFT JOIN is matched: columns of another table, and its own."""

    word: str
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class QueryShape:
    """The parts of a query whose rows follow from changed rows of its tables.

    ``tables`` are the placeholders of its tables, in order; those of LEFT JOIN have a `JoinedOn`.
    ``keys`` are the places of the columns that identify its groups, None if its rows are those of
    the tables; ``sources`` has the table and the column which such a column is. ``folds`` has a
    `Fold` for each column that has one, by place. The column at ``counted`` counts the rows of a
    group. If it ``subtracts``, rows can leave a group without a look at the others. A sum over what
    may be NULL needs the count of its values: ``told`` has the place of that. ``named`` are all
    names in the query, in lower case; none if it has a star, which means more.
    """

    tables: Mapping[str, JoinedOn | None]
    keys: tuple[int, ...] | None = None
    sources: Mapping[int, tuple[str, str]] | None = None
    folds: Mapping[int, Fold] | None = None
    counted: int | None = None
    subtracts: bool = False
    told: Mapping[int, int] = field(default_factory=dict)
    named: frozenset[str] = frozenset()


def query_shape(text: str, columns: Mapping[str, Mapping[str, bool]]) -> QueryShape:
    """Return the shape of a query in Spark's SQL.

    ``columns`` are those of its tables, by placeholder: whether each may be NULL. Raises
    NeedsAllError for a query of which only all rows tell what changed.
    """
    try:
        tree = parse_tree(text, "spark")
    except ParseError as error:
        raise NeedsAllError("it cannot be taken apart") from error
    if not isinstance(tree, exp.Select):
        raise NeedsAllError("it is not one SELECT")
    for clause, words in _CLAUSES.items():
        if tree.args.get(clause):
            raise NeedsAllError(f"it has {words}")
    joined = _Joined(columns)
    joined.take(tree)
    if any(node is not tree for node in tree.find_all(exp.Query)):
        raise NeedsAllError("it has a query inside")
    if tree.find(exp.Window):
        raise NeedsAllError("it has a window")
    group, distinct = tree.args.get("group"), tree.args.get("distinct")
    if group is None and not distinct:
        if any(each.find(exp.AggFunc, exp.Anonymous) for each in tree.expressions):
            raise NeedsAllError("it may have one row for all rows")
        return QueryShape(joined.tables, named=_names_in(tree))
    if distinct and (group is not None or any(each.is_star for each in tree.expressions)):
        raise NeedsAllError("it has DISTINCT beside GROUP BY or *")
    return replace(_Grouped(tree.expressions, joined).shape(group), named=_names_in(tree))


def require_stable(text: str, columns: Collection[str]) -> None:
    """Raise NeedsAllError if a query may give other rows though its tables stay as they are.

    ``columns`` are the names of its tables' columns.
    """
    known = {name.lower() for name in columns}
    for token, behind in pairwise(tokenize(text)):
        name = token.key.lower()
        is_called = behind.key == "(" or name not in known
        if token.kind is TokenKind.WORD and name in _UNSTABLE and is_called:
            raise NeedsAllError(f"{name} may have another value next time")


def _names_in(tree: exp.Select) -> frozenset[str]:
    if any(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star)):
        return frozenset()
    return frozenset(node.name.lower() for node in tree.find_all(exp.Identifier))


class _Joined:
    """The tables of a query, and which column a name means."""

    def __init__(self, columns: Mapping[str, Mapping[str, bool]]) -> None:
        self._columns = {
            word: {name.lower(): (name, may_be_null) for name, may_be_null in own.items()}
            for word, own in columns.items()
        }
        self._words: dict[str, str] = {}
        self.tables: dict[str, JoinedOn | None] = {}

    def take(self, tree: exp.Select) -> None:
        """Read FROM and the joins."""
        source = tree.args.get("from_")
        if source is None:
            raise NeedsAllError("it reads no table")
        self._add(source.this)
        for join in (*(source.this.args.get("joins") or ()), *(tree.args.get("joins") or ())):
            kind = " ".join(str(join.args.get(part) or "") for part in ("method", "side", "kind"))
            word = self._add(join.this)
            if kind.split() in (["LEFT"], ["LEFT", "OUTER"]):
                self.tables[word] = self._matching(word, join)
            elif kind.split() not in ([], ["INNER"], ["CROSS"]):
                raise NeedsAllError(f"it has {' '.join(kind.split())} JOIN")

    def _add(self, node: exp.Expr) -> str:
        if not isinstance(node, exp.Table) or node.name not in self._columns:
            raise NeedsAllError("it reads more than tables of the lake")
        if node.name in self.tables:
            raise NeedsAllError("it reads a table twice")
        if node.args.get("sample") or node.args.get("pivots") or node.alias_column_names:
            raise NeedsAllError("it changes a table before it reads it")
        self.tables[node.name] = None
        self._words[node.alias_or_name.lower()] = node.name
        return node.name

    def _matching(self, word: str, join: exp.Join) -> JoinedOn:
        """Return which columns of an earlier table a row of a LEFT JOIN's table must have."""
        pairs: dict[str, list[tuple[str, str]]] = {}
        for one, other in self._equalities(word, join):
            mine, theirs = (one, other) if one and one[0] == word else (other, one)
            if mine and theirs and mine[0] == word and self.tables.get(theirs[0], mine) is None:
                pairs.setdefault(theirs[0], []).append((theirs[1], mine[1]))
        for owner, found in pairs.items():
            if owner != word:
                return JoinedOn(owner, tuple(found))
        raise NeedsAllError("a LEFT JOIN is not on columns of a table before it")

    def _equalities(
        self, word: str, join: exp.Join
    ) -> Iterator[tuple[tuple[str, str] | None, tuple[str, str] | None]]:
        for name in join.args.get("using") or ():
            owners = [w for w in self.tables if w != word and name.name.lower() in self._columns[w]]
            if len(owners) == 1:
                yield (owners[0], name.name), (word, name.name)
        on = join.args.get("on")
        for each in on.flatten() if isinstance(on, exp.And) else (on,):
            bare = None if each is None else each.unnest()
            if isinstance(bare, exp.EQ):
                yield self.column(bare.left), self.column(bare.right)

    def column(self, node: exp.Expr) -> tuple[str, str] | None:
        """Return the table and the column that a name is, None if it is more, or not known."""
        node = node.unnest()
        if not isinstance(node, exp.Column) or len(node.parts) > 2 or node.is_star:
            return None
        name = node.name.lower()
        if node.table:
            owners = [w for w in (self._words.get(node.table.lower()),) if w is not None]
        else:
            owners = [w for w in self.tables if name in self._columns[w]]
        owners = [w for w in owners if name in self._columns[w]]
        return (owners[0], self._columns[owners[0]][name][0]) if len(owners) == 1 else None

    def knows(self, name: str) -> bool:
        """Return whether a table has a column of this name."""
        return any(name.lower() in self._columns[word] for word in self.tables)

    def is_there(self, node: exp.Expr) -> bool:
        """Return whether an expression is a column that is never NULL."""
        found = self.column(node)
        if found is None or self.tables[found[0]] is not None:
            return False
        return not self._columns[found[0]][found[1].lower()][1]


@dataclass(frozen=True)
class _Grouped:
    """What a query with groups shows."""

    outputs: Sequence[exp.Expr]
    joined: _Joined

    def shape(self, group: exp.Group | None) -> QueryShape:
        """Return the shape of the query; without a group, all that it shows is one (DISTINCT)."""
        shown = [each.unalias() for each in self.outputs]
        keys = tuple(range(len(shown))) if group is None else self._keys(group, shown)
        sources = {}
        for place in keys:
            source = self.joined.column(shown[place])
            if source is not None and self.joined.tables[source[0]] is None:
                sources[place] = source
        folds = {n: self._fold(shown[n]) for n in range(len(shown)) if n not in keys}
        known = {n: fold for n, fold in folds.items() if fold is not None}
        if len(known) < len(folds):
            return QueryShape(self.joined.tables, keys, sources)
        counts = [n for n, fold in known.items() if fold is Fold.COUNT]
        counted = next(
            (n for n in counts if isinstance(shown[n].this, exp.Star | exp.Literal)), None
        )
        counts_of = {n: shown[n].this for n in counts}
        sums = {n: shown[n].this for n, fold in known.items() if fold is Fold.SUM}
        told = {n: m for n, each in sums.items() for m, of in counts_of.items() if each == of}
        subtracts = counted is not None and not {Fold.MIN, Fold.MAX} & set(known.values())
        subtracts &= all(n in told or self.joined.is_there(each) for n, each in sums.items())
        return QueryShape(self.joined.tables, keys, sources, known, counted, subtracts, told)

    def _keys(self, group: exp.Group, shown: Sequence[exp.Expr]) -> tuple[int, ...]:
        if any(value for part, value in group.args.items() if part != "expressions"):
            raise NeedsAllError("its groups are not a list of columns")
        found = []
        for each in group.expressions:
            place = self._place(each, shown)
            if place is None:
                raise NeedsAllError(f"it does not show {each.sql('spark')} of GROUP BY")
            found.append(place)
        return tuple(dict.fromkeys(found))

    def _place(self, node: exp.Expr, shown: Sequence[exp.Expr]) -> int | None:
        """Return which column of the query an entry of GROUP BY is."""
        if isinstance(node, exp.Literal) and node.is_int:
            return int(node.name) - 1
        for place, each in enumerate(shown):
            column = self.joined.column(node)
            if each == node or (column is not None and column == self.joined.column(each)):
                return place
        if isinstance(node, exp.Column) and not node.table and not self.joined.knows(node.name):
            names = [each.alias_or_name.lower() for each in self.outputs]
            return names.index(node.name.lower()) if names.count(node.name.lower()) == 1 else None
        return None

    def _fold(self, node: exp.Expr) -> Fold | None:
        if not isinstance(node, _ONE_ROW) or isinstance(node.this, exp.Distinct):
            return None
        if node.expressions or node.args.get("expressions"):
            return None
        return Fold(type(node).__name__.lower())
