"""sqlglot's tree of a text."""

from __future__ import annotations

import sqlglot
from sqlglot import expressions as exp
from sqlglot.errors import ParseError, SqlglotError

from shelduck.errors import InvalidRequest


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
