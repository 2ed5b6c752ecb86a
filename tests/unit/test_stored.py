"""Every text that outlives a process, letter by letter: a change here needs another version of it.

What stands under ``MODELS`` and the like is in catalogs of people: do not correct it to what the
code writes (docs/decisions/0034).
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from shelduck.errors import CorruptLake, NewerFormat
from shelduck.formats.delta.import_verbs import _Import
from shelduck.model.tables import properties
from shelduck.model.tables.keys import KEYS, Aggregation, KeyModel, TableKeys, table_keys, with_keys
from shelduck.model.tables.properties import widens_by_itself
from shelduck.model.tables.rollup import (
    ROLLUP,
    ROLLUPS,
    Measure,
    Rollup,
    RollupColumn,
    rollup_names,
    rollup_of,
    with_rollup,
    with_rollup_names,
)
from shelduck.model.tables.view import SPARK_SQL
from shelduck.model.text.stored import NUMBER, TEXT, Stored, each, form_of, record
from shelduck.model.types.data_types import Primitive
from tests.support.scans import holding

MODELS = [
    (
        TableKeys(KeyModel.UNIQUE, (1, 2), sequence=4, distributed_by=(1,)),
        '{"version":1,"model":"UNIQUE","columns":[1,2],"sequence":4,"distributed_by":[1]}',
        (
            '{"is":"TableKeys","model":{"is":"KeyModel","value":"UNIQUE"},"columns":[1,2],'
            '"aggregations":[],"sequence":4,"distributed_by":[1]}'
        ),
    ),
    (
        TableKeys(KeyModel.DUPLICATE, (1,)),
        '{"version":1,"model":"DUPLICATE","columns":[1]}',
        (
            '{"is":"TableKeys","model":{"is":"KeyModel","value":"DUPLICATE"},"columns":[1],'
            '"aggregations":[],"sequence":null,"distributed_by":[]}'
        ),
    ),
    (
        TableKeys(
            *(KeyModel.AGGREGATE, (1,)),
            tuple((number, how) for number, how in enumerate(Aggregation, 2)),
        ),
        (
            '{"version":1,"model":"AGGREGATE","columns":[1],"aggregations":[[2,"SUM"],[3,"MIN"],'
            '[4,"MAX"],[5,"REPLACE"],[6,"REPLACE_IF_NOT_NULL"]]}'
        ),
        (
            '{"is":"TableKeys","model":{"is":"KeyModel","value":"AGGREGATE"},"columns":[1],'
            '"aggregations":[[2,{"is":"Aggregation","value":"SUM"}],[3,{"is":"Aggregation","value":'
            '"MIN"}],[4,{"is":"Aggregation","value":"MAX"}],[5,{"is":"Aggregation","value":'
            '"REPLACE"}],[6,{"is":"Aggregation","value":"REPLACE_IF_NOT_NULL"}]],"sequence":null,'
            '"distributed_by":[]}'
        ),
    ),
]
HELD = (
    Rollup(
        *("u", "r"),
        (
            RollupColumn(1, 3),
            *(RollupColumn(number, 3, how) for number, how in enumerate(Measure, 2)),
            RollupColumn(9, None, Measure.COUNT),
        ),
    ),
    (
        '{"version":1,"base":"u","name":"r","columns":[{"id":1,"source":3},{"id":2,"source":3,'
        '"measure":"SUM"},{"id":3,"source":3,"measure":"MIN"},{"id":4,"source":3,"measure":"MAX"},'
        '{"id":5,"source":3,"measure":"COUNT"},{"id":6,"source":3,"measure":"REPLACE"},{"id":7,'
        '"source":3,"measure":"REPLACE_IF_NOT_NULL"},{"id":9,"measure":"COUNT"}]}'
    ),
)


@pytest.mark.parametrize(("keys", "text", "before"), MODELS)
def test_a_key_model(keys, text, before):
    assert with_keys({}, keys) == {"shelduck.keys": text}
    assert table_keys(holding({KEYS: text})) == keys
    assert table_keys(holding({KEYS: before})) == keys


def test_a_rollup_and_the_list_of_rollups():
    rollup, text = HELD
    assert with_rollup({}, rollup) == {"shelduck.rollup": text}
    assert rollup_of(holding({ROLLUP: text})) == rollup
    before = (
        '{"is":"Rollup","base":"u","name":"r","columns":[{"is":"RollupColumn","id":1,"source":3,'
        '"measure":null},{"is":"RollupColumn","id":9,"source":null,"measure":{"is":"Measure",'
        '"value":"COUNT"}}]}'
    )
    held = (RollupColumn(1, 3), RollupColumn(9, None, Measure.COUNT))
    assert rollup_of(holding({ROLLUP: before})) == Rollup("u", "r", held)

    listed = {"shelduck.rollups": '{"version":1,"names":["r","b c"]}'}
    assert with_rollup_names({}, ("r", "b c")) == listed
    assert rollup_names(holding(listed)) == ("r", "b c")
    assert rollup_names(holding({ROLLUPS: '["r","b c"]'})) == ("r", "b c")


def test_other_words_that_are_kept():
    assert SPARK_SQL == "shelduck.spark_sql"
    series = _Import(None, None, "/d")._series(holding({}))
    assert series == "import of Delta table /d into 00000000-0000-0000-0000-000000000001"
    assert properties.FORGOTTEN_TYPES == "shelduck.typeChangesForgottenAt"
    assert properties._VALUES == {
        "delta.enableTypeWidening": ("true", "false"),
        "delta.feature.typeWidening": ("supported",),
        "shelduck.allowAutomaticWidening": ("always", "same_family", "never"),
        "shelduck.metadataNarrowing": ("true", "false"),
    }


def test_what_a_newer_writer_adds_stays_where_a_text_is_written_again():
    text = (
        '{"version":1,"base":"u","name":"r","columns":[{"id":1,"source":3,"since":{"is":"x"}},'
        '{"id":2,"source":4,"since":7}],"where":"a > 1"}'
    )
    found = rollup_of(holding({ROLLUP: text}))
    assert found == Rollup("u", "r", (RollupColumn(1, 3), RollupColumn(2, 4)))

    changed = Rollup("u", "r", (RollupColumn(9, 8), RollupColumn(1, 5, Measure.MAX)))
    assert with_rollup({ROLLUP: text}, changed)[ROLLUP] == (
        '{"version":1,"base":"u","name":"r","columns":[{"id":9,"source":8},'
        '{"id":1,"source":5,"measure":"MAX","since":{"is":"x"}}],"where":"a > 1"}'
    )
    listed = {ROLLUPS: '{"version":1,"names":["r"],"by":"me"}'}
    assert with_rollup_names(listed, ("r", "q")) == {
        ROLLUPS: '{"version":1,"names":["r","q"],"by":"me"}'
    }
    keys = {KEYS: '{"version":1,"model":"UNIQUE","columns":[1],"sequence":4,"hidden":{"a":[1]}}'}
    assert with_keys(keys, TableKeys(KeyModel.UNIQUE, (2,))) == {
        KEYS: '{"version":1,"model":"UNIQUE","columns":[2],"hidden":{"a":[1]}}'
    }


@pytest.mark.parametrize(
    "text",
    [
        '{"is":"TableKeys","model":{"is":"KeyModel","value":"UNIQUE"},"columns":[1]}',
        '{"version":1,"columns":[1],"model":"UNIQUE","hidden":true}',
    ],
)
def test_a_text_that_means_the_same_stays_as_it_is(text):
    assert with_keys({KEYS: text}, TableKeys(KeyModel.UNIQUE, (1,))) == {KEYS: text}


def test_a_text_of_before_there_were_versions_becomes_one_of_today_when_it_changes():
    _, _, before = MODELS[0]
    assert with_keys({KEYS: before}, TableKeys(KeyModel.UNIQUE, (7,))) == {
        KEYS: '{"version":1,"model":"UNIQUE","columns":[7]}'
    }
    assert with_rollup_names({ROLLUPS: '["r"]'}, ("q",)) == {ROLLUPS: '{"version":1,"names":["q"]}'}


@pytest.mark.parametrize(
    ("property_", "text", "told"),
    [
        (KEYS, '{"version":2}', "key model of @ (format version 2, supported: 1)"),
        (
            KEYS,
            '{"version":1,"model":"LATEST","columns":[1]}',
            "key model of @ ('LATEST' is not one of DUPLICATE, UNIQUE, AGGREGATE)",
        ),
        (
            ROLLUP,
            '{"version":1,"base":"u","name":"r","columns":[{"id":1,"measure":"BITMAP"}]}',
            (
                "rollup definition of @ ('BITMAP' is not one of SUM, MIN, MAX, COUNT, REPLACE,"
                " REPLACE_IF_NOT_NULL)"
            ),
        ),
        (ROLLUPS, '{"version":9,"names":"?"}', "rollup list of @ (format version 9"),
    ],
)
def test_what_only_a_newer_shelduck_knows_is_said_of_its_table(property_, text, told):
    read = {KEYS: table_keys, ROLLUP: rollup_of, ROLLUPS: rollup_names}[property_]
    with pytest.raises(NewerFormat) as caught:
        read(holding({property_: text}))

    wanted = told.replace("@", "table main.t was made by a newer Shelduck; upgrade")
    assert str(caught.value).startswith(f"the {wanted}")


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "7", '"a"', "null", '{"version":"1"}', '{"version":true}'),
        '{"version":1}',
        '{"version":1,"model":"UNIQUE"',
        '{"version":1,"model":"UNIQUE","columns":1}',
        '{"version":1,"model":"UNIQUE","columns":["1"]}',
        '{"version":1,"model":7,"columns":[1]}',
        '{"version":1,"model":"AGGREGATE","columns":[1],"aggregations":[[1]]}',
        '{"is":["TableKeys"],"model":"UNIQUE"}',
    ],
)
def test_a_broken_text_is_said_of_its_table(text):
    with pytest.raises(CorruptLake, match=r"^cannot decode the key model of table main\.t: '"):
        table_keys(holding({KEYS: text}))


@dataclass(frozen=True)
class Renamed:
    """What Python calls otherwise than the text does."""

    number: int
    parts: tuple[str, ...] = ("one",)
    is_old: bool = True


def test_python_may_call_a_part_something_else():
    stored = Stored(
        "thing",
        record(
            Renamed,
            id=NUMBER.called("number"),
            kids=each(TEXT).called("parts"),
            old=form_of(bool).called("is_old"),
        ),
    )
    assert stored.write(Renamed(7)) == '{"version":1,"id":7,"kids":["one"],"old":true}'
    assert stored.read('{"version":1,"id":7}', "x") == Renamed(7, (), is_old=False)
    assert stored.write(Renamed(7, (), is_old=False)) == '{"version":1,"id":7}'


def test_a_version_that_goes_up_is_written():
    stored = Stored("thing", record(Renamed, id=NUMBER.called("number")), version=3)

    assert stored.read('{"version":1,"id":7}', "x").number == 7
    assert stored.write(Renamed(8, (), is_old=False), '{"version":1,"id":7,"more":1}') == (
        '{"version":3,"id":8,"more":1}'
    )


def test_properties_of_a_later_version_are_passed_over_only_as_hints():
    known = {
        "owner": "me",
        "shelduck.allowAutomaticWidening": "never",
        "shelduck.typeChangesForgottenAt": "7",
        "shelduck.hint.size": "?",
        KEYS: MODELS[0][1],
    }
    properties.require_known(holding(known))
    for key in ("shelduck.checks", "shelduck.hints", "shelduck."):
        with pytest.raises(NewerFormat) as caught:
            properties.require_known(holding(known | {key: "x"}))
        assert str(caught.value) == (
            f"property {key} of table main.t was made by a newer Shelduck; upgrade"
        )
    for key in (KEYS, ROLLUP, ROLLUPS):
        with pytest.raises(NewerFormat):
            properties.require_known(holding(known | {key: '{"version":2}'}))


def test_a_mode_of_widening_that_is_not_known_widens_nothing():
    mode = {"shelduck.allowAutomaticWidening": "on_sundays"}
    assert widens_by_itself({}, Primitive("int32"), Primitive("int64"))
    assert not widens_by_itself(mode, Primitive("int32"), Primitive("int64"))
