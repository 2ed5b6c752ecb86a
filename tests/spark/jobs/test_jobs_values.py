"""Jobs and the values that they convert: kept exactly, or told by column, value and file."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shelduck import InvalidRequest, JobState, Unsupported, change_type
from shelduck.jobs import convert, dictionary_proof
from tests.support.jobs import jobs_of
from tests.support.lakes import rows
from tests.support.oracle import DuckDBOracle

UUID = "f79c3e09-677c-4bbd-a479-3f349cb785e7"
STATEMENTS = [
    "CREATE TABLE texts (id INT, v STRING, s STRUCT<a: STRING>, l ARRAY<STRING>)",
    """INSERT INTO texts VALUES (1, ' 12 ', named_struct('a', ' a '), array(' ', '')),
    (2, '', named_struct('a', ''), array()), (3, NULL, NULL, NULL)""",
    "CREATE TABLE bytes (id INT, b BINARY, n INT)",
    "INSERT INTO bytes VALUES (1, X'31', 20240229), (2, X'FFFE', 202402290), (3, X'32', NULL)",
]


def test_bytes_keep_the_blanks_of_texts(lake):
    job = lake.table("texts").alter(
        change_type("v", "binary"), change_type("s.a", "binary"), change_type("l.element", "binary")
    )
    job.wait()

    assert rows(lake.sql("SELECT * FROM texts ORDER BY id")) == [
        (1, b" 12 ", (b" a ",), [b" ", b""]),
        (2, b"", (b"",), []),
        (3, None, None, None),
    ]


def test_defaults_become_what_values_become(lake):
    lake.sql("CREATE TABLE d (id INT, v STRING DEFAULT ' \\\\x41 ', w BINARY)")
    lake.sql("INSERT INTO d (id) VALUES (1)")
    lake.table("d").alter(change_type("v", "binary")).wait()
    lake.sql("INSERT INTO d (id) VALUES (2)")

    assert rows(lake.sql("SELECT id, v FROM d ORDER BY id")) == [(1, b" \\x41 "), (2, b" \\x41 ")]


def test_a_struct_keeps_defaults_and_comments_of_its_fields(lake):
    lake.sql("CREATE TABLE f (id INT, s STRUCT<a: INT, b: INT>)")
    lake.sql("ALTER TABLE f ALTER COLUMN s.a SET DEFAULT 7, ALTER COLUMN s.b SET DEFAULT 8")
    lake.sql("ALTER TABLE f ALTER COLUMN s.a COMMENT 'first', ALTER COLUMN s.b COMMENT 'second'")
    lake.sql("INSERT INTO f SELECT 1, named_struct('a', 1, 'b', 2)")
    lake.table("f").alter(change_type("s.b", "string")).wait()
    lake.table("f").append(lake.spark.sql("SELECT 2 AS id, named_struct('b', 'x') AS s"))

    assert rows(lake.sql("SELECT * FROM f ORDER BY id")) == [(1, (1, "2")), (2, (7, "x"))]
    found = lake.table("f")
    [struct] = [c for c in found.columns if c.name == "s"]
    assert [c.default.text for c in struct.children] == ["7", "8"]
    told = dict(lake.sql("DESCRIBE f s.a").collect() + lake.sql("DESCRIBE f s.b").collect())
    assert told["comment"] == "second"
    assert lake.sql("DESCRIBE f s.a").collect()[2].info_value == "first"


def test_a_uuid_and_the_default_of_its_column_become_the_same_bytes(lake):
    lake.sql(f"CREATE TABLE ids (id INT, u UUID DEFAULT '{UUID}')")
    lake.sql("INSERT INTO ids (id) VALUES (1)")
    lake.table("ids").alter(change_type("u", "binary")).wait()
    lake.sql("INSERT INTO ids (id) VALUES (2)")

    sixteen = bytes.fromhex(UUID.replace("-", ""))
    assert rows(lake.sql("SELECT id, u FROM ids ORDER BY id")) == [(1, sixteen), (2, sixteen)]


def test_a_value_that_is_lost_is_told_in_hexadecimal(lake):
    job = lake.table("bytes").alter(change_type("b", "string"))
    with pytest.raises(InvalidRequest, match=r"X'FFFE', in .*parquet"):
        job.wait()

    assert job.state is JobState.CANCELLED
    assert "'b'" in job.look().message
    assert "�" not in job.look().message


def test_a_value_that_is_lost_fails_no_job_of_spark(lake):
    tracker = lake.spark.sparkContext.statusTracker()
    before = set(tracker.getJobIdsForGroup())
    for column, target in (("b", "string"), ("n", "date")):
        job = lake.table("bytes").alter(change_type(column, target))
        with pytest.raises(
            InvalidRequest, match=f"1 value\\(s\\) of column '{column}' cannot be converted"
        ):
            job.wait()

    # Each failed one would log stack traces of the task, of its stage and of the query.
    found = [tracker.getJobInfo(n) for n in set(tracker.getJobIdsForGroup()) - before]
    assert len(found) > 1
    assert {job.status for job in found} == {"SUCCEEDED"}


@pytest.mark.slow
def test_a_number_with_nine_digits_is_no_date(lake):
    job = lake.table("bytes").alter(change_type("n", "date"))
    with pytest.raises(
        InvalidRequest, match="'n' cannot be converted to date, such as '202402290'"
    ):
        job.wait()


@pytest.mark.parametrize(
    ("target", "using"),
    [
        ("uuid", "'no uuid'"),
        ("utinyint", "-1"),
        ("string", "cast(X'FF' as string)"),
        ("date", "date_from_unix_date(-2147483648)"),
    ],
)
def test_an_expression_makes_values_of_the_column_or_fails(lake, target, using):
    job = lake.table("bytes").alter(
        change_type("n", target, using=f"if(n = 20240229, {using}, NULL)")
    )
    with pytest.raises(InvalidRequest, match="'n' cannot be converted"):
        job.wait()
    lake.table("bytes").alter(
        change_type("n", target, using=f"if(n = 20240229, {using}, NULL)", on_error="null")
    ).wait()

    assert rows(lake.sql("SELECT n FROM bytes")) == [(None,)] * 3


def test_an_expression_makes_no_nested_value_that_other_readers_lack(lake):
    job = lake.table("texts").alter(change_type("l", "array<binary>", using="array(X'FF')"))
    job.wait()
    job = lake.table("texts").alter(
        change_type("l", "array<string>", using="transform(l, x -> cast(x as string))")
    )
    with pytest.raises(InvalidRequest, match=r"column l\.element of main\.texts .*X'FF'"):
        job.wait()

    assert job.state is JobState.CANCELLED


def test_an_expression_that_fails_on_a_value_cancels_its_job_and_names_it(lake):
    table = lake.table("bytes")
    using = "cast(cast(b as string) as bigint)"
    job = table.alter(change_type("b", "bigint", using=using))
    with pytest.raises(InvalidRequest, match=r"'b' fails for X'FFFE' in .*parquet: .*CAST_"):
        job.wait()

    assert job.state is JobState.CANCELLED
    # The next change is not refused by what is left.
    table.alter(change_type("b", "bigint", using="try_cast(cast(b as string) as bigint)")).wait()
    assert rows(lake.sql("SELECT b FROM bytes ORDER BY id")) == [(1,), (None,), (2,)]


def test_a_fault_that_passes_is_tried_again_and_one_that_stays_cancels(lake, monkeypatch):
    real, left = convert.write_bins, [2]

    def failing(*arguments, **more):
        if left[0]:
            left[0] -= 1
            raise OSError("the disk is full")
        return real(*arguments, **more)

    monkeypatch.setattr(convert, "write_bins", failing)
    job = lake.table("texts").alter(change_type("v", "binary"))
    job.wait()
    assert job.state is JobState.FINISHED

    left[0] = 100
    job = lake.table("texts").alter(change_type("v", "string"))
    with pytest.raises(InvalidRequest, match="it failed 3 times: the disk is full"):
        job.wait()
    assert job.state is JobState.CANCELLED
    assert left[0] == 97


def test_a_refused_pair_tells_the_expression_that_makes_the_values(lake):
    with pytest.raises(Unsupported) as refused:
        lake.table("bytes").alter(change_type("n", "binary"))
    statement = str(refused.value).partition(", as in ")[2]
    lake.sql(statement)

    expected = [(1, b"20240229"), (2, b"202402290"), (3, None)]
    assert rows(lake.sql("SELECT id, n FROM bytes ORDER BY id")) == expected


def test_a_plan_counts_the_rows_that_the_catalog_keeps(lake):
    [step] = lake.table("texts").plan_alter(change_type("v", "binary")).steps

    assert (step.files_to_rewrite, step.rows_to_rewrite, step.bytes_to_rewrite) == (1, 3, 0)


def test_a_key_of_partitions_becomes_a_double_where_types_widen(copied):
    catalog, lake = copied
    lake.sql("CREATE TABLE parts (id INT, p INT) PARTITIONED BY (p)")
    lake.set_option("data_inlining_row_limit", 0, table="parts")
    lake.sql("INSERT INTO parts VALUES (1, 1), (2, -2147483648)")
    with pytest.raises(Unsupported, match=r"'delta.enableTypeWidening' = 'true'"):
        lake.sql("ALTER TABLE parts MODIFY COLUMN p DOUBLE")
    lake.sql("ALTER TABLE parts SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    lake.sql("ALTER TABLE parts MODIFY COLUMN p DOUBLE")
    lake.sql("INSERT INTO parts VALUES (3, 1.5D), (4, 1.0D)")
    expected = [(1, 1.0), (2, -2147483648.0), (3, 1.5), (4, 1.0)]

    assert rows(lake.sql("SELECT * FROM parts ORDER BY id")) == expected
    assert rows(lake.sql("SELECT id FROM parts WHERE p = 1 ORDER BY id")) == [(1,), (4,)]
    with DuckDBOracle(f"sqlite:///{catalog}") as duck:
        assert duck.rows("parts") == expected
        assert duck.sql("SELECT id FROM parts WHERE p = 1 ORDER BY id") == [(1,), (4,)]
        assert duck.sql("SELECT id FROM parts WHERE p > 1 ORDER BY id") == [(3,)]
    lake.table("parts").rewrite()
    assert rows(lake.sql("SELECT * FROM parts ORDER BY id")) == expected


@pytest.fixture
def looked(lake, monkeypatch):
    """A table whose dictionaries are looked at; one text in its second file is not a number."""
    monkeypatch.setattr(dictionary_proof, "_SMALL", 0)
    monkeypatch.setattr(dictionary_proof, "_WORTH", 0)
    monkeypatch.setattr(dictionary_proof, "_FEW", 0)
    lake.sql("CREATE TABLE looked (id INT, v STRING)")
    lake.set_option("data_inlining_row_limit", "0", table="looked")
    for text in ("CAST(id % 2 AS STRING)", "IF(id = 7, 'seven', '1')", "CAST(NULL AS STRING)"):
        lake.sql(f"INSERT INTO looked SELECT CAST(id AS INT), {text} FROM range(0, 9, 1, 1)")
    return lake.table("looked")


def test_a_text_that_fails_is_named_before_its_job_begins(lake, looked):
    _, path, _ = (f.file_path for f in looked.files().orderBy("data_file_id").collect())
    told = f"'seven' in {path}"
    to_int = change_type("v", "int")

    assert looked.plan_alter(to_int).steps[0].proof == (
        f"proven for 2 of 3 file(s); these values would fail: {told}"
    )
    with pytest.raises(InvalidRequest) as refused:
        lake.sql("ALTER TABLE looked ALTER COLUMN v TYPE INT")
    assert str(refused.value) == (
        "values of column 'v' of main.looked cannot be converted to int32, such as 'seven', in"
        f" {path}; correct them, give a conversion with USING, or allow NULL with ON ERROR NULL"
    )
    with pytest.raises(InvalidRequest, match=r"USING CAST\(v AS INT\) .* fails for 'seven' in /.*"):
        looked.alter(change_type("v", "int", using="CAST(v AS INT)"))
    assert lake.jobs() == []
    to_null = change_type("v", "int", on_error="null")
    assert looked.plan_alter(to_null).steps[0].proof == (
        f"proven for 2 of 3 file(s); these values would become NULL: {told}"
    )
    others = ("CAST(v AS INT) + id", "CAST(coalesce(v, 'no') AS INT)", "length(v) * rand()", "f(v)")
    for using in others:
        assert looked.plan_alter(change_type("v", "int", using=using)).steps[0].proof == ""


def test_a_text_that_no_row_has_is_left_to_the_job(lake, looked, monkeypatch, spark, tmp_path):
    lake.sql("DELETE FROM looked WHERE v = 'seven'")
    to_int = change_type("v", "int")
    assert looked.plan_alter(to_int).steps[0].proof == (
        "proven for 2 of 3 file(s); 1 file(s) must be read"
    )
    # An array that has a text in its dictionary which no row has.
    unused = pa.DictionaryArray.from_arrays([0, 0], ["1", "one"])
    for name, texts in (("used", ["1", "2"]), ("unused", unused)):
        path = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table({"id": pa.array([1, 2], pa.int32()), "v": texts}), path)
        looked.add_files(str(path))
    assert looked.plan_alter(to_int).steps[0].proof == (
        "proven for 3 of 5 file(s); 2 file(s) must be read"
    )
    lake.set_option("data_inlining_row_limit", "10", table="looked")
    lake.sql("INSERT INTO looked VALUES (1, 'ten'), (2, '11')")
    assert looked.plan_alter(to_int).steps[0].proof == (
        "proven for 3 of 5 file(s) and 1 of 2 row(s) in the catalog; 2 file(s) must be read; these"
        " values would fail: 'ten' in the catalog"
    )
    monkeypatch.setattr(dictionary_proof, "_SMALL", 1 << 20)
    # The job is as quick as a look at small files.
    assert jobs_of(spark, lambda: looked.plan_alter(to_int)) == 0
    assert looked.plan_alter(to_int).steps[0].proof == ""
