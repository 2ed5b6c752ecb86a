"""Statements, procedures and properties that only other systems have: what to write instead."""

from __future__ import annotations

import re

import pytest

from shelduck.doors.sql.calls.procedures import PROCEDURES
from shelduck.doors.sql.parse import parse
from shelduck.errors import NotFound, Unsupported
from shelduck.model.tables import properties
from shelduck.model.tables.properties import (
    SetProperties,
    UnsetProperties,
    apply_properties,
    checked_properties,
)
from shelduck.model.tables.schema import Schema
from shelduck.text import foreign_words
from shelduck.text.ddl.partitioning import partition_keys

PATTERNS = foreign_words._STATEMENTS
ADVICE = [*PATTERNS.values(), *foreign_words.PROCEDURES.values()]
ADVICE += properties._FOREIGN.values()

TOLD = {
    "UNDROP SCHEMA s": "UNDROP is not supported",
    "FSCK REPAIR TABLE t": "use CALL check('t')",
    "CREATE TABLE c (a INT) CLUSTER BY AUTO": "CREATE TABLE ... CLUSTER BY AUTO is not supported",
    "ALTER TABLE t ALTER COLUMN a.b SET TAGS ('x' = 'y')": "ALTER COLUMN ... SET TAGS is not",
    "OPTIMIZE t WHERE a = 1 ZORDER BY (b)": "OPTIMIZE ... ZORDER BY is not supported",
    "CREATE FUNCTION main.f(x INT) RETURNS INT LANGUAGE PYTHON AS $$ 1 $$": "register a function",
    "CREATE FUNCTION f AS 'com.example.F'": "register a function of Spark",
    "ALTER TABLE t DROP IDENTIFIER FIELDS id": "DROP CONSTRAINT identifier_fields",
    "ALTER TABLE t ADD IF NOT EXISTS PARTITION (day = '2026-01-05')": "partitions come with",
    "ALTER TABLE t PARTITION (a = 1) CONCATENATE": "use OPTIMIZE t",
    "CREATE EXTERNAL TABLE t (a INT) STORED AS PARQUET": "CALL add_files('t', 'folder')",
}


@pytest.mark.parametrize(("text", "told"), TOLD.items(), ids=TOLD)
def test_a_statement_of_another_system_is_refused_with_what_to_write(text, told):
    with pytest.raises(Unsupported) as refused:
        parse(text)

    assert told in str(refused.value)
    assert "did you mean" not in str(refused.value)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_pattern_is_known_by_its_own_words(pattern):
    example = re.sub(r"\[[^]]*\] ?", "", pattern).replace("<name>", "s.t").replace("…", "(a INT)")
    text = re.sub(r"(\S+?)\|\S+", r"\1", example).replace("'", "'x'").replace(" (", " (a = 1)", 1)

    with pytest.raises(Unsupported) as refused:
        parse(text)

    assert str(refused.value).endswith(f"; {PATTERNS[pattern]}")


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE c AS SELECT * FROM t CLUSTER BY id",
        "CREATE TABLE clone (shallow INT, branch INT, tag INT)",
        "ALTER TABLE t ADD COLUMN partition INT",
        "ALTER TABLE t RENAME COLUMN write TO owner",
        "INSERT INTO t SELECT replace, using FROM u",
        "OPTIMIZE full",
        "VACUUM lite",
    ],
)
def test_the_same_words_are_names_elsewhere(text):
    assert len(parse(text)) == 1


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("delta.appendOnly", "main.t cannot have the property 'delta.appendOnly' of Delta"),
        ("delta.logRetentionDuration", "use CALL set_option('expire_older_than', '30 days')"),
        ("delta.universalFormat.enabledFormats", "use CALL export_iceberg"),
    ],
)
def test_a_property_of_delta_is_refused_with_what_to_do(key, told):
    for change in (SetProperties(((key, "true"),)), UnsetProperties((key,))):
        with pytest.raises(Unsupported) as refused:
            apply_properties({"delta.enableTypeWidening": "true"}, change, Schema(()), "main.t")
        assert told in str(refused.value)
        assert "did you mean" not in str(refused.value)


def test_a_property_that_is_nearly_a_known_one_is_a_typo():
    with pytest.raises(NotFound, match=r"did you mean 'delta\.enableTypeWidening'"):
        checked_properties({"delta.enableTypeWidning": "true"}, "main.t")


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("cluster_by(id)", "CLUSTER BY is not supported: '(cluster_by(id))'; use SORTED BY (...)"),
        ("truncate(2, name)", "partitioning by truncate() is not supported"),
    ],
)
def test_a_transform_that_spark_passes_on_is_told_in_its_own_words(key, told):
    with pytest.raises(Unsupported) as refused:
        partition_keys([key])

    assert str(refused.value).startswith(told)


def test_what_is_advised_exists():
    called = {name for text in ADVICE for name in re.findall(r"CALL (\w+)\(", text)}

    assert called
    assert called <= set(PROCEDURES)
    assert not set(foreign_words.PROCEDURES) & set(PROCEDURES)
