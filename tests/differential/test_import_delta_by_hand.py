"""Delta tables made by hand: deletion vectors, renames, partition values, every checkpoint."""

from __future__ import annotations

import json
import struct
import zlib
from decimal import Decimal
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

import shelduck
from shelduck.formats.delta.vectors import inline_vector, z85_text
from tests.support.delta import (
    DeltaReaders,
    HandMade,
    column,
    metadata,
    protocol,
    remove,
    versions_of,
)
from tests.support.normal import spark_rows
from tests.support.oracle import DuckDBOracle

VECTORS = protocol("deletionVectors")
S2 = pa.struct({"x": pa.int32(), "col-5": pa.string()})
MAPPED = {"delta.columnMapping.mode": "name"}


@pytest.fixture
def lake(spark, long_story_url, data_path):
    with shelduck.connect(long_story_url, data_path, spark) as lake:
        yield lake


@pytest.fixture
def delta(tmp_path):
    return HandMade(tmp_path / "delta")


@pytest.fixture(scope="module")
def readers():
    with DeltaReaders() as readers:
        yield readers


def inline(*positions):
    """The log's words for a deletion vector in the log."""
    vector = inline_vector(BitMap64(positions))
    return {
        "storageType": vector.storage,
        "pathOrInlineDv": vector.place,
        "sizeInBytes": vector.size,
        "cardinality": vector.cardinality,
    }


def stored(delta, *positions, prefix="", absolute=False):
    """The log's words for a deletion vector in a file, which is written."""
    data = struct.pack("<i", 1681511377) + BitMap64(positions).serialize()
    number = UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61")
    path = delta.path / prefix / f"deletion_vector_{number}.bin"
    path.parent.mkdir(exist_ok=True)
    before = path.read_bytes() if path.exists() else b"\x01"
    path.write_bytes(
        before + struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    )
    return {
        "storageType": "p" if absolute else "u",
        "pathOrInlineDv": path.as_uri() if absolute else prefix + z85_text(number.bytes),
        "offset": len(before),
        "sizeInBytes": len(data),
        "cardinality": len(positions),
    }


def numbers(count, start=0):
    return pa.table({"a": pa.array(range(start, start + count), pa.int64())})


def test_deletion_vectors_of_every_kind_are_read_alike(lake, long_story_url, readers, delta):
    delta.write_file("1.parquet", numbers(10))
    delta.write_file("2.parquet", numbers(10, 10))
    delta.write_file("3.parquet", numbers(10, 20))
    in_log, in_file = inline(0, 9), stored(delta, 1, 2, 3, prefix="ab")
    elsewhere = stored(delta, *range(4), prefix="ab", absolute=True)
    columns = metadata([column("a", "long")], configuration={"delta.enableDeletionVectors": "true"})
    delta.commit(VECTORS, columns, delta.add("1.parquet"), delta.add("2.parquet", vector=in_file))
    # A file that is there loses rows, and a file of which rows are dead already comes in.
    delta.commit(
        *(remove("1.parquet"), delta.add("1.parquet", vector=in_log)),
        delta.add("3.parquet", vector=elsewhere),
    )
    more = inline(0, 5, 9)
    delta.commit(remove("1.parquet", in_log), delta.add("1.parquet", vector=more))

    done = lake.import_delta(delta.path, "t")

    second, third = (10, *range(14, 20)), tuple(range(24, 30))
    assert spark_rows(lake.table("t").read()) == readers.by_duckdb(delta.path)
    ours = versions_of(lake, long_story_url, done)
    assert {v: sorted(a for (a,) in rows) for v, rows in ours.items()} == {
        0: [*range(10), *second],
        1: [*range(1, 9), *second, *third],
        2: [1, 2, 3, 4, 6, 7, 8, *second, *third],
    }
    for version, rows in ours.items():
        assert readers.by_deltalake(delta.path, version) == rows


def test_ends_of_lines_inside_a_text_end_no_action(lake, readers, delta):
    """JSON may hold them as they are, and Spark and delta-rs write them so."""
    delta.write_file("1.parquet", numbers(3))
    odd = "next \u0085 line \u2028 paragraph \u2029"
    columns = metadata([column("a", "long")], description=odd)
    number = delta.commit(protocol(), columns, delta.add("1.parquet"))
    log = delta.log / f"{number:020}.json"
    told = log.read_text()
    for letter in "\u0085\u2028\u2029":
        told = told.replace(f"\\u{ord(letter):04x}", letter)
    assert odd in told
    log.write_text(told)

    lake.import_delta(delta.path, "t")
    assert spark_rows(lake.table("t").read()) == readers.by_duckdb(delta.path)
    assert odd in lake.sql("SHOW CREATE TABLE t").collect()[0][0]


def test_rows_that_come_back_and_files_that_are_all_dead(lake, long_story_url, readers, delta):
    delta.write_file("1.parquet", numbers(4))
    delta.write_file("2.parquet", numbers(2, 4))
    some, others, all_dead = inline(0, 1), inline(2), inline(0, 1)
    delta.commit(VECTORS, metadata([column("a", "long")]), delta.add("1.parquet", vector=some))
    # As RESTORE does it: another vector that knows less, then none.
    delta.commit(remove("1.parquet", some), delta.add("1.parquet", vector=others))
    delta.commit(remove("1.parquet", others), delta.add("1.parquet"))
    delta.commit(delta.add("2.parquet", vector=all_dead))
    delta.commit(remove("2.parquet", all_dead), delta.add("2.parquet"))
    delta.commit(remove("2.parquet"), delta.add("2.parquet", vector=all_dead))

    done = lake.import_delta(delta.path, "t")

    assert done.versions == (0, 1, 2, 4, 5)
    ours = versions_of(lake, long_story_url, done)
    expected = {0: [2, 3], 1: [0, 1, 3], 2: [0, 1, 2, 3], 4: [*range(6)], 5: [0, 1, 2, 3]}
    assert {v: [a for (a,) in rows] for v, rows in ours.items()} == expected
    for version, rows in ours.items():
        assert readers.by_deltalake(delta.path, version) == rows


def test_an_import_of_deletion_vectors_is_caught_up_with(lake, long_story_url, readers, delta):
    delta.write_file("1.parquet", numbers(6))
    first, second = inline(0), inline(0, 3)
    delta.commit(VECTORS, metadata([column("a", "long")]), delta.add("1.parquet", vector=first))
    lake.import_delta(delta.path, "t")
    delta.commit(remove("1.parquet", first), delta.add("1.parquet", vector=second))

    done = lake.import_delta(delta.path, "t")

    assert (done.versions, done.files) == ((1,), 0)
    assert versions_of(lake, long_story_url, done)[1] == [(1,), (2,), (4,), (5,)]
    assert readers.by_deltalake(delta.path) == [(1,), (2,), (4,), (5,)]


def test_columns_are_renamed_dropped_added_and_widened(lake, long_story_url, readers, delta):
    a, b = column("a", "integer", number=1), column("b", "string", number=2)
    inner = column("x", "integer", number=4)
    s = column("s", {"type": "struct", "fields": [inner]}, number=3)
    delta.write_file(
        "1.parquet",
        pa.table(
            {"a": pa.array([1, 2], pa.int32()), "b": ["x", "y"], "s": [{"x": 1}, None]},
            schema=pa.schema(
                {"a": pa.int32(), "b": pa.string(), "s": pa.struct({"x": pa.int32()})}
            ),
        ),
    )
    delta.commit(protocol("columnMapping"), metadata([a, b, s], configuration=MAPPED))
    delta.commit(delta.add("1.parquet"))
    # a and b change names, and the struct gets a member of the name that its other one had.
    renamed = column("y", "integer", number=4, physical="x")
    fresh = column("x", "string", number=5, physical="col-5")
    s2 = column("t", {"type": "struct", "fields": [renamed, fresh]}, number=3, physical="s")
    swapped = [column("b", "integer", number=1, physical="a"), s2]
    swapped.insert(1, column("a", "string", number=2, physical="b"))
    delta.commit(metadata(swapped, configuration=MAPPED))
    # b is dropped, another b is made; what was a is wider now.
    wide = column("b", "long", number=1, physical="a")
    last = [s2, column("a", "double", number=6, physical="col-6"), wide]
    delta.commit(metadata(last, configuration=MAPPED))
    delta.write_file(
        "2.parquet",
        pa.table({"s": pa.array([{"x": 9, "col-5": "new"}], S2), "col-6": [0.5], "a": [2**40]}),
    )
    delta.commit(delta.add("2.parquet"))

    done = lake.import_delta(delta.path, "t")

    names = {v: lake.table("t").read(version=s).columns for v, s in done.snapshots.items()}
    assert names[2] == ["b", "a", "t"]
    assert names[4] == ["t", "a", "b"]
    ours = versions_of(lake, long_story_url, done)
    assert ours[0] == []
    assert ours[1] == [(1, "x", (1,)), (2, "y", None)]
    assert ours[2] == [(1, "x", (1, None)), (2, "y", None)]
    assert ours[4] == [((1, None), None, 1), ((9, "new"), "0.5", 2**40), (None, None, 2)]
    assert ours[4] == readers.by_duckdb(delta.path)


def test_in_id_mode_the_footer_says_which_column_is_which(lake, long_story_url, delta):
    def field(name, kind, number):
        return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})

    schema = pa.schema([field("whatever", pa.int64(), 2), field("a", pa.string(), 1)])
    delta.write_file("1.parquet", pa.table({"whatever": [7], "a": ["x"]}, schema=schema))
    fields = [column("t", "string", number=1, physical="p1"), column("n", "long", number=2)]
    mode = {"delta.columnMapping.mode": "id"}
    delta.commit(protocol("columnMapping"), metadata(fields, configuration=mode))
    delta.commit(delta.add("1.parquet"))

    done = lake.import_delta(delta.path, "t")

    assert versions_of(lake, long_story_url, done)[1] == [("x", 7)]


def test_a_column_that_old_files_hold_under_the_name_of_a_new_one(
    lake, long_story_url, readers, delta
):
    # Without column mapping the name alone counts: b was there before anybody declared it.
    delta.write_file("1.parquet", pa.table({"a": [1], "b": ["hidden"]}))
    delta.commit(protocol(), metadata([column("a", "long")]), delta.add("1.parquet"))
    delta.commit(metadata([column("a", "long"), column("b", "string")]))

    done = lake.import_delta(delta.path, "t")

    ours = versions_of(lake, long_story_url, done)
    assert ours == {0: [(1,)], 1: [(1, "hidden")]}
    assert ours[1] == readers.by_deltalake(delta.path)


def test_partition_values_are_written_in_every_way_of_delta(lake, long_story_url, delta):
    kinds = {
        "d": "date", "n": "integer", "f": "double", "c": "decimal(9,2)", "o": "boolean",
        "s": "string", "y": "binary", "z": "timestamp", "l": "timestamp_ntz",
    }  # fmt: skip
    rows = [
        {
            "d": "2024-02-29", "n": "-7", "f": "1.5E10", "c": "1.5", "o": "true", "s": "a/ü=%20",
            "y": "\x01z", "z": "2024-01-02T03:04:05.000006Z", "l": "2024-01-02 03:04:05.5",
        },
        {
            "d": None, "n": None, "f": "NaN", "c": None, "o": None, "s": "",
            "y": None, "z": "2024-01-02 03:04:05", "l": None,
        },
    ]  # fmt: skip
    delta.commit(
        protocol("timestampNtz"),
        metadata([column("a", "long"), *(column(*k) for k in kinds.items())], partition_by=kinds),
    )
    for number, values in enumerate(rows):
        name = delta.write_file(f"{number}.parquet", numbers(1, number))
        delta.commit(delta.add(name, values=values))

    lake.import_delta(delta.path, "t")

    assert spark_rows(lake.table("t").read()) == [
        (
            *(0, "2024-02-29", -7, "15000000000.0", Decimal("1.5"), "true", "a/ü=%20"),
            *(b"\x01z", "2024-01-02T03:04:05.000006Z", "2024-01-02T03:04:05.500000"),
        ),
        (1, None, None, "nan", None, None, None, None, "2024-01-02T03:04:05Z", None),
    ]


def test_partition_columns_are_widened_as_delta_does_it(lake, long_story_url, readers, delta):
    narrow = [column("a", "long"), column("f", "float"), column("n", "integer")]
    wide = [column("a", "long"), column("f", "double"), column("n", "long")]
    keys = ["f", "n"]
    delta.write_file("f=1.1/n=7/1.parquet", numbers(1))
    file = delta.add("f=1.1/n=7/1.parquet", values={"f": "1.1", "n": "7"})
    delta.commit(protocol("typeWidening"), metadata(narrow, partition_by=keys), file)
    delta.commit(metadata(wide, partition_by=keys))

    done = lake.import_delta(delta.path, "t")

    # The text is read anew: 1.1 as a double is not what 1.1 as a float is.
    ours = versions_of(lake, long_story_url, done)
    assert ours == {0: [(0, "1.100000023841858", 7)], 1: [(0, "1.1", 7)]}
    assert readers.by_duckdb(delta.path) == ours[1]


def test_paths_are_uris(lake, long_story_url, readers, delta, tmp_path):
    delta.write_file("p=x y%3A/ü 1.parquet", numbers(1))
    elsewhere = tmp_path / "else where.parquet"
    pq.write_table(numbers(1, 1), elsewhere)
    delta.write_file("elsewhere.parquet", numbers(1, 1))
    first = delta.add(
        "p=x y%3A/ü 1.parquet", path="p=x%20y%253A/%C3%BC%201.parquet", values={"p": "x y:"}
    )
    second = delta.add("elsewhere.parquet", path=elsewhere.as_uri(), values={"p": "q"})
    columns = [column("a", "long"), column("p", "string")]
    delta.commit(protocol(), metadata(columns, partition_by=["p"]), first, second)

    done = lake.import_delta(delta.path, "t")

    assert spark_rows(lake.table("t").read()) == [(0, "x y:"), (1, "q")]
    assert done.notes[0].startswith("1 file(s) have partition values that are not in")
    lake.close()
    # The path of the first file tells its value to DuckDB as well.
    with DuckDBOracle(long_story_url) as oracle:
        assert oracle.sql("SELECT p, a FROM t WHERE a = 0") == [("x y:", 0)]


ADD = pa.struct(
    {
        "path": pa.string(),
        "partitionValues": pa.map_(pa.string(), pa.string()),
        "size": pa.int64(),
        "modificationTime": pa.int64(),
        "dataChange": pa.bool_(),
        "deletionVector": pa.struct(
            {
                "storageType": pa.string(),
                "pathOrInlineDv": pa.string(),
                "offset": pa.int32(),
                "sizeInBytes": pa.int32(),
                "cardinality": pa.int64(),
            }
        ),
    }
)
METADATA = pa.struct(
    {
        "id": pa.string(),
        "format": pa.struct(
            {"provider": pa.string(), "options": pa.map_(pa.string(), pa.string())}
        ),
        "schemaString": pa.string(),
        "partitionColumns": pa.list_(pa.string()),
        "configuration": pa.map_(pa.string(), pa.string()),
        "createdTime": pa.int64(),
    }
)
PROTOCOL = pa.struct(
    {
        "minReaderVersion": pa.int32(),
        "minWriterVersion": pa.int32(),
        "readerFeatures": pa.list_(pa.string()),
        "writerFeatures": pa.list_(pa.string()),
    }
)
SIDECAR = pa.struct(
    {"path": pa.string(), "sizeInBytes": pa.int64(), "modificationTime": pa.int64()}
)
KINDS = {"add": ADD, "metaData": METADATA, "protocol": PROTOCOL, "sidecar": SIDECAR}


def write_actions(path, *actions, kinds=("add", "metaData", "protocol")):
    """A part of a checkpoint: one row for each action."""
    path.parent.mkdir(exist_ok=True)
    columns = {k: pa.array([a.get(k) for a in actions], KINDS[k]) for k in kinds}
    pq.write_table(pa.table(columns), path)


def state_of(delta):
    """The actions of versions 0 and 1, as a checkpoint has them."""
    found = []
    for version in (0, 1):
        text = (delta.log / f"{version:020}.json").read_text()
        found += [json.loads(line) for line in text.splitlines()[1:]]
    for action in found:
        if "metaData" in action:
            action["metaData"].pop("description")
    return found


@pytest.mark.parametrize("kind", ["one", "parts", "v2 parquet", "v2 json"])
def test_checkpoints_of_every_kind(lake, long_story_url, readers, delta, kind):
    for number in range(3):
        delta.write_file(f"{number}.parquet", numbers(2, 2 * number))
    needed = VECTORS if "v2" not in kind else protocol("deletionVectors", "v2Checkpoint")
    first = delta.add("0.parquet", vector=inline(1))
    delta.commit(needed, metadata([column("a", "long")]), first)
    delta.commit(delta.add("1.parquet"))
    delta.commit(delta.add("2.parquet"))
    asked, columns, *adds = state_of(delta)
    name = f"{1:020}.checkpoint"
    number = "80a083e8-7026-4e79-81be-64bd76c43a11"
    if kind == "one":
        write_actions(delta.log / f"{name}.parquet", asked, columns, *adds)
    elif kind == "parts":
        write_actions(delta.log / f"{name}.{1:010}.{2:010}.parquet", asked, adds[0])
        write_actions(delta.log / f"{name}.{2:010}.{2:010}.parquet", columns, adds[1])
    else:
        sides = [f"{side}.parquet" for side in ("s1", "s2")]
        for side, add in zip(sides, adds, strict=True):
            write_actions(delta.log / "_sidecars" / side, add, kinds=("add",))
        sizes = [(delta.log / "_sidecars" / side).stat().st_size for side in sides]
        pointers = [
            {"sidecar": {"path": side, "sizeInBytes": size, "modificationTime": 0}}
            for side, size in zip(sides, sizes, strict=True)
        ]
        top = [asked, columns, *pointers]
        if kind == "v2 json":
            lines = [json.dumps(a) for a in [{"checkpointMetadata": {"version": 1}}, *top]]
            (delta.log / f"{name}.{number}.json").write_text("\n".join(lines))
        else:
            write_actions(delta.log / f"{name}.{number}.parquet", *top, kinds=tuple(KINDS))
    for version in (0, 1):
        (delta.log / f"{version:020}.json").unlink()

    done = lake.import_delta(delta.path, "t")

    ours = versions_of(lake, long_story_url, done)
    assert ours == {1: [(0,), (2,), (3,)], 2: [(0,), (2,), (3,), (4,), (5,)]}
    assert readers.by_duckdb(delta.path) == ours[2]


def test_what_delta_asks_of_writers_is_told(lake, delta):
    settings = {"delta.enableChangeDataFeed": "true", "delta.appendOnly": "false"}
    columns = metadata([column("a", "long")], configuration=settings)
    delta.write_file("1.parquet", pa.table({"a": [1]}))
    delta.commit(protocol(), columns, delta.add("1.parquet"))

    done = lake.import_delta(delta.path, "t")

    assert done.notes == (
        "the change data feed was left out: Table.changes reads the changes of every table",
    )


def with_rules(default="7", **checks):
    """A version whose columns have rules, and so has the table."""
    columns = [column(name, "long") for name in ("id", "a", "b", "c")]
    told = {"start": 10, "step": 10, "allowExplicitInsert": True, "highWaterMark": 50}
    columns[0]["metadata"] = {f"delta.identity.{key}": value for key, value in told.items()}
    columns[2]["metadata"] = {"delta.generationExpression": "a * 2"}
    columns[3]["metadata"] = {"CURRENT_DEFAULT": default}
    settings = {f"delta.constraints.{name}": text for name, text in checks.items()}
    return metadata(columns, configuration=settings)


def test_rules_come_along_version_by_version(lake, long_story_url, delta):
    rows = pa.table({"id": [10, 20], "a": [1, 2], "b": [2, 4], "c": [3, 4]})
    delta.write_file("1.parquet", rows)
    delta.commit(protocol(), with_rules(positive="a > 0"), delta.add("1.parquet"))
    assert lake.import_delta(delta.path, "t").notes == ()
    with pytest.raises(shelduck.InvalidRequest, match=r"positive .* is not satisfied by the row"):
        lake.sql("INSERT INTO t (a) VALUES (0)")
    # Delta refuses what is NULL, too.
    with pytest.raises(shelduck.InvalidRequest, match=r"positive .* is not satisfied by the row"):
        lake.sql("INSERT INTO t (a) VALUES (NULL)")

    delta.commit(with_rules("8", small="a < 100"))
    assert lake.import_delta(delta.path, "t").versions == (1,)
    lake.sql("INSERT INTO t (a) VALUES (-1)")
    with pytest.raises(shelduck.InvalidRequest, match=r"small .* is not satisfied by the row"):
        lake.sql("INSERT INTO t (a) VALUES (100)")
    with pytest.raises(shelduck.InvalidRequest, match=r"b of main.t .GENERATED .* cannot be 5"):
        lake.sql("INSERT INTO t (a, b) VALUES (1, 5)")
    lake.close()
    with DuckDBOracle(long_story_url) as oracle:
        # Delta gave numbers up to 50, the refused statement here 60, 70 and 80.
        [(number, *others)] = oracle.sql("SELECT id, a, b, c FROM t WHERE a = -1")
        assert others == [-1, -2, 8]
        assert number > 50
        assert number % 10 == 0


def test_a_constraint_waits_for_a_job_that_converts_its_column(lake, delta):
    delta.write_file("1.parquet", pa.table({"a": [1]}))
    delta.commit(protocol(), metadata([column("a", "long")]), delta.add("1.parquet"))
    lake.import_delta(delta.path, "t")
    lake.sql("ALTER TABLE t ALTER COLUMN a TYPE STRING PROPERTIES ('wait' = 'false')")
    settings = {"delta.constraints.c": "a > 0"}
    delta.commit(metadata([column("a", "long")], configuration=settings))

    with pytest.raises(shelduck.AlreadyExists, match=r"job \d+ .* converts a column of it"):
        lake.import_delta(delta.path, "t")
    lake.sql("CANCEL ALTER TABLE COLUMN FROM t")
    assert lake.import_delta(delta.path, "t").versions == (1,)


def test_an_identity_with_null_is_plain_from_then_on(lake, delta):
    rows = pa.table({"id": [10, 20], "a": [1, 2], "b": [2, 4], "c": [3, 4]})
    delta.write_file("1.parquet", rows)
    delta.commit(protocol(), with_rules(), delta.add("1.parquet"))
    assert lake.import_delta(delta.path, "t").notes == ()
    lacking = pa.table({"id": pa.array([None], pa.int64()), "a": [3], "b": [6], "c": [5]})
    delta.write_file("2.parquet", lacking)
    delta.commit(delta.add("2.parquet"))

    done = lake.import_delta(delta.path, "t")

    assert done.notes == (
        "column 'id': it is an identity in Delta, and plain here: files have NULL in it",
    )
    found = {row.id for row in lake.table("t").read().collect()}
    assert found == {None, 10, 20}
    assert lake.table("t").columns.find(("id",)).nullable


def test_versions_that_nobody_has_any_more_are_jumped_over(lake, long_story_url, readers, delta):
    for number in range(4):
        delta.write_file(f"{number}.parquet", numbers(1, number))
    delta.commit(protocol(), metadata([column("a", "long")]), delta.add("0.parquet"))
    lake.import_delta(delta.path, "t")
    delta.commit(remove("0.parquet"), delta.add("1.parquet"))
    delta.commit(remove("1.parquet"), delta.add("2.parquet"))
    delta.commit(metadata([column("a", "long"), column("b", "long")]), delta.add("3.parquet"))
    (delta.path / "1.parquet").unlink()

    done = lake.import_delta(delta.path, "t")

    assert done.versions == (2, 3)
    assert done.notes[0].startswith("versions 1 to 1 were left out: version 1 needs the data file")
    ours = versions_of(lake, long_story_url, done)
    assert ours == {2: [(2,)], 3: [(2, None), (3, None)]}
    assert readers.by_deltalake(delta.path) == ours[3]
