"""What DuckLake lacks, and typos, in CREATE and ALTER: the message says what is wrong."""

from __future__ import annotations

import pytest

from shelduck.doors.sql.parse import parse
from shelduck.errors import InvalidRequest, Unsupported

CREATE, ALTER = "CREATE TABLE x", "ALTER TABLE t"
COLUMN = f"{ALTER} ALTER COLUMN a"

CONSTRAINTS = {
    f"{CREATE} (a INT CHECK (a > 0) NOT ENFORCED)": "CHECK ... NOT ENFORCED",
    f"{CREATE} (a INT, PRIMARY KEY (a) ENFORCED)": "PRIMARY KEY ... ENFORCED",
    f"{CREATE} (a INT, UNIQUE KEY (a))": "UNIQUE KEY among the columns",
    f"{CREATE} (a INT AS (1))": "a computed column",
    f"{CREATE} (a INT IDENTITY)": "IDENTITY alone",
    f"{ALTER} ADD b INT GENERATED ALWAYS AS (1)": "a computed column in a table that is there",
    f"{CREATE} (a STRING COLLATE UNICODE)": "a collation",
    f"{CREATE} (a INT) WITH (a = 1)": "CREATE TABLE ... WITH",
    f"{ALTER} ADD COLUMN b STRING COLLATE UNICODE": "a collation",
    f"{ALTER} ADD PARTITION (a = 1)": "ALTER TABLE ... ADD PARTITION",
    f"{ALTER} PARTITIONED BY (a)": "ALTER TABLE ... PARTITIONED",
    f"{ALTER} SORT BY (a)": "ALTER TABLE ... SORT",
    f"{COLUMN} TYPE BIGINT COLLATE UNICODE": "a collation",
    f"{COLUMN} TYPE BIGINT CHECK (a > 0)": "the constraint CHECK here",
}


@pytest.mark.parametrize(("text", "told"), CONSTRAINTS.items(), ids=CONSTRAINTS)
def test_what_ducklake_lacks_is_named(text, told):
    with pytest.raises(Unsupported) as caught:
        parse(text)
    assert str(caught.value).startswith(f"{told} is not supported: {text!r}; ")


TYPOS = {
    f"{CREATE} (a INT NOT NUL)": "did you mean NULL instead of NUL?",
    f"{CREATE} (a INT DEFALT 1)": "did you mean DEFAULT instead of DEFALT?",
    f"{CREATE} (a INTT)": "unknown data type 'intt' in 'INTT' at line 1, column 19",
    f"{CREATE} (a)": "expected a data type at line 1, column 18, but found ')'",
    f"{CREATE} (a INT b INT)": "expected ) at line 1, column 23, but found 'b'",
    f"{CREATE} (a INT": "expected ) at line 1, column 22, but the statement ends",
    f"{CREATE} (a INT) PARTITION BY (a)": "did you mean PARTITIONED instead of PARTITION?",
    f"{CREATE} (a INT) PARTITIONED (a)": "expected BY at line 1, column 36, but found '('",
    f"{CREATE} (a INT) TBLPROPERTY ('a' = 'b')": "did you mean TBLPROPERTIES instead of",
    "CREATE TABLE IF NOT EXIST x (a INT)": "did you mean EXISTS instead of EXIST?",
    "DROP TABLE IF EXIST x": "did you mean EXISTS instead of EXIST?",
    "CREAT TABLE x (a INT)": "did you mean CREATE instead of CREAT?",
    "CREATE TABL x (a INT)": "did you mean TABLE instead of TABL?",
    "ALTER TABL t ADD COLUMN b INT": "did you mean TABLE instead of TABL?",
    f"{ALTER} ADD COLUM b INT": "did you mean COLUMN instead of COLUM?",
    f"{ALTER} DROP COLUMM a": "did you mean COLUMN instead of COLUMM?",
    f"{ALTER} RENAM COLUMN a TO b": "did you mean RENAME instead of RENAM?",
    f"{ALTER} RENAME COLUM a TO b": "did you mean COLUMN instead of COLUM?",
    f"{ALTER} MODFY COLUMN a BIGINT": "did you mean MODIFY instead of MODFY?",
    f"{ALTER} DROP COLUMN a CASCAD": "expected the end of the statement at line 1, column 29",
    f"{ALTER} PARTITON BY (a)": "did you mean PARTITIONED instead of PARTITON?",
    f"{COLUMN} TYP BIGINT": "did you mean TYPE instead of TYP?",
    f"{COLUMN} TYPE BIGNT": "unknown data type 'bignt' in 'BIGNT' at line 1, column 35",
    f"{COLUMN} SET NOT NUL": "did you mean NULL instead of NUL?",
    f"{COLUMN} SET DEFALT 1": "did you mean DEFAULT instead of DEFALT?",
    f"{COLUMN} SET DATA BIGINT": "expected TYPE at line 1, column 39, but found 'BIGINT'",
    f"{COLUMN} DROP NULL": "expected DEFAULT or NOT NULL at line 1, column 35, but found 'NULL'",
}


@pytest.mark.parametrize(("text", "told"), TYPOS.items(), ids=TYPOS)
def test_a_typo_is_named(text, told):
    with pytest.raises((InvalidRequest, Unsupported)) as caught:
        parse(text)
    assert told in str(caught.value)


def test_a_table_may_be_called_if():
    [dropped] = parse("DROP TABLE if")
    assert dropped.name.parts == ("if",)
