"""The clauses that make room for new rows."""

from __future__ import annotations

import pytest
from dbt.adapters.shelduck.schema_changes import clauses

OLD = [
    ("id", "int"),
    ("s", "struct<a:int,b:struct<x:float>>"),
    ("l", "array<struct<v:int>>"),
    ("m", "map<string,int>"),
    ("gone", "string"),
]
NEW = [
    ("ID", "bigint"),
    ("s", "struct<b:struct<x:double,y:date>,c:string>"),
    ("l", "array<struct<v:string,w:int>>"),
    ("m", "map<string,decimal(9,2)>"),
    ("a b", "boolean"),
]
ADDED = [
    "ALTER COLUMN `id` TYPE BIGINT",
    "ALTER COLUMN `s`.`b`.`x` TYPE DOUBLE",
    "ADD COLUMN `s`.`b`.`y` DATE",
    "ADD COLUMN `s`.`c` STRING",
    "ADD COLUMN `l`.`element`.`w` INT",
    "ADD COLUMN `a b` BOOLEAN",
]
FOLLOWED = [
    "DROP COLUMN `s`.`a` CASCADE",
    "ALTER COLUMN `l`.`element`.`v` TYPE STRING",
    "ALTER COLUMN `m`.`value` TYPE DECIMAL(9,2)",
    "DROP COLUMN `gone` CASCADE",
]


def test_a_table_gets_fields_and_wider_types_at_all_depths():
    assert [clause.text for clause in clauses(OLD, NEW, follows=False)] == ADDED


def test_a_table_that_follows_drops_fields_and_takes_all_types():
    found = clauses(OLD, NEW, follows=True)

    assert sorted(clause.text for clause in found) == sorted([*ADDED, *FOLLOWED])
    assert [clause.text for clause in found if clause.is_heavy] == FOLLOWED[1:3]


@pytest.mark.parametrize("follows", [True, False])
def test_a_table_that_has_all_of_it_is_left_alone(follows):
    assert clauses(NEW, NEW, follows=follows) == []
