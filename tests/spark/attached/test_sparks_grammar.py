"""What Spark's parser and ours both take means the same: statements drawn from Spark's grammar."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import py4j.java_gateway
import py4j.protocol
import pytest
from py4j.protocol import Py4JJavaError

from shelduck.doors.sql.parse import parse
from shelduck.errors import ShelduckError
from shelduck.text.tokens.parts import Query
from tests.support.lengths import one_by_one
from tests.support.spark_grammar import Drawing, Edge, sparks_grammar
from tests.support.spark_meanings import ours, sparks

pytestmark = pytest.mark.guard

# Words that our parser looks for, and that may be names.
KEYWORDS = """TYPE COMMENT FIRST AFTER COLUMN COLUMNS TO SET DROP ADD PARTITION IF VALUES TABLE
    REPLACE NAME BY VERSION HISTORY EXTENDED ALL KEY DEFAULT ROLLUP FEATURE REWRITE SORTED DATA
    USING MATCHED VIEW ORDER FROM""".split()
NAMES = [*["a", "b", "c"] * len(KEYWORDS), *KEYWORDS]
TABLES = ["t", "s.t", "TYPE", "s.PARTITION", "HISTORY"]
_SAMPLED = [
    ("identifier errorCapturingIdentifier strictIdentifier simpleIdentifier", NAMES),
    ("multipartIdentifier", [*NAMES, "a.b", "b.TYPE", "a.element"]),
    ("identifierReference tableIdentifier", TABLES),
    ("query statement", ["SELECT 1 AS a"]),
    ("dataType", ["INT", "BIGINT", "STRING", "DECIMAL(5, 2)", "STRUCT<x: INT>"]),
    ("expression valueExpression constant integerValue INTEGER_VALUE", ["4"]),
    ("booleanExpression", ["a = 1"]),
    ("stringLit singleStringLit", ["'x'"]),
    ("expressionProperty", ["'k1' = 'v'"]),
    ("propertyKey propertyKeyOrStringLit", ["'k1'", "k2.l"]),
    ("propertyValue", ["'v'", "4"]),
    ("partitionVal", ["a", "b = 2", "c = 'x'"]),
    ("transform", ["a", "bucket(4, a)", "days(b)"]),
    ("columnComment", ["s.t.c IS 'x'", "t.TYPE IS NULL"]),
    ("sortItem namedExpression primaryExpression IDENTIFIER", ["a"]),
    ("tableProvider", ["USING parquet"]),
    ("errorCapturingNot", ["NOT"]),
    ("relation", ["u"]),
    ("fromClause", ["FROM u"]),
    ("fromStatementBody", ["SELECT a"]),
    ("ctes", ["WITH q AS (SELECT 1 AS a)"]),
    ("queryOrganization", ["LIMIT 1"]),
    ("temporalClause", ["VERSION AS OF 3"]),
    ("interval", ["INTERVAL 1 DAY"]),
    ("hint", ["/*+ X */"]),
    ("optionsClause", ["WITH ('k' = 'v')"]),
    ("routineCharacteristics", ["LANGUAGE SQL"]),
    ("identityColSpec", ["(START WITH 1)"]),
    ("codeLiteral", ["$$ x $$"]),
    ("autoCdcCommand", ["AUTO CDC INTO t FROM STREAM u KEYS (a) SEQUENCE BY a"]),
    ("collationSpec", ["DEFAULT COLLATION UNICODE"]),
    ("collateClause", ["COLLATE UNICODE"]),
    ("EQ", ["="]),
    ("BACKQUOTED_IDENTIFIER", ["`a`"]),
    ("DECIMAL_VALUE", ["1.5"]),
]
SAMPLES = {rule: samples for rules, samples in _SAMPLED for rule in rules.split()}
"""What stands for a whole rule or token of the grammar."""
VERBS = "ALTER CREATE DROP COMMENT SHOW DESC USE TRUNCATE".split()
ROW_VERBS = "INSERT MERGE UPDATE DELETE".split()
OTHERWISE = {
    r"DESC\w* HISTORY \w": "Delta's statement: the history of a table, not a column of HISTORY",
    r"DESC\w* \S+ ALL$": "Doris' statement: a table with its rollups, not its column ALL",
    r"ALTER .* DROP COLUMNS? .* , REWRITE$": "our own action, which is refused beside a DROP",
}
"""The statements that mean something else here on purpose, and why."""
COVERED = {
    "ALTER": (15, 28),
    "COMMENT": (2, 4),
    "CREATE": (6, 12),
    "DELETE": (1, 1),
    "DESC": (1, 5),
    "DROP": (5, 6),
    "INSERT": (1, 1),
    "MERGE": (1, 1),
    "SHOW": (7, 13),
    "TRUNCATE": (1, 1),
    "UPDATE": (1, 1),
    "USE": (2, 2),
}
"""Of how many alternatives of Spark's grammar both take a statement, and how many there are."""


def _alternatives(drawing: Drawing) -> list[Edge]:
    """Return the alternatives of Spark's statements that begin with one of our verbs."""
    found = [e for e in drawing.alternatives("statement") if _verb(drawing, e) in VERBS]
    rows = [e for e in drawing.alternatives("dmlStatementNoWith") if _verb(drawing, e) in ROW_VERBS]
    return found + rows


def _verb(drawing: Drawing, edge: Edge) -> str:
    return drawing.shortest(edge).split()[0].replace("DESCRIBE", "DESC")


def _read(text: str) -> Any:
    try:
        [statement] = parse(text)
    except ShelduckError:
        return None
    return statement


def _drawn(drawing: Drawing, edge: Edge, known: set[int]) -> Iterator[str]:
    """Yield statements of one alternative: one for each choice that is not ``known`` yet.

    Only those that we take, whose choices become known. Where a choice alone is too little, such as
    a clause of a table without columns, one that makes a whole statement stands beside it.
    """
    choices = sorted(drawing.choices(edge) - known)
    alone = {choice: drawing.shortest(edge, [choice]) for choice in choices}
    taken = [choice for choice in choices if _read(alone[choice]) is not None]
    known.update(taken)
    yield from [text for text in [drawing.shortest(edge)] if _read(text) is not None]
    yield from (alone[choice] for choice in taken)
    for choice in choices if taken else ():
        if choice not in taken:
            text = drawing.shortest(edge, [taken[0], choice])
            if _read(text) is not None:
                known.add(choice)
                yield text


def _differing(spark: Any, texts: Iterable[str]) -> tuple[int, list[tuple[Any, ...]]]:
    """Return how many of the texts Spark takes too, and those that mean something else to it."""
    parser = spark._jsparkSession.sessionState().sqlParser()
    both, found = 0, []
    for text in dict.fromkeys(texts):
        try:
            plan = parser.parsePlan(text)
        except Py4JJavaError:
            continue
        both += 1
        statement = _read(text)
        # Spark runs a query as it stands, and so WITH and a statement.
        if isinstance(statement, Query) or any(re.match(known, text) for known in OTHERWISE):
            continue
        meanings = sparks(plan), ours(statement)
        if meanings[0] != meanings[1]:
            found.append((text, *meanings))
    return both, found


@pytest.fixture
def plain_errors(monkeypatch):
    """Refusals of Spark's parser come without their texts, which take several calls each."""
    monkeypatch.setattr(py4j.java_gateway, "get_return_value", py4j.protocol.get_return_value)


@pytest.mark.usefixtures("plain_errors")
def test_every_choice_of_sparks_grammar_that_we_take_means_the_same(spark):
    drawing = Drawing(sparks_grammar(spark), SAMPLES, seed=1)
    known: set[int] = set()
    alternatives, taken = Counter[str](), Counter[str]()
    for edge in _alternatives(drawing):
        both, differing = _differing(spark, _drawn(drawing, edge, known))
        assert differing == []
        alternatives[_verb(drawing, edge)] += 1
        taken[_verb(drawing, edge)] += both > 0

    assert {verb: (taken[verb], count) for verb, count in alternatives.items()} == COVERED


@pytest.mark.slow
@pytest.mark.usefixtures("plain_errors")
@pytest.mark.parametrize("seed", one_by_one(range(2, 8)))
def test_statements_drawn_by_chance_from_sparks_grammar_mean_the_same(spark, seed):
    drawing = Drawing(sparks_grammar(spark), SAMPLES, seed)
    texts: list[str] = []
    for edge in _alternatives(drawing):
        texts += _drawn(drawing, edge, set())
        texts += [drawing.any(edge) for _ in range(60)]

    both, differing = _differing(spark, (t for t in texts if _read(t) is not None))

    assert differing == []
    assert both > 400
