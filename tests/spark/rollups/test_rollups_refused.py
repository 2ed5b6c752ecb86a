"""What is refused of rollups: nobody but their base changes them, and none is of no use."""

from __future__ import annotations

import pytest

import shelduck
from shelduck import AlreadyExists, InvalidRequest, NotFound
from tests.support.lakes import refusal

STATEMENTS = [
    "CREATE TABLE d (k INT, v INT) DUPLICATE KEY (k) ROLLUP (p (v, k))",
    "INSERT INTO d VALUES (1, 1), (NULL, NULL)",
    "INSERT INTO d VALUES (2, 2)",
    "CREATE TABLE `d$t` (v INT)",
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO `d$p` VALUES (NULL, 1)",
        "INSERT INTO `d$p` SELECT * FROM `d$p`",
        "INSERT OVERWRITE `d$p` SELECT * FROM `d$p`",
        "UPDATE `d$p` SET v = 1",
        "DELETE FROM `d$p` WHERE v = 1",
        "DELETE FROM `d$p`",
        "TRUNCATE TABLE `d$p`",
        "MERGE INTO `d$p` AS t USING d AS s ON t.v = s.v WHEN MATCHED THEN DELETE",
        "ALTER TABLE `d$p` ADD COLUMN z INT",
        "ALTER TABLE `d$p` ALTER COLUMN v TYPE STRING",
        "ALTER TABLE `d$p` SET TBLPROPERTIES ('a' = 'b')",
        "ALTER TABLE `d$p` ADD ROLLUP z (v)",
        "ALTER TABLE `d$p` RENAME TO z",
        "COMMENT ON TABLE `d$p` IS 'x'",
        "RESTORE TABLE `d$p` TO VERSION AS OF 1",
    ],
)
def test_nobody_but_its_base_changes_a_rollup(copied, base, statement):
    catalog, lake = copied
    told = refusal(InvalidRequest, lambda: lake.sql(statement), catalog, base.folder / "data")

    assert "main.`d$p`: it is " in told
    assert "a rollup, which is named after its base table" in told or "DROP ROLLUP p" in told


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "act",
    [
        lambda table, frame: table.append(frame),
        lambda table, frame: table.overwrite(frame, where="v = 1"),
        lambda table, frame: table.sink("q")(frame, 0),
        lambda table, frame: table.merge(frame, ["v"], shelduck.when_matched_delete()),
        lambda table, _: table.add_rollup("z", ["v"]),
        lambda table, _: table.alter(shelduck.drop_column("v")),
        lambda table, _: table.add_files(table.files().first().file_path, allow_missing=True),
    ],
)
def test_no_verb_changes_a_rollup(copied, base, act):
    catalog, lake = copied
    table, frame = lake.table("d$p"), lake.table("d$p").read()
    told = refusal(InvalidRequest, lambda: act(table, frame), catalog, base.folder / "data")
    assert "it is rollup p of d and follows its changes; change d" in told


@pytest.mark.parametrize(
    ("kind", "statement", "told"),
    [
        (AlreadyExists, "ALTER TABLE d ADD ROLLUP P (v)", "index P of main.d already exists"),
        (AlreadyExists, "ALTER TABLE d ADD ROLLUP z (v), Z (v)", "index Z of main.d already"),
        (AlreadyExists, "ALTER TABLE d ADD ROLLUP t (v)", "index t of main.d already exists"),
        (NotFound, "ALTER TABLE d ADD ROLLUP z (v) FROM y", "Base index[y] does not exist in"),
        (NotFound, "ALTER TABLE d ADD ROLLUP z (v, y)", "column 'y' does not exist in main.d"),
        (NotFound, "ALTER TABLE d DROP ROLLUP z", "rollup 'z' does not exist in main.d; existing"),
        (NotFound, "ALTER TABLE d DROP ROLLUP p, z", "rollup 'z' does not exist in main.d"),
        (NotFound, "DROP MATERIALIZED VIEW z ON d", "rollup 'z' does not exist in main.d"),
        (InvalidRequest, "ALTER TABLE d ADD ROLLUP z (v) PROPERTIES ('x' = '1')", "property 'x'"),
        (
            *(InvalidRequest, "BEGIN; ALTER TABLE d ADD ROLLUP z (v)"),
            "making a rollup commits by itself; run it outside of the transaction",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_made_or_dropped_is_refused(copied, base, kind, statement, told):
    catalog, lake = copied
    assert told in refusal(kind, lambda: lake.sql(statement), catalog, base.folder / "data")
