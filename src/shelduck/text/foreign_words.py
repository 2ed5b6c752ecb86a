"""Statements, procedures and transforms that Delta, Iceberg, Databricks and Hive have alone.

Each has a sentence that says what to write instead. They are looked up only where a text could not
be read, so that they cost nothing else. Names of properties are in
`shelduck.model.tables.properties`.

To add a statement, add a line to ``_STATEMENTS``: a pattern of the words that make it known, and
what follows ``; `` in the error. In a pattern ``<name>`` is a name with or without dots, ``…`` any
words before the query, ``[A B]`` words that may be missing, and ``A|B`` one of both. What follows
the pattern does not matter, and the first pattern that fits counts. To add a procedure or a
transform of partition keys, add a line to ``PROCEDURES`` or ``TRANSFORMS``. Tests in
``tests/unit/test_foreign_words.py`` read every line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from shelduck.errors import InvalidRequest
from shelduck.text.tokens.lexer import Token, TokenKind, dotted_names, name_of

_TABLE = "CREATE [OR REPLACE] [EXTERNAL] TABLE [IF NOT EXISTS] <name>"
_ALTER = "ALTER TABLE [IF EXISTS] <name>"
_SORT = "use SORTED BY (...)"
_SET_SORT = "use ALTER TABLE t SET SORTED BY (...) REWRITE"
_ANALYZE = "use ANALYZE TABLE t COMPUTE STATISTICS FOR ALL COLUMNS"
_NO_PARTITION = "partitions come with their rows"
_FILES = "the files of a lake are Parquet below its data path; leave it out"
_RIGHTS = "give rights on the catalog's database and on the folder of the files"
_LOAD = "use INSERT INTO t SELECT * FROM parquet.`folder`, or CALL add_files('t', 'folder')"
_PIPELINE = "use spark.readStream and Table.merge in foreachBatch"
_STATEMENTS = {
    # Delta and Databricks
    "UNDROP": "use UNDROP TABLE t, or CREATE TABLE t AS SELECT * FROM t VERSION AS OF n",
    "FSCK": "use CALL check('t'), or CALL check(repair => true)",
    "GENERATE": "use CALL export_delta('t', 'folder') or CALL export_iceberg('t', 'folder')",
    f"{_TABLE} … SKEWED BY": _SORT,
    f"{_TABLE} … CLUSTER BY AUTO": "use CLUSTER BY (...)",
    f"{_ALTER} CLUSTER BY AUTO": "use CLUSTER BY (...)",
    f"{_ALTER} SET|UNSET TAGS": "use SET TBLPROPERTIES ('tag' = 'value')",
    f"{_ALTER} ALTER|CHANGE [COLUMN] <name> SET|UNSET TAGS": "use COMMENT 'text'",
    f"{_ALTER} ALTER|CHANGE [COLUMN] <name> SET|DROP MASK": "use a view",
    f"{_ALTER} SET|DROP ROW FILTER": "use a view",
    f"{_ALTER} [SET] OWNER TO": _RIGHTS,
    f"{_ALTER} SET|UNSET MANAGED": _FILES,
    f"{_ALTER} DEFAULT COLLATION": "DuckLake has no collations; leave it out",
    f"{_ALTER} ENABLE|DISABLE|INHERIT PREDICTIVE OPTIMIZATION": "use CALL maintain()",
    "OPTIMIZE <name> … ZORDER BY": "use ALTER TABLE t SET SORTED BY (...), then OPTIMIZE",
    "INSERT OVERWRITE [TABLE] <name> … REPLACE USING|ON": "use INSERT INTO t REPLACE",
    "CREATE [OR REPLACE] FUNCTION [IF NOT EXISTS] <name> … LANGUAGE": (
        "use CREATE FUNCTION f(x INT) RETURNS INT RETURN x + 1, or register a function of Spark"
    ),
    "CREATE [OR REPLACE] FUNCTION [IF NOT EXISTS] <name> AS '": "register a function of Spark",
    "CREATE [OR REFRESH] LIVE|STREAMING": _PIPELINE,
    "REFRESH STREAMING TABLE": _PIPELINE,
    "APPLY CHANGES INTO": "use MERGE INTO",
    "CREATE|DROP [OR REPLACE] BLOOMFILTER|SEARCH|VECTOR INDEX": _SET_SORT,
    # Iceberg
    "REORG TABLE": "use REORG TABLE t APPLY (PURGE)",
    f"{_ALTER} WRITE DISTRIBUTED BY": (
        "rows of one partition are written together in any case; leave it out"
    ),
    f"{_ALTER} DROP IDENTIFIER FIELDS": "use DROP CONSTRAINT identifier_fields",
    # Hive
    f"{_ALTER} ADD [IF NOT EXISTS] PARTITION (": f"{_NO_PARTITION}; leave it out",
    f"{_ALTER} PARTITION … RENAME TO": "use UPDATE t SET",
    f"{_ALTER} RECOVER PARTITIONS": f"{_NO_PARTITION}; leave it out",
    f"{_ALTER} EXCHANGE PARTITION": "use INSERT INTO t REPLACE WHERE",
    f"{_ALTER} TOUCH|ARCHIVE|UNARCHIVE": "leave it out",
    f"{_ALTER} [PARTITION …] CONCATENATE": "use OPTIMIZE t",
    f"{_ALTER} [PARTITION …] COMPACT": "use OPTIMIZE t",
    f"{_ALTER} [PARTITION …] SET LOCATION|FILEFORMAT|SERDE|SERDEPROPERTIES": _FILES,
    f"{_ALTER} UNSET SERDEPROPERTIES": _FILES,
    f"{_ALTER} [NOT] SKEWED|CLUSTERED": "use SET PARTITIONED BY (...) and SET SORTED BY (...)",
    f"{_ALTER} NOT SORTED": "use RESET SORTED BY",
    "CREATE EXTERNAL TABLE": "use CREATE TABLE, then CALL add_files('t', 'folder')",
    # Spark parses some of these, and others only to refuse them
    "ANALYZE TABLES": _ANALYZE,
    "MSCK REPAIR TABLE": f"{_NO_PARTITION}; leave it out",
    "REPAIR TABLE": f"{_NO_PARTITION}; leave it out",
    "COPY INTO": _LOAD,
    "LOAD DATA": _LOAD,
    "IMPORT TABLE": _LOAD,
    "EXPORT TABLE": "use CALL export_delta('t', 'folder') or CALL export_iceberg('t', 'folder')",
    "GRANT|REVOKE|DENY": _RIGHTS,
    "SHOW GRANTS|GRANT": _RIGHTS,
    "LOCK|UNLOCK TABLE": "commits that exclude each other are refused as conflicts; leave it out",
    "CONVERT TO DELTA|ICEBERG": "use CREATE TABLE t (...), then CALL add_files('t', 'folder')",
    "DESCRIBE|DESC [TABLE] [EXTENDED|FORMATTED] <name> PARTITION (": (
        "use SELECT * FROM t.partitions WHERE"
    ),
    f"{_ALTER} SET SERDE|SERDEPROPERTIES|FILEFORMAT": _FILES,
}
PROCEDURES = {
    "cherrypick_snapshot": "use INSERT INTO t SELECT * FROM t VERSION AS OF n",
    "compute_partition_stats": "every write keeps statistics; leave it out",
    "compute_table_stats": _ANALYZE,
    "create_changelog_view": "use table_changes('t', start, end)",
    "publish_changes": "write to a branch, and use MERGE BRANCH b; or BEGIN and COMMIT",
    "register_table": "use CALL add_files('t', 'folder')",
    "rewrite_table_path": "use CALL export_iceberg('t', 'folder')",
    "snapshot": "use CALL add_files('t', 'folder')",
}
# The words of a statement that are looked at.
_MOST = 200
_NAME = r"(?:\w\S*|`) "
_PARTS = {
    "<name>": rf"({_NAME}(?:\. {_NAME})*)",
    # Not into a query, whose words mean something else.
    "…": r"((?:(?!SELECT |FROM |VALUES )\S+ )*?)",
}
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
_MADE = ("EXTERNAL", "MATERIALIZED", "TABLE", "VIEW")
_NOT_EXPLAINED = ("DELETE", "MERGE", "UPDATE")


@dataclass(frozen=True, slots=True)
class ForeignWords:
    """A wish of a statement in its own words, and what to write instead."""

    what: str
    instead: str


# Spark gives CLUSTER BY and clusterBy() to a catalog as a transform.
TRANSFORMS = {
    "CLUSTER_BY": ForeignWords("CLUSTER BY", _SORT),
    "TRUNCATE": ForeignWords("partitioning by truncate()", "use columns or bucket(N, c)"),
    "VOID": ForeignWords("partitioning by void()", "leave it out"),
}


def foreign_statement(tokens: Sequence[Token]) -> ForeignWords | None:
    """Return what another system's statement asks for, None for one that is not known."""
    text = "".join(f"{_word(token)} " for token in tokens[:_MOST])
    for pattern, instead in _STATEMENTS.items():
        found = _compiled(pattern).match(text)
        if found is not None:
            return ForeignWords(_told(found.groups(), pattern), instead)
    return None


def _word(token: Token) -> str:
    if token.kind is TokenKind.WORD or token.kind is TokenKind.SYMBOL:
        return token.key
    return "`" if token.may_name else "'"


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    parts = []
    for part in re.findall(r"\[|\]|[^\[\] ]+", pattern):
        if part in "[]":
            parts.append("(?:" if part == "[" else ")?")
        elif part in _PARTS:
            parts.append(_PARTS[part])
        else:
            parts.append(f"((?:{'|'.join(map(re.escape, part.split('|')))}) )")
    return re.compile("".join(parts))


def _told(found: Sequence[str | None], pattern: str) -> str:
    """Return the words of a pattern as they were found, with dots for what was between them."""
    kinds = re.findall(r"[^\[\] ]+", pattern)
    words: list[str] = []
    for text, kind in zip(found, kinds, strict=True):
        word = "..." if kind in _PARTS else (text or "").strip()
        if text and word not in ("(", "'") and words[-1:] != [word]:
            words.append(word)
    return " ".join(words)


def named_object(tokens: Sequence[Token]) -> tuple[str, ...] | None:
    """Return the parts of the name of the table or view that a statement is about.

    None for a statement that is about none, or that is not known.
    """
    verb = tokens[0].key
    if verb == "EXPLAIN":
        inner = next((n for n, t in enumerate(tokens[:3]) if t.key in _NOT_EXPLAINED), 0)
        return named_object(tokens[inner:]) if inner else None
    keys = [token.key for token in tokens[1:4]]
    following = "".join(keys[2:] if keys[:2] == ["OR", "REPLACE"] else keys[:1])
    if verb not in _VERBS or (verb == "SHOW" and following not in _SHOWN):
        return None
    if verb == "CREATE" and following == "INDEX":
        at = _behind(tokens, "ON")
    elif (verb == "CREATE" and following not in _MADE) or following in ("TEMP", "TEMPORARY"):
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
    if tokens[at].may_name:
        with suppress(InvalidRequest):
            return tuple(map(name_of, dotted_names(tokens, at)))
    return None
