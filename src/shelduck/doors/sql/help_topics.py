"""HELP: the grammar of statements that Doris has too, with examples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from shelduck.errors import NotFound
from shelduck.lake.operation import Operation, Runner
from shelduck.lake.results import PlainRows
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import TokenKind
from shelduck.text.tokens.parts import Statement


@dataclass(frozen=True, slots=True)
class Help(Statement):
    """HELP and the words of a statement."""

    topic: str


class Topic(NamedTuple):
    """A statement: its words, its grammar and examples that run."""

    name: str
    description: str
    example: str


_TOPICS = (
    Topic(
        "ALTER TABLE COLUMN",
        """ALTER TABLE [IF EXISTS] t change [, change ...] [PROPERTIES ("timeout" = "seconds")]

change:
  ADD COLUMN c type [KEY | agg] [NOT NULL] [DEFAULT value] [COMMENT text] [FIRST | AFTER c] [TO r]
  ADD COLUMN (c type ..., ...) [TO r]
  DROP COLUMN c [FROM r] [RESTRICT | CASCADE]
  RENAME COLUMN c [TO] new_name
  MODIFY COLUMN c type [KEY | agg] [NOT NULL] [DEFAULT value] [COMMENT text] [FIRST | AFTER c]
  ALTER COLUMN c TYPE type [USING expression] [ON ERROR NULL]
                           [ON DUPLICATE KEYS {REFUSE | KEEP NEWEST}]
  ALTER COLUMN c SET DEFAULT value | DROP DEFAULT | SET NOT NULL | DROP NOT NULL | COMMENT text
  ORDER BY (c, ...) [FROM r]
  SET PARTITIONED BY (key, ...) | RESET PARTITIONED BY
  SET SORTED BY (key, ...) | RESET SORTED BY
  ADD [CONSTRAINT name] CHECK (condition) [NOT VALID]
  VALIDATE CONSTRAINT name | DROP CONSTRAINT [IF EXISTS] name
  SET TBLPROPERTIES (key = value, ...) | UNSET TBLPROPERTIES (key, ...)

c is a column, or a field as column.field. agg is SUM, MIN, MAX, REPLACE or REPLACE_IF_NOT_NULL.
r is a rollup. Light changes are done at once. Other changes are done by a job: SHOW ALTER TABLE
COLUMN shows it, CANCEL ALTER TABLE COLUMN stops it.""",
        """ALTER TABLE t ADD COLUMN new_col INT DEFAULT "0" AFTER k;
ALTER TABLE t MODIFY COLUMN v BIGINT SUM;
ALTER TABLE t ALTER COLUMN v TYPE STRING USING concat('n', v);
ALTER TABLE t DROP COLUMN v FROM r""",
    ),
    Topic(
        "ALTER TABLE ROLLUP",
        """ALTER TABLE t ADD ROLLUP r (c, ...) [FROM index] [PROPERTIES ("timeout" = "seconds")]
ALTER TABLE t DROP ROLLUP r

A job builds the rollup. SHOW ALTER TABLE ROLLUP shows it, CANCEL ALTER TABLE ROLLUP stops it.""",
        """ALTER TABLE t ADD ROLLUP r (k, v);
ALTER TABLE t DROP ROLLUP r""",
    ),
    Topic("ALTER TABLE RENAME", "ALTER TABLE t RENAME TO new_name", "ALTER TABLE t RENAME TO u"),
    Topic(
        "CREATE VIEW AS SCHEMA VERSION",
        """CREATE [OR REPLACE] VIEW [IF NOT EXISTS] v [COMMENT text] AS SCHEMA VERSION n OF t

The view shows today's rows of t in the columns that t had at snapshot n: renames are undone,
dropped columns show their default, newer columns are left out, and values are cast back. A value
that the older type does not hold fails the query. The view follows later changes of t.""",
        "CREATE VIEW old AS SCHEMA VERSION 3 OF t",
    ),
    Topic(
        "SHOW ALTER TABLE",
        """SHOW ALTER TABLE {COLUMN | ROLLUP} [FROM schema] [WHERE condition] [ORDER BY c] [LIMIT n]

States of a job: PENDING, WAITING_TXN (it waits for writers that began before it), RUNNING,
FINISHED, CANCELLED. Changes without a job are shown as FINISHED, without a JobId; TransactionId is
their snapshot.""",
        "SHOW ALTER TABLE COLUMN WHERE NamedTable = 't' ORDER BY CreateTime DESC LIMIT 1",
    ),
    Topic(
        "CANCEL ALTER TABLE",
        "CANCEL ALTER TABLE {COLUMN | ROLLUP} FROM t [(job, ...)]",
        "CANCEL ALTER TABLE COLUMN FROM t",
    ),
)


def topics(words: str) -> list[Topic]:
    """Return the topics that contain these words; all of them for none.

    Raises NotFound, naming the topics that there are.
    """
    wanted = " ".join(words.upper().split())
    found = [t for t in _TOPICS if wanted in t.name]
    if not found:
        known = ", ".join(t.name for t in _TOPICS)
        raise NotFound(f"HELP has no topic {words!r}; its topics are {known}", about="topic")
    return found


def read_help(cursor: Cursor) -> Help:
    """Read the topic behind ``HELP``: words, or a text of them."""
    if cursor.peek().kind is TokenKind.STRING:
        return Help(cursor.string("a topic"))
    words = []
    while cursor.peek().kind is not TokenKind.END:
        words.append(cursor.take().text)
    return Help(" ".join(words))


def help_(_: Runner, statement: Help) -> PlainRows:
    """HELP, with the columns that MySQL's clients show."""
    rows = [(t.name, t.description, t.example) for t in topics(statement.topic)]
    return PlainRows("name string, description string, example string", rows)


OPERATIONS = (Operation("HELP", Help, help_, read_help),)
