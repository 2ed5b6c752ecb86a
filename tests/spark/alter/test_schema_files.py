"""Schema as code: files of SQL are pulled, changed, planned and applied."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

import shelduck
from shelduck import Conflict, InvalidRequest, Unsupported
from tests.support.lakes import rows


@pytest.fixture
def lake(spark, sqlite_url, data_path):
    with shelduck.connect(sqlite_url, data_path, spark) as found:
        found.execute("CREATE TABLE t (id BIGINT NOT NULL, name STRING DEFAULT 'x', n INT)")
        yield found


def text_of(lake, folder):
    [place] = lake.pull_schema(folder)
    return place.read_text(encoding="utf-8")


def test_light_changes_of_all_tables_are_one_snapshot(lake, tmp_path):
    lake.execute("CREATE TABLE u (k INT)")
    lake.pull_schema(tmp_path)
    (tmp_path / "main.u.sql").write_text("CREATE TABLE u (k INT, v INT);")
    (tmp_path / "s.new.sql").write_text("CREATE TABLE s.new (x INT) PARTITIONED BY (x);")
    changed = (tmp_path / "main.t.sql").read_text().replace("  n INT", "  m INT")
    (tmp_path / "main.t.sql").write_text(changed)
    before = len(lake.snapshots())

    lake.plan(tmp_path).apply()

    assert len(lake.snapshots()) == before + 1
    assert lake.table("u").columns.names == ["k", "v"]
    assert lake.table("t").columns.names == ["id", "name", "m"]
    assert [str(t) for t in lake.tables("s")] == ["s.new"]


def test_only_light_changes_leave_heavy_tables(lake, tmp_path):
    lake.execute("CREATE TABLE u (k INT)")
    lake.pull_schema(tmp_path)
    heavy = (tmp_path / "main.t.sql").read_text().replace("n INT", "n STRING")
    (tmp_path / "main.t.sql").write_text(heavy)
    (tmp_path / "main.u.sql").write_text("CREATE TABLE u (k INT, v INT);")

    assert lake.plan(tmp_path).apply(only_light=True) == []
    assert lake.table("u").columns.names == ["k", "v"]
    assert str(lake.table("t").columns.get(("n",), "t").type) == "int32"


def test_what_would_be_lost_needs_a_word(lake):
    plan = lake.plan({"other": "CREATE TABLE other (x INT)"})
    assert plan.lost == ["main.t"]
    with pytest.raises(InvalidRequest, match=r"this drops main\.t; allow it with --allow-drop"):
        plan.apply()
    assert [str(t) for t in lake.tables()] == ["main.t"]


def test_a_plan_of_an_older_schema_is_refused(lake, tmp_path):
    text = text_of(lake, tmp_path).replace("n INT", "n BIGINT")
    plan = lake.plan({"t": text})
    lake.execute("INSERT INTO t VALUES (1, 'a', 1)")
    newer = lake.plan({"t": text})
    lake.execute("ALTER TABLE t ADD COLUMN w INT")
    for made in (plan, newer):
        with pytest.raises(Conflict, match="the schema of the lake changed since"):
            made.apply()


def test_rows_that_land_meanwhile_do_not_matter(lake, tmp_path):
    plan = lake.plan({"t": text_of(lake, tmp_path).replace("n INT", "n BIGINT")})
    lake.execute("INSERT INTO t VALUES (1, 'a', 1)")
    assert plan.apply() == []
    assert str(lake.table("t").columns.get(("n",), "t").type) == "int64"


def test_without_ids_a_rename_has_to_be_said(lake):
    new = "CREATE TABLE t (id BIGINT NOT NULL, label STRING DEFAULT 'x', n INT)"
    with pytest.raises(InvalidRequest, match="is 'label' a new column, or 'name' with a new name"):
        lake.plan({"t": new})
    told = new.replace("'x',", "'x', -- renamed from: name\n")
    plan = lake.plan({"t": told})
    assert plan.lost == []
    plan.apply()
    assert lake.plan({"t": told}).is_empty
    assert [(f.id, f.name) for f in lake.table("t").columns] == [(1, "id"), (2, "label"), (3, "n")]


NESTED = """CREATE TABLE main.n (
  id INT,  -- id: 1
  s STRUCT<  -- id: 2
    a: INT,  -- id: 3
    deep: ARRAY<STRUCT<
      x: INT,  -- id: 6
      y: STRING  -- id: 7
    >>  -- id: 4
  > COMMENT 'a struct',
  m MAP<STRING, STRUCT<  -- id: 8
    v: DECIMAL(9,2)  -- id: 11
  >>
);
ALTER TABLE main.n ALTER COLUMN s.a SET DEFAULT 7, ALTER COLUMN s.a COMMENT 'first';
"""


@pytest.fixture
def nested(lake):
    lake.drop_table("t")
    for statement in NESTED.split(";\n"):
        if statement.strip():
            lake.execute(statement)
    return lake


def test_struct_fields_have_ids_defaults_and_comments(nested, tmp_path):
    # The id of a field of several lines stands behind its first line.
    text = NESTED.replace("ARRAY<STRUCT<", "ARRAY<STRUCT<  -- id: 4").replace(">>  -- id: 4", ">>")
    assert text_of(nested, tmp_path) == text
    assert nested.plan({"n": NESTED}).is_empty
    assert nested.plan(tmp_path).is_empty


def test_struct_fields_are_renamed_dropped_and_added_by_id(nested, tmp_path):
    rows_before = "SELECT named_struct('a', 5, 'deep', array(named_struct('x', 1, 'y', 'z'))) AS s"
    nested.table("n").append(
        nested.spark.sql(f"{rows_before}, 1 AS id, map('k', named_struct('v', 1.5BD)) AS m")
    )
    text = text_of(nested, tmp_path)
    for old, new in (
        ("a: INT,  -- id: 3", "b: BIGINT,  -- id: 3"),
        ("x: INT,  -- id: 6", "z: INT,  -- id: 6\n      w: DATE,"),
        ("      y: STRING  -- id: 7", "      u: STRING"),
        ("v: DECIMAL(9,2)  -- id: 11", "w: DECIMAL(9,2)  -- id: 11"),
        ("ALTER COLUMN s.a SET DEFAULT 7", "ALTER COLUMN s.b SET DEFAULT 8"),
        ("ALTER COLUMN s.a COMMENT 'first'", "ALTER COLUMN m.value.w COMMENT 'worth'"),
    ):
        assert old in text
        text = text.replace(old, new)

    plan = nested.plan({"n": text})

    assert plan.lost == ["main.n.s.deep.element.y"]
    assert plan.tables[0].text == (
        "ALTER TABLE main.n RENAME COLUMN s.a TO b, DROP COLUMN s.deep.element.y,"
        " RENAME COLUMN s.deep.element.x TO z, ADD COLUMN s.deep.element.w date,"
        " ADD COLUMN s.deep.element.u varchar, RENAME COLUMN m.value.v TO w,"
        " ALTER COLUMN s TYPE struct<b: int64, deep: array<struct<z: int32, w: date, u: varchar>>>,"
        " ALTER COLUMN s.b SET DEFAULT '8', COMMENT ON COLUMN s.b IS NULL,"
        " COMMENT ON COLUMN m.value.w IS 'worth'"
    )
    plan.apply(allow_drop=True)
    assert nested.plan({"n": text}).is_empty
    found = nested.sql("SELECT s.b, s.deep[0].z, s.deep[0].w, m['k'].w FROM n")
    assert rows(found) == [(5, 1, None, Decimal("1.50"))]
    nested.pull_schema(tmp_path)
    assert "b: BIGINT,  -- id: 3" in (tmp_path / "main.n.sql").read_text()
    assert nested.plan(tmp_path).is_empty


def test_comments_and_defaults_of_new_fields_are_those_of_the_file(nested, tmp_path):
    text = text_of(nested, tmp_path).replace(
        "  m MAP", "  n STRUCT<a: INT COMMENT 'of a', b: ARRAY<STRUCT<c: INT>>>,\n  m MAP"
    )
    text += (
        "ALTER TABLE main.n ALTER COLUMN n.a SET DEFAULT 5, ALTER COLUMN n.b.element.c COMMENT 'c'"
    )
    nested.plan({"n": text}).apply()
    assert nested.plan({"n": text}).is_empty
    assert "n.a SET DEFAULT 5, ALTER COLUMN n.a COMMENT 'of a'" in text_of(nested, tmp_path)


def test_elements_keys_and_values_have_comments(lake, tmp_path):
    lake.drop_table("t")
    lake.create_table("c", {"l": "ARRAY<INT>", "m": "MAP<STRING, STRUCT<x: INT>>"})
    paths = ("l.element", "m.key", "m.value", "m.value.x")
    lake.table("c").alter(*(shelduck.set_comment(path, f"of {path}") for path in paths))
    text = text_of(lake, tmp_path)
    assert lake.plan({"c": text}).is_empty
    text = text.replace("of l.element", "other").replace("\n);", ",\n  n ARRAY<INT>\n);")
    text = text.replace("ALTER COLUMN m.key COMMENT 'of m.key', ", "")
    text = f"{text}ALTER TABLE main.c ALTER COLUMN n.element COMMENT 'new';\n"

    plan = lake.plan({"c": text})

    for told in ("n.element IS 'new'", "l.element IS 'other'", "m.key IS NULL"):
        assert f"COMMENT ON COLUMN {told}" in str(plan)
    plan.apply()
    assert lake.plan({"c": text}).is_empty


def test_names_are_exchanged_with_what_belongs_to_them(lake, tmp_path):
    text = text_of(lake, tmp_path)
    text = text.replace("  name STRING DEFAULT 'x'", "  n STRING DEFAULT 'y'")
    text = text.replace("  n INT", "  name BIGINT DEFAULT 3")
    plan = lake.plan({"t": text})
    assert plan.tables[0].text == (
        "ALTER TABLE main.t RENAME COLUMN name TO n, RENAME COLUMN n TO name,"
        " ALTER COLUMN name TYPE int64, ALTER COLUMN n SET DEFAULT 'y',"
        " ALTER COLUMN name SET DEFAULT '3'"
    )
    plan.apply()
    assert lake.plan({"t": text}).is_empty
    assert [(f.id, f.name) for f in lake.table("t").columns] == [(1, "id"), (2, "n"), (3, "name")]


def test_a_struct_that_a_job_converted_is_known_by_its_names(nested, tmp_path):
    text = text_of(nested, tmp_path).replace("  a: INT,", "  a: STRING,")
    text = text.replace(" SET DEFAULT 7", " SET DEFAULT '7'")
    [job] = nested.plan({"n": text}).apply()
    job.wait()
    assert str(nested.plan({"n": text})) == "nothing differs"


def test_views_are_files_too(lake, tmp_path):
    lake.sql("CREATE VIEW v (k, `the name`) COMMENT 'short' AS SELECT id, name FROM t")
    lake.sql("CREATE VIEW a AS SELECT k FROM v WHERE k > 1")
    lake.pull_schema(tmp_path)
    assert (tmp_path / "main.v.sql").read_text() == (
        "CREATE VIEW main.v (k, `the name`) COMMENT 'short' AS SELECT id, name FROM `main`.`t`;\n"
    )
    assert lake.plan(tmp_path).is_empty

    # One view is replaced, one is new and reads one that comes after it, one goes.
    (tmp_path / "main.a.sql").unlink()
    (tmp_path / "main.b.sql").write_text("CREATE VIEW b AS SELECT k FROM w")
    (tmp_path / "main.v.sql").write_text("CREATE VIEW v (k) AS SELECT n FROM t")
    (tmp_path / "main.w.sql").write_text("CREATE VIEW w AS SELECT k FROM v")
    plan = lake.plan(tmp_path)
    assert [(str(t.name), t.action.value) for t in plan.tables] == [
        ("main.a", "drop view"),
        ("main.v", "replace view"),
        ("main.w", "create view"),
        ("main.b", "create view"),
    ]
    assert plan.lost == ["main.a"]
    before = len(lake.snapshots())
    plan.apply(allow_drop=True)
    assert len(lake.snapshots()) == before + 1
    assert lake.plan(tmp_path).is_empty
    lake.sql("INSERT INTO t VALUES (1, 'x', 42)")
    assert rows(lake.sql("SELECT * FROM b")) == [(42,)]


def test_views_are_written_anew_with_the_columns_that_they_read(lake, tmp_path):
    lake.sql("CREATE VIEW reads AS SELECT id, n, name FROM t")
    lake.sql("CREATE VIEW above AS SELECT id, name FROM reads")
    lake.pull_schema(tmp_path)
    table, reads = tmp_path / "main.t.sql", tmp_path / "main.reads.sql"
    columns = "id BIGINT NOT NULL, -- id: 1\n name STRING DEFAULT 'x' -- id: 2\n"
    table.write_text(f"CREATE TABLE main.t ({columns})")
    with pytest.raises(InvalidRequest, match=r"view main\.reads: it reads n"):
        lake.plan(tmp_path).apply(allow_drop=True)
    reads.write_text("CREATE VIEW reads AS SELECT id, name FROM t")
    lake.plan(tmp_path).apply(allow_drop=True)
    assert lake.plan(tmp_path).is_empty
    assert lake.sql("SELECT * FROM above").columns == ["id", "name"]


def test_pinned_views_are_files_too(lake, tmp_path):
    version = lake.snapshots()[-1].id
    lake.pin("t", version, "old")
    lake.pull_schema(tmp_path)
    assert (tmp_path / "main.old.sql").read_text() == (
        f"CREATE VIEW main.old AS SCHEMA VERSION {version} OF main.t;\n"
    )
    lake.execute("ALTER TABLE t RENAME COLUMN n TO m")
    lake.pull_schema(tmp_path)
    assert lake.plan(tmp_path).is_empty
    now = lake.snapshots()[-1].id
    (tmp_path / "main.old.sql").write_text(f"CREATE VIEW old AS SCHEMA VERSION {now} OF t")
    (tmp_path / "main.new.sql").write_text("CREATE VIEW new AS SELECT m FROM t")
    plan = lake.plan(tmp_path)
    assert [t.action.value for t in plan.tables] == ["create view", "replace view"]
    plan.apply()
    assert lake.plan(tmp_path).is_empty
    assert lake.sql("SELECT * FROM old").columns == ["id", "name", "m"]


def test_options_are_in_files(lake, tmp_path):
    lake.execute("CREATE SCHEMA s")
    lake.execute("CREATE TABLE s.`odd.one` (x INT)")
    lake.set_option("target_file_size", "64MB", table="t")
    lake.set_option("rewrite_delete_threshold", 0.5, table="s.`odd.one`")
    lake.set_option("expire_older_than", "7 days")
    lake.set_option("parquet_compression", "zstd", schema="s")
    lake.pull_schema(tmp_path)
    assert (tmp_path / "options.sql").read_text() == (
        "CALL set_option('expire_older_than', '7 days');\n"
        "CALL set_option('parquet_compression', 'zstd', schema => 's');\n"
    )
    assert lake.plan(tmp_path).is_empty
    place = tmp_path / "main.t.sql"
    text = place.read_text()
    assert "CALL set_option('target_file_size', '64000000', table_name => 'main.t');" in text
    place.write_text(text.replace("'64000000'", "'1GB'"))
    plan = lake.plan(tmp_path)
    assert str(plan) == (
        "CALL set_option('target_file_size', '1000000000', table_name => 'main.t')"
    )
    assert plan.apply() == []
    assert lake.plan(tmp_path).is_empty
    assert {(o.name, o.value) for o in lake.options() if o.owner == "main.t"} == {
        ("target_file_size", "1000000000")
    }


WRONG = {
    "no table": ("SELECT 1", "a.sql: the first statement must be CREATE TABLE with columns"),
    "nothing": ("-- nothing", "the first statement must be CREATE TABLE"),
    "a query": ("CREATE TABLE t AS SELECT 1", "must be CREATE TABLE with columns"),
    "no SQL": ("CREATE TABEL t (a INT)", "a.sql: "),
    "an option that is none": ("CALL set_option('no', 1)", "option 'no' does not exist"),
    "a field that is none": (
        "CREATE TABLE t (id BIGINT); ALTER TABLE t ALTER COLUMN id COMMENT 'x'",
        "'id' is not a struct field",
    ),
    "a default of an element that has a comment": (
        """CREATE TABLE t (l ARRAY<INT>);
        ALTER TABLE t ALTER COLUMN l.element SET DEFAULT 5, ALTER COLUMN l.element COMMENT 'x'""",
        "'l.element' is not a struct field",
    ),
    "a change": (
        "CREATE TABLE t (id BIGINT); ALTER TABLE t DROP COLUMN name",
        "a.sql: 'ALTER TABLE t DROP COLUMN name' declares nothing; behind CREATE TABLE are rollups",
    ),
    "rows": (
        "CREATE TABLE t (id BIGINT); INSERT INTO t VALUES (1)",
        "'INSERT INTO t VALUES .* nothing",
    ),
    "a rollup that goes": (
        "CREATE TABLE t (id BIGINT); ALTER TABLE t DROP ROLLUP r",
        "'ALTER TABLE t DROP ROLLUP r' declares nothing",
    ),
    "an id behind nothing": ("CREATE TABLE t (id BIGINT) -- id: 1\n", "'-- id: 1' does not stand"),
    "an unknown id of a field": (
        "CREATE TABLE t (id BIGINT, s STRUCT<a: INT -- id: 9\n>)",
        "field 's.a' has the id 9, but 's' is new in main.t; leave the comment out",
    ),
    "an unknown id": ("CREATE TABLE t (id BIGINT, -- id: 99\n n INT)", "has the id 99, which no"),
    "one id twice": (
        "CREATE TABLE t (id BIGINT, -- id: 1\n n INT -- id: 1\n)",
        "two columns of the file are column 'id'",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_files_are_named(lake, case):
    text, message = WRONG[case]
    with pytest.raises(InvalidRequest, match=message):
        lake.plan({"a.sql": text})


def test_two_files_of_one_table_are_refused(lake):
    text = "CREATE TABLE T (id BIGINT, name STRING, n INT)"
    with pytest.raises(InvalidRequest, match=r"b\.sql: another file declares table main\.T too"):
        lake.plan({"a.sql": text.replace("T ", "t "), "b.sql": text})


def test_models_and_rollups_have_statements_of_their_own(lake, tmp_path):
    lake.execute("CREATE TABLE k (a INT, b INT, v INT SUM) AGGREGATE KEY (a, b) ROLLUP (r (a, v))")
    lake.pull_schema(tmp_path)
    assert lake.plan(tmp_path).is_empty
    text = (tmp_path / "main.k.sql").read_text()
    for old, new in (
        ("AGGREGATE KEY (a, b)", "AGGREGATE KEY (b, a)"),
        ("\nROLLUP (r (a, v))", ""),
        ("\nAGGREGATE KEY (a, b)\nROLLUP (r (a, v))", ""),
    ):
        assert old in text
        changed = text.replace(old, new)
        changed = changed if "KEY" in changed else changed.replace(" SUM", "")
        with pytest.raises(Unsupported, match=r"main\.k"):
            lake.plan({"t": (tmp_path / "main.t.sql").read_text(), "k": changed})


def test_a_plan_is_json(lake, tmp_path):
    plan = lake.plan({"t": text_of(lake, tmp_path).replace("  n INT", "  m INT")})
    assert json.loads(json.dumps(plan.as_json()))["tables"][0]["felt"] == [
        "queries that name n fail; the column keeps its values"
    ]


RULED = (
    "CREATE TABLE r (id BIGINT GENERATED ALWAYS AS IDENTITY, n INT CONSTRAINT pos CHECK (n > 0),"
    " m INT GENERATED ALWAYS AS (n + 1), UNIQUE (m))"
)


def test_files_have_constraints_and_what_computes_columns(lake, tmp_path):
    lake.execute("DROP TABLE t")
    lake.execute(RULED)
    text = text_of(lake, tmp_path)
    assert lake.plan({"r": text}).is_empty
    renamed = (
        text.replace("  n INT,", "  k INT,").replace("n > 0", "k > 0").replace("n + 1", "k + 1")
    )
    changed = renamed.replace("UNIQUE (m) NOT ENFORCED", "CHECK (k < 10)")
    lake.plan({"r": changed}).apply()
    lake.execute("INSERT INTO r (k) VALUES (1)")
    assert rows(lake.sql("SELECT * FROM r")) == [(1, 1, 2)]
    with pytest.raises(InvalidRequest, match=r"unique_1 \(k < 10\) of main.r is not satisfied"):
        lake.execute("INSERT INTO r (k) VALUES (11)")
    with pytest.raises(Unsupported, match="what computes a column cannot change"):
        lake.plan({"r": text_of(lake, tmp_path).replace("`k` + 1", "k + 2")})
