"""Delta Lake's protocol of type widening, and what its log says of rules, claim by claim."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from shelduck import InvalidRequest, NotFound, ShelduckError, Unsupported
from tests.coverage.pages import Page
from tests.support.delta import DeltaReaders, HandMade, column, metadata, protocol

PAGE = Page("delta", "Delta Lake: type widening and rules")
TYPES, FEATURE, HISTORY = "Type changes", "Property and feature", "The history of types"
WRITERS, READERS = "Writers", "Readers"
RULES = "Rules"
ENABLE = "ALTER TABLE t SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"


@pytest.fixture
def t(case):
    """Tables are made in it with the property enabled."""

    def make(columns, *values):
        case.lake.sql(
            f"CREATE TABLE t ({columns}) TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
        )
        case.lake.sql(f"INSERT INTO t SELECT {', '.join(values)}")
        return case

    return make


def exported(case, tmp_path):
    """Fields of the schema, and the protocol, of an export."""
    out = tmp_path / "out"
    case.lake.table("t").export_delta(out)
    actions = [
        json.loads(line)
        for log in sorted((out / "_delta_log").glob("*.json"))
        for line in log.read_text().splitlines()
    ]
    schema = [a["metaData"]["schemaString"] for a in actions if "metaData" in a][-1]
    told = [a["protocol"] for a in actions if "protocol" in a][-1]
    return {f["name"]: f for f in json.loads(schema)["fields"]}, told, out


def changes(fields, name):
    found = fields[name]["metadata"].get("delta.typeChanges", [])
    return [(c["fromType"], c["toType"], c.get("fieldPath")) for c in found]


PAIRS = [
    ("TINYINT", "SMALLINT", "7"),
    ("TINYINT", "INT", "7"),
    ("TINYINT", "BIGINT", "7"),
    ("SMALLINT", "INT", "7"),
    ("SMALLINT", "BIGINT", "7"),
    ("INT", "BIGINT", "7"),
]
FLOATS = [
    ("FLOAT", "DOUBLE", "0.5"),
    ("TINYINT", "DOUBLE", "7"),
    ("SMALLINT", "DOUBLE", "7"),
    ("INT", "DOUBLE", "7"),
]
DECIMALS = [
    ("DECIMAL(6,2)", "DECIMAL(10,4)", "1.25"),
    ("DECIMAL(6,2)", "DECIMAL(8,2)", "1.25"),
    ("TINYINT", "DECIMAL(10,0)", "7"),
    ("SMALLINT", "DECIMAL(12,2)", "7"),
    ("INT", "DECIMAL(11,1)", "7"),
    ("BIGINT", "DECIMAL(20,0)", "7"),
    ("BIGINT", "DECIMAL(22,2)", "7"),
]


def widened(t, old, new, value):
    case = t(f"v {old}", f"CAST({value} AS {old})")
    case.light(f"ALTER TABLE t ALTER v TYPE {new}")
    [(found,)] = case.both("SELECT v FROM t")
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("old", "new", "value"), PAIRS)
@PAGE.row(*("T1", TYPES, "Byte, Short, Int and Long"), statement="Byte → Short → Int → Long")
def test_t1_integers(t, old, new, value):
    assert widened(t, old, new, value) == 7


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("old", "new", "value"), FLOATS)
@PAGE.row(*("T2", TYPES, "Float, Byte, Short and Int to Double"))
def test_t2_floats(t, old, new, value):
    assert widened(t, old, new, value) == float(value)


@PAGE.row(*("T3", TYPES, "Date to timestamp without time zone"))
def test_t3_dates(t):
    found = widened(t, "DATE", "TIMESTAMP_NTZ", "DATE'2024-02-29'")
    assert str(found) == "2024-02-29 00:00:00"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("old", "new", "value"), DECIMALS)
@PAGE.row(
    *("T4", TYPES, "Decimals with more digits on both sides; integers to decimals that hold them")
)
def test_t4_decimals(t, old, new, value):
    assert str(widened(t, old, new, value)).startswith(value)


@PAGE.row(
    *("T5", TYPES, "No other change is supported"),
    beyond="other changes are jobs that convert the values",
)
def test_t5_others_are_jobs(t):
    case = t("v INT", "7")
    case.lake.sql("ALTER TABLE t ALTER v TYPE STRING")
    assert case.both("SELECT v FROM t") == [("7",)]


@PAGE.row(
    *("T6", FEATURE, "Reader version 3, writer version 7, and the feature typeWidening"),
    does="in an export, as readers of Delta see it",
)
def test_t6_the_protocol_of_an_export(t, tmp_path):
    case = t("v INT", "7")
    case.light("ALTER TABLE t ALTER v TYPE BIGINT")
    _, told, out = exported(case, tmp_path)
    assert (told["minReaderVersion"], told["minWriterVersion"]) == (3, 7)
    assert "typeWidening" in told["readerFeatures"]
    assert "typeWidening" in told["writerFeatures"]
    with DeltaReaders() as readers:
        assert readers.by_duckdb(out) == [(7,)]


@PAGE.row(
    *("T7", FEATURE, "The feature is there from the creation on, or added later"), statement=ENABLE
)
def test_t7_the_property_comes_later(case):
    case.lake.sql("CREATE TABLE t (v DATE)")
    case.light(ENABLE)
    case.light("ALTER TABLE t ALTER v TYPE TIMESTAMP_NTZ")


@PAGE.row(
    *("T8", FEATURE, "Without delta.enableTypeWidening writers reject widening"),
    differs="DuckLake's own promotions need no property, but `'false'` forbids them too; the"
    " others are refused",
)
def test_t8_without_the_property(case):
    case.lake.sql("CREATE TABLE t (a INT, d DATE)")
    case.light("ALTER TABLE t ALTER a TYPE BIGINT")
    told = case.refused(Unsupported, "ALTER TABLE t ALTER d TYPE TIMESTAMP_NTZ")
    assert "type widening is not enabled; enable it with ALTER TABLE main.t SET TBL" in told
    case.lake.sql("CREATE TABLE off (a INT) TBLPROPERTIES ('delta.enableTypeWidening' = 'false')")
    case.refused(Unsupported, "ALTER TABLE off ALTER a TYPE BIGINT")


@PAGE.row(
    *("T9", FEATURE, "The feature is dropped after files were rewritten"),
    statement="ALTER TABLE t DROP FEATURE 'typeWidening'",
)
def test_t9_the_feature_is_dropped(t):
    case = t("v INT", "7")
    case.light("ALTER TABLE t ALTER v TYPE BIGINT")
    case.lake.sql("ALTER TABLE t DROP FEATURE 'typeWidening'")
    assert case.lake.table("t").type_changes() == {}
    assert case.both("SELECT v FROM t") == [(7,)]


@PAGE.row(
    *("T10", FEATURE, "Dropping a feature may truncate the history"),
    statement="ALTER TABLE t DROP FEATURE 'typeWidening' TRUNCATE HISTORY",
    differs="refused: snapshots belong to all tables of a lake; `CALL expire_snapshots(…)` removes"
    " them",
)
def test_t10_the_history_is_not_truncated(t):
    case = t("v INT", "7")
    told = case.refused(Unsupported, "ALTER TABLE t DROP FEATURE 'typeWidening' TRUNCATE HISTORY")
    assert "CALL expire_snapshots" in told


@PAGE.row(
    *("T11", HISTORY, "delta.typeChanges has fromType and toType of each step, in order"),
    statement='[{"fromType": "short", "toType": "integer"}, {"fromType": "integer", "toType":'
    ' "long"}]',
)
def test_t11_the_history_of_two_steps(t, tmp_path):
    case = t("e SMALLINT", "CAST(7 AS SMALLINT)")
    case.light("ALTER TABLE t ALTER e TYPE INT")
    case.light("ALTER TABLE t ALTER e TYPE BIGINT")
    steps = [("short", "integer", None), ("integer", "long", None)]
    fields, _, _ = exported(case, tmp_path)
    assert changes(fields, "e") == steps
    told = case.lake.table("t").type_changes()
    assert told == {"e": [{"fromType": a, "toType": b} for a, b, _ in steps]}


@PAGE.row(
    *("T12", HISTORY, "fieldPath is key, value or element for parts of maps and lists"),
    statement='{"fromType": "float", "toType": "double", "fieldPath": "key"}',
)
def test_t12_a_key_of_a_map(t, tmp_path):
    case = t("e MAP<FLOAT, INT>", "map(CAST(0.5 AS FLOAT), 1)")
    case.light("ALTER TABLE t ALTER e.key TYPE DOUBLE")
    fields, _, _ = exported(case, tmp_path)
    assert changes(fields, "e") == [("float", "double", "key")]


@PAGE.row(
    *("T13", HISTORY, "fieldPath of nested parts is dotted"),
    statement='{"fromType": "decimal(6, 2)", "toType": "decimal(10, 4)", "fieldPath":'
    ' "element.value"}',
    does="the document's example says element.key for a value of the map",
)
def test_t13_a_value_of_a_map_in_a_list(t, tmp_path):
    case = t("e ARRAY<MAP<STRING, DECIMAL(6,2)>>", "array(map('a', CAST(1.25 AS DECIMAL(6,2))))")
    case.light("ALTER TABLE t ALTER e.element.value TYPE DECIMAL(10,4)")
    fields, _, _ = exported(case, tmp_path)
    [(old, new, path)] = changes(fields, "e")
    assert (old.replace(" ", ""), new.replace(" ", "")) == ("decimal(6,2)", "decimal(10,4)")
    assert path == "element.value"


@PAGE.row(*("T14", HISTORY, "The history is in the nearest struct field above the change"))
def test_t14_a_field_of_a_struct(t, tmp_path):
    case = t("s STRUCT<a: INT>", "named_struct('a', 7)")
    case.light("ALTER TABLE t ALTER s.a TYPE BIGINT")
    fields, _, _ = exported(case, tmp_path)
    assert changes(fields, "s") == []
    [inside] = fields["s"]["type"]["fields"]
    assert inside["metadata"]["delta.typeChanges"] == [{"fromType": "integer", "toType": "long"}]


@PAGE.row(*("T15", WRITERS, "Writers reject unsupported type changes"))
def test_t15_unsupported_changes(t):
    case = t("v INT", "7")
    case.refused(Unsupported, "ALTER TABLE t ALTER v TYPE ARRAY<INT>")


@PAGE.row(*("T16", WRITERS, "Writers preserve the history when the schema changes"))
def test_t16_a_rename_keeps_the_history(t, tmp_path):
    case = t("v INT", "7")
    case.light("ALTER TABLE t ALTER v TYPE BIGINT")
    case.light("ALTER TABLE t RENAME COLUMN v TO w, ADD COLUMN n INT")
    fields, _, _ = exported(case, tmp_path)
    assert changes(fields, "w") == [("integer", "long", None)]


@PAGE.row(
    *("T17", WRITERS, "The history may be removed when all files have the newest types"),
    statement="table.drop_feature('typeWidening')",
)
def test_t17_the_history_ends_after_a_rewrite(t, tmp_path):
    case = t("v INT", "7")
    case.light("ALTER TABLE t ALTER v TYPE BIGINT")
    case.lake.table("t").drop_feature("typeWidening")
    fields, told, _ = exported(case, tmp_path)
    assert changes(fields, "v") == []
    assert "typeWidening" not in told.get("readerFeatures", [])


@PAGE.row(*("T18", READERS, "Readers convert values of older files to the wider type"))
def test_t18_older_files_are_converted(t):
    case = t("v INT", "7")
    case.light("ALTER TABLE t ALTER v TYPE BIGINT")
    case.lake.sql("INSERT INTO t VALUES (3000000000)")
    assert case.both("SELECT v FROM t ORDER BY v") == [(7,), (3_000_000_000,)]


def hand_made(tmp_path, change, wide):
    """A Delta table with one file of an INT and a history of one step."""
    made = HandMade(tmp_path / "delta")
    file = made.write_file("a.parquet", pa.table({"v": pa.array([7], pa.int32())}))
    field = column("v", wide) | {"metadata": {"delta.typeChanges": [change]}}
    made.commit(protocol("typeWidening"), metadata([field]), made.add(file))
    return made.path


@pytest.mark.parametrize(
    "change",
    [
        {"fromType": "string", "toType": "long"},
        {"fromType": "double", "toType": "long"},
        {"fromType": "foo", "toType": "long"},
        {"fromType": "integer", "toType": "long", "fieldPath": "nope"},
    ],
    ids=str,
)
@PAGE.row(*("T19", READERS, "Readers fail on an unsupported change in delta.typeChanges"))
def test_t19_unknown_changes_are_refused(case, tmp_path, change):
    with pytest.raises(ShelduckError, match=r"delta\.typeChanges"):
        case.lake.import_delta(hand_made(tmp_path, change, "long"), "u")
    with pytest.raises(NotFound):
        case.lake.table("u").read()


@PAGE.row(*("T20", READERS, "A supported history is read, as are the files before it"))
def test_t20_a_history_is_read(case, tmp_path):
    change = {"fromType": "integer", "toType": "long"}
    case.lake.import_delta(hand_made(tmp_path, change, "long"), "u")
    assert case.both("SELECT v FROM u") == [(7,)]
    assert str(case.lake.table("u").columns.find(("v",)).type) == "int64"


@pytest.fixture
def log(case, tmp_path):
    """A Delta table with a file of `a`, `b` and `c`; a version is what it says of columns."""
    made = HandMade(tmp_path / "delta")
    rows = pa.table({"a": [1], "b": pa.array([2], pa.int64()), "c": ["x"]})
    file = made.write_file("a.parquet", rows)

    def commit(b=None, c=None, comment=None, **checks):
        fields = [column("a", "long", nullable=False), column("b", "long"), column("c", "string")]
        fields[1]["metadata"], fields[2]["metadata"] = b or {}, c or {}
        settings = {f"delta.constraints.{name}": text for name, text in checks.items()}
        told = metadata(fields, configuration=settings, description=comment)
        first = not any(made.log.iterdir())
        made.commit(*([protocol(), made.add(file)] if first else []), told)
        return case.lake.import_delta(made.path, "t").notes

    return commit


def refused(case, statement, told):
    with pytest.raises(InvalidRequest, match=told):
        case.lake.sql(statement)


def of_export(case, tmp_path):
    """The metadata of columns, the settings, and the features of writers of an export."""
    fields, told, out = exported(case, tmp_path)
    [written] = (out / "_delta_log").glob("*.json")
    actions = [json.loads(line) for line in written.read_text().splitlines()]
    [settings] = [a["metaData"]["configuration"] for a in actions if "metaData" in a]
    return {n: f["metadata"] for n, f in fields.items()}, settings, told["writerFeatures"]


@PAGE.row(
    *("T21", RULES, "NULL breaks a CHECK"),
    does="`(…) IS TRUE` here; ours goes out as `(…) IS NOT FALSE`",
)
def test_t21_conditions(case, log, tmp_path):
    assert log(pos="b > 0") == ()
    for wrong in ("0", "NULL"):
        refused(case, f"INSERT INTO t VALUES (2, {wrong}, 'y')", r"pos .* not satisfied")
    case.lake.sql("ALTER TABLE t ADD CONSTRAINT own CHECK (a < 9)")
    _, settings, features = of_export(case, tmp_path)
    assert settings["delta.constraints.pos"] == "b > 0"
    assert settings["delta.constraints.own"] == "(a < 9) IS NOT FALSE"
    assert "checkConstraints" in features


@PAGE.row(*("T22", RULES, "Generated columns"))
def test_t22_generated(case, log, tmp_path):
    assert log({"delta.generationExpression": "a * 2"}) == ()
    case.lake.sql("INSERT INTO t (a) VALUES (2)")
    refused(case, "INSERT INTO t (a, b) VALUES (2, 5)", r"b of main.t .* cannot be 5")
    assert case.both("SELECT a, b FROM t ORDER BY a") == [(1, 2), (2, 4)]
    columns, _, features = of_export(case, tmp_path)
    assert columns["b"]["delta.generationExpression"] == "CAST(a * 2 AS BIGINT)"
    assert "generatedColumns" in features


@PAGE.row(*("T23", RULES, "Identities go on behind highWaterMark"))
def test_t23_identity(case, log, tmp_path):
    told = {"start": 2, "step": 3, "allowExplicitInsert": False, "highWaterMark": 50}
    told = {f"delta.identity.{key}": value for key, value in told.items()}
    assert log(told) == ()
    case.lake.sql("INSERT INTO t (a) VALUES (2)")
    refused(case, "INSERT INTO t (a, b) VALUES (2, 5)", "ALWAYS")
    assert case.both("SELECT a, b FROM t ORDER BY a") == [(1, 2), (2, 53)]
    columns, _, features = of_export(case, tmp_path)
    assert told.items() - columns["b"].items() == {("delta.identity.highWaterMark", 50)}
    assert columns["b"]["delta.identity.highWaterMark"] == 53
    assert "identityColumns" in features


@PAGE.row(*("T24", RULES, "Defaults, comments, NOT NULL"))
def test_t24_defaults(case, log, tmp_path):
    said = {"CURRENT_DEFAULT": "'y'", "comment": "a word"}
    assert log(c=said, comment="of a table") == ()
    case.lake.sql("INSERT INTO t (a) VALUES (2)")
    assert case.both("SELECT a, c FROM t ORDER BY a") == [(1, "x"), (2, "y")]
    refused(case, "INSERT INTO t (b) VALUES (2)", "NOT NULL")
    columns, _, features = of_export(case, tmp_path)
    assert said.items() <= columns["c"].items()
    assert {"allowColumnDefaults", "invariants"} <= set(features)


@PAGE.row(*("T25", RULES, "Later versions change rules"))
def test_t25_later_versions(case, log):
    log(pos="b > 0", both="a < b")
    case.lake.sql("ALTER TABLE t ADD CONSTRAINT own CHECK (a < 9)")
    assert log(c={"CURRENT_DEFAULT": "'z'"}, both="a < b", few="b < 9") == ()
    [told] = case.lake.sql("SHOW CREATE TABLE t").collect()
    assert [told[0].count(name) for name in ("pos", "both", "few", "own", "'z'")] == [0, 1, 1, 1, 1]
    for wrong in ("(5, 4)", "(1, 9)", "(9, 10)"):
        refused(case, f"INSERT INTO t (a, b) VALUES {wrong}", "not satisfied")


@PAGE.row(*("T26", RULES, "What is lost is named"))
def test_t26_what_is_lost(case, log):
    [one, two] = log({"delta.generationExpression": "rand()"}, bad="(SELECT 1) = b")
    assert one.startswith("column 'b': Delta generates it as rand(), and it is plain here: ")
    assert two.startswith("CHECK constraint 'bad' ((SELECT 1) = b) is not enforced: ")
    case.lake.sql("ALTER TABLE t ADD CONSTRAINT late CHECK (b < 2) NOT VALID")
    assert "late CHECK (b < 2): not shown: older" in str(case.lake.table("t").plan_export("delta"))
