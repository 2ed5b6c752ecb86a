"""The object of a statement that cannot be read: whose it is says who answers.

Spark carries out some statements that a lake refuses, in another way or only in part. So an error
about an object of a lake is the lake's, and Spark is asked about all others.
"""

from __future__ import annotations

from collections.abc import Sequence

from shelduck.errors import InvalidRequest
from shelduck.sql.tokens.lexer import Kind, Token, name_of

SPARKS = "statement of Spark"
"""The object of an error which says that only Spark runs the statement."""
# Each verb with the word behind which its table stands, if others may come before it.
_VERBS = {
    **dict.fromkeys(
        """ALTER ANALYZE CACHE COMMENT CONVERT CREATE DELETE DESC DESCRIBE DROP EXPORT FSCK IMPORT
        INSERT LOCK MERGE MSCK OPTIMIZE REFRESH REORG REPAIR REPLACE RESTORE SHOW TRUNCATE UNCACHE
        UNDROP UNLOCK UPDATE VACUUM""".split(),
        "",
    ),
    **dict.fromkeys(("COPY", "LOAD"), "INTO"),
    **dict.fromkeys(("DENY", "GRANT", "REVOKE"), "ON"),
    "GENERATE": "FOR",
}
# Words between a verb and its table.
_BEFORE = frozenset(
    """BLOOMFILTER COLUMN COLUMNS DELTA DETAIL EVOLUTION EXISTS EXTENDED EXTERNAL FORMATTED FROM
    GRANTS HISTORY ICEBERG IF IN INDEX INTO LAZY MATERIALIZED NOT ON OR OVERWRITE PARTITIONS REPAIR
    REPLACE SCHEMA TABLE TABLES TBLPROPERTIES TO VIEW WITH""".split()
)
# Of these, Spark can answer some that a lake cannot read.
_SPARKS_TOO = frozenset("CACHE DESC DESCRIBE INSERT REFRESH SHOW UNCACHE".split())
_SHOWN = ("COLUMNS", "CREATE", "GRANTS", "PARTITIONS", "TBLPROPERTIES")
_MADE = ("EXTERNAL", "MATERIALIZED", "OR", "TABLE", "VIEW")
_NOT_EXPLAINED = ("DELETE", "MERGE", "UPDATE")


def named_object(tokens: Sequence[Token]) -> tuple[str, ...] | None:
    """Return the parts of the name of the table or view that a statement is about.

    None for a statement that is about none, or that is not known.
    """
    verb = tokens[0].key
    if verb == "EXPLAIN":
        inner = next((n for n, t in enumerate(tokens[:3]) if t.key in _NOT_EXPLAINED), 0)
        return named_object(tokens[inner:]) if inner else None
    following = tokens[1].key if len(tokens) > 1 else ""
    if verb not in _VERBS or (verb == "SHOW" and following not in _SHOWN):
        return None
    if verb == "CREATE" and following == "INDEX":
        at = _behind(tokens, "ON")
    elif verb == "CREATE" and following not in _MADE:
        return None
    else:
        at = _behind(tokens, _VERBS[verb])
    while tokens[at].key in _BEFORE or (verb == "SHOW" and tokens[at].key == "CREATE"):
        at += 1
    return _name(tokens, at)


def is_sparks_too(tokens: Sequence[Token]) -> bool:
    """Return whether Spark may be able to answer a statement that a lake cannot read."""
    return tokens[0].key in _SPARKS_TOO


def _behind(tokens: Sequence[Token], word: str) -> int:
    at = next((n for n, t in enumerate(tokens) if t.key == word), len(tokens) - 2) if word else 0
    return at + 1


def _name(tokens: Sequence[Token], at: int) -> tuple[str, ...] | None:
    parts: list[str] = []
    while tokens[at].may_name and tokens[at].kind is not Kind.END:
        try:
            parts.append(name_of(tokens[at]))
        except InvalidRequest:
            return None
        if tokens[at + 1].key != ".":
            return tuple(parts)
        at += 2
    return None
