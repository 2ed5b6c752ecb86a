"""Stored text computes with rows and does nothing else, however it is spelled."""

from __future__ import annotations

import pytest

from shelduck.errors import Unsupported
from shelduck.text.query.harmless import refuse_harmful

HARMLESS = [
    "SELECT upper(name) AS n, count(*) FROM t WHERE id IN (1, 2) GROUP BY (name) HAVING (1 = 1)",
    "SELECT a, sum(b) OVER (PARTITION BY a ORDER BY b) FROM t QUALIFY (row_number() OVER (w) = 1)",
    "WITH x (a, b) AS (SELECT 1, 2), y AS (SELECT 2) SELECT x.a FROM x JOIN y USING (a)",
    "SELECT CAST(a AS decimal(10, 2)), CAST(b AS varchar(5)), try_cast(c AS INT) FROM t",
    "SELECT transform(a, x -> x + 1), filter(a, x -> (x > 1)), `upper`('x') FROM t",
    "SELECT EXTRACT(day FROM d), TRIM(BOTH ' ' FROM s), input_file_name() FROM t",
    "SELECT k, v FROM t LATERAL VIEW explode(m) AS k, v",
    "SELECT * FROM VALUES (1, 'a') AS t(a, b)",
    "SELECT explode(m) AS (k, v) FROM t",
    "SELECT CASE WHEN (a) THEN (1) ELSE (2) END, NOT (a), a AND (b) OR (c) FROM t",
    "SELECT a FROM t TABLESAMPLE (5 ROWS)",
    "SELECT * FROM t PIVOT (sum(x) FOR y IN ('a', 'b'))",
    "SELECT a FROM t GROUP BY GROUPING SETS ((a), ())",
    "SELECT 'reflect(1)', csv.a FROM t -- java_method()",
]


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_text_is_let_through(text):
    refuse_harmful(text, "")


HARMFUL = {
    "SELECT reflect('java.lang.Runtime', 'x')": "calls reflect",
    "SELECT java_method('java.lang.System', 'getenv', 'X')": "calls java_method",
    "SELECT try_reflect('java.lang.System', 'getenv', 'X')": "calls try_reflect",
    "SELECT REFLECT/* */('a', 'b')": "calls REFLECT",
    "SELECT `reflect`('a', 'b')": "calls `reflect`",
    "SELECT `Java_Method` ('a', 'b')": "calls `Java_Method`",
    'SELECT "reflect"(1)': 'calls "reflect"',
    "SELECT system.builtin.reflect('a', 'b')": "calls reflect",
    "SELECT a.upper('a')": "calls upper",
    "SELECT my_function(a) FROM t": "calls my_function",
    "SELECT reflect('a', 'b') AS (x, y)": "calls reflect",
    "SELECT IDENTIFIER('reflect')('a', 'b')": "calls IDENTIFIER",
    "SELECT * FROM IDENTIFIER('other.t')": "calls IDENTIFIER",
    "SELECT * FROM read_files('/etc')": "calls read_files",
    "SELECT * FROM python_worker_logs()": "calls python_worker_logs",
    "SELECT from_protobuf(a, 'M', '/etc/passwd') FROM t": "calls from_protobuf",
    "SELECT from_xml(a, 's', map('rowValidationXSDPath', '/x')) FROM t": "calls from_xml",
    "SELECT xpath(a, 'b') FROM t": "calls xpath",
    "SELECT TRANSFORM(a) USING 'rm -rf' FROM t": "runs a script",
    'FROM t MAP a USING "sh"': "runs a script",
    "SELECT * FROM parquet.`/etc/x`": "reads the file",
    "SELECT * FROM `CSV` . `s3://b/x`": "reads the file",
    "SELECT '${env:HOME}'": "in whose place Spark puts",
    "SELECT 1 -- ${spark.x}": "in whose place Spark puts",
    "SELECT a FROM t WHERE EXISTS (SELECT reflect('a'))": "calls reflect",
    "SELECT transform(a, x -> reflect(x, 'y')) FROM t": "calls reflect",
}  # fmt: skip


@pytest.mark.parametrize(("text", "told"), HARMFUL.items())
def test_other_text_is_refused_with_what_it_does(text, told):
    with pytest.raises(Unsupported) as caught:
        refuse_harmful(text, "write it yourself")
    assert told in str(caught.value)
    assert str(caught.value).endswith("which stored text must not do; write it yourself")


def test_a_macro_of_the_lake_may_be_called_and_nothing_of_its_name():
    def is_macro(parts: tuple[str, ...]) -> bool:
        return parts in (("m",), ("main", "m"))

    refuse_harmful("m(1) + main.m(2)", "", is_macro)
    with pytest.raises(Unsupported, match=r"calls m\(\)"):
        refuse_harmful("other.m(1)", "", is_macro)
