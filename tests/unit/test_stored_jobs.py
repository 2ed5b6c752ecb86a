"""What a job is to do as it is kept, letter by letter: see test_stored.py."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from shelduck.errors import NewerFormat
from shelduck.model.changes import modify
from shelduck.model.changes.constraining import AddConstraint, DropConstraint, ValidateConstraint
from shelduck.model.changes.definition import Position
from shelduck.model.changes.job import STORED_WORK, JobIndex, JobPace, JobState, JobWork, Undone
from shelduck.model.changes.modify import ModifyColumn, OrderColumns, RewriteOlderFiles, TableChange
from shelduck.model.changes.schema_change import (
    AddColumn,
    ChangeType,
    ChangeTypeBack,
    DropColumn,
    DuplicateKeys,
    MoveColumn,
    RenameColumn,
    SetComment,
    SetDefault,
    SetNullable,
)
from shelduck.model.changes.storing import AddIndex, DropIndex, SetEncoding
from shelduck.model.tables.column_storage import Encoding
from shelduck.model.tables.constraints import ConstraintKind
from shelduck.model.tables.keys import Aggregation
from shelduck.model.tables.partition import (
    PartitionBy,
    ResetPartitioning,
    ResetSorting,
    SetPartitioning,
    SetSorting,
    SortKey,
    Transform,
)
from shelduck.model.tables.properties import SetProperties, UnsetProperties
from shelduck.model.tables.rollup import Measure, MeasureSpec, RollupSpec
from shelduck.model.tables.row_expressions import NameUse, WrittenExpression
from shelduck.model.tables.schema import Default
from shelduck.model.tables.table_version import Conversion
from shelduck.model.text.stored import form_of
from shelduck.model.types.data_types import DataType, parse_type

INT = parse_type("int")
NESTED = parse_type("map<string, struct<x: decimal(9,2), y: array<int>>>")
# A clause, as it is kept, and as it was kept before there were versions.
CLAUSES = [
    (
        AddIndex("i", (("a",), ("s", "b")), if_not_exists=True),
        '{"is":"add_index","name":"i","columns":[["a"],["s","b"]],"if_not_exists":true}',
        None,
    ),
    (DropIndex("i"), '{"is":"drop_index","name":"i"}', None),
    (
        SetEncoding(("a",), Encoding.PLAIN),
        '{"is":"set_encoding","path":["a"],"encoding":"PLAIN"}',
        None,
    ),
    (
        ChangeType(("a",), parse_type("varchar(5)")),
        ('{"is":"change_type","path":["a"],"type":{"is":"text","name":"varchar","length":5}}'),
        '{"is":"ChangeType","path":["a"],"type":{"is":"Primitive","name":"varchar"}}',
    ),
    (
        ChangeType(("a",), INT, on_duplicate_keys=DuplicateKeys.KEEP_NEWEST),
        (
            '{"is":"change_type","path":["a"],"type":{"is":"primitive","name":"int32"},'
            '"on_duplicate_keys":"KEEP NEWEST"}'
        ),
        None,
    ),
    (
        AddColumn(("a",), INT),
        '{"is":"add_column","path":["a"],"type":{"is":"primitive","name":"int32"},"nullable":true}',
        (
            '{"is":"AddColumn","path":["a"],"type":{"is":"Primitive","name":"int32"},"default":null,'
            '"nullable":true,"comment":null,"position":null,"key":false,"aggregation":null,'
            '"if_not_exists":false,"rollup":null}'
        ),
    ),
    (
        AddColumn(
            ("s", "x y"),
            NESTED,
            Default("now()", literal=False),
            nullable=False,
            comment="c",
            position=Position("b"),
            key=True,
            aggregation=Aggregation.SUM,
            if_not_exists=True,
            rollup="r",
        ),
        (
            '{"is":"add_column","path":["s","x y"],"type":{"is":"map","key":{"is":"primitive",'
            '"name":"varchar"},"value":{"is":"struct","members":[{"name":"x","type":{"is":"decimal",'
            '"precision":9,"scale":2},"nullable":true},{"name":"y","type":{"is":"list","element":'
            '{"is":"primitive","name":"int32"}},"nullable":true}]}},"default":{"text":"now()"},'
            '"comment":"c","position":{"after":"b"},"key":true,"aggregation":"SUM",'
            '"if_not_exists":true,"rollup":"r"}'
        ),
        (
            '{"is":"AddColumn","path":["s","x y"],"type":{"is":"Map","key":{"is":"Primitive",'
            '"name":"varchar"},"value":{"is":"Struct","members":[{"is":"Member","name":"x","type":'
            '{"is":"Decimal","precision":9,"scale":2},"nullable":true},{"is":"Member","name":"y",'
            '"type":{"is":"List","element":{"is":"Primitive","name":"int32"}},"nullable":true}]}},'
            '"default":{"is":"Default","text":"now()","literal":false},"nullable":false,'
            '"comment":"c","position":{"is":"Position","after":"b"},"key":true,"aggregation":'
            '{"is":"Aggregation","value":"SUM"},"if_not_exists":true,"rollup":"r"}'
        ),
    ),
    (
        DropColumn(("a",), if_exists=True, rollup="r"),
        '{"is":"drop_column","path":["a"],"if_exists":true,"rollup":"r"}',
        '{"is":"DropColumn","path":["a"],"if_exists":true,"rollup":"r"}',
    ),
    (
        RenameColumn(("a", "b"), "c"),
        '{"is":"rename_column","path":["a","b"],"new_name":"c"}',
        '{"is":"RenameColumn","path":["a","b"],"new_name":"c"}',
    ),
    (
        ChangeType(("a",), INT, "a + 1", on_error_null=True),
        (
            '{"is":"change_type","path":["a"],"type":{"is":"primitive","name":"int32"},'
            '"using":"a + 1","on_error_null":true}'
        ),
        (
            '{"is":"ChangeType","path":["a"],"type":{"is":"Primitive","name":"int32"},'
            '"using":"a + 1","on_error_null":true}'
        ),
    ),
    (
        ChangeTypeBack(("a",), INT, "a + 1", on_error_null=True),
        (
            '{"is":"change_type_back","path":["a"],"type":{"is":"primitive","name":"int32"},'
            '"using":"a + 1","on_error_null":true}'
        ),
        None,
    ),
    (
        SetDefault(("a",), Default("7")),
        '{"is":"set_default","path":["a"],"default":{"text":"7","literal":true}}',
        '{"is":"SetDefault","path":["a"],"default":{"is":"Default","text":"7","literal":true}}',
    ),
    (
        SetDefault(("a",), None),
        '{"is":"set_default","path":["a"]}',
        '{"is":"SetDefault","path":["a"],"default":null}',
    ),
    (
        SetNullable(("a",), nullable=False),
        '{"is":"set_nullable","path":["a"]}',
        '{"is":"SetNullable","path":["a"],"nullable":false}',
    ),
    (
        MoveColumn(("a",), Position()),
        '{"is":"move_column","path":["a"],"position":{}}',
        '{"is":"MoveColumn","path":["a"],"position":{"is":"Position","after":null}}',
    ),
    (
        SetComment((), "c"),
        '{"is":"set_comment","comment":"c"}',
        '{"is":"SetComment","path":[],"comment":"c"}',
    ),
    (
        ModifyColumn(("a",), INT, position=Position(), aggregation=Aggregation.MAX, rollup="r"),
        (
            '{"is":"modify_column","path":["a"],"type":{"is":"primitive","name":"int32"},'
            '"nullable":true,"position":{},"aggregation":"MAX","rollup":"r"}'
        ),
        (
            '{"is":"ModifyColumn","path":["a"],"type":{"is":"Primitive","name":"int32"},'
            '"default":null,"nullable":true,"comment":null,"position":{"is":"Position","after":null},'
            '"key":false,"aggregation":{"is":"Aggregation","value":"MAX"},"rollup":"r"}'
        ),
    ),
    (
        OrderColumns(("a", "b"), "r"),
        '{"is":"order_columns","names":["a","b"],"rollup":"r"}',
        '{"is":"OrderColumns","names":["a","b"],"rollup":"r"}',
    ),
    (
        SetPartitioning((PartitionBy("a"), PartitionBy("b", Transform("bucket", 4)))),
        (
            '{"is":"set_partitioning","keys":[{"column":"a","transform":{"kind":"identity",'
            '"buckets":0}},{"column":"b","transform":{"kind":"bucket","buckets":4}}]}'
        ),
        (
            '{"is":"SetPartitioning","keys":[{"is":"PartitionBy","column":"a","transform":'
            '{"is":"Transform","kind":"identity","buckets":0}},{"is":"PartitionBy","column":"b",'
            '"transform":{"is":"Transform","kind":"bucket","buckets":4}}]}'
        ),
    ),
    (ResetPartitioning(), '{"is":"reset_partitioning"}', '{"is":"ResetPartitioning"}'),
    (
        SetSorting((SortKey("a"), SortKey("b + 1", descending=True, nulls_first=True))),
        (
            '{"is":"set_sorting","keys":[{"expression":"a"},{"expression":"b + 1",'
            '"descending":true,"nulls_first":true}]}'
        ),
        (
            '{"is":"SetSorting","keys":[{"is":"SortKey","expression":"a","descending":false,'
            '"nulls_first":false},{"is":"SortKey","expression":"b + 1","descending":true,'
            '"nulls_first":true}]}'
        ),
    ),
    (ResetSorting(), '{"is":"reset_sorting"}', '{"is":"ResetSorting"}'),
    (
        SetProperties((("k", "v"),)),
        '{"is":"set_properties","values":[["k","v"]]}',
        '{"is":"SetProperties","values":[["k","v"]]}',
    ),
    (
        UnsetProperties(("k",), if_exists=True),
        '{"is":"unset_properties","keys":["k"],"if_exists":true}',
        '{"is":"UnsetProperties","keys":["k"],"if_exists":true}',
    ),
    (
        AddColumn(("a",), INT, Default("now()", literal=False), initial=Default("5")),
        (
            '{"is":"add_column","path":["a"],"type":{"is":"primitive","name":"int32"},'
            '"default":{"text":"now()"},"nullable":true,"initial":{"text":"5","literal":true}}'
        ),
        None,
    ),
    (
        AddConstraint(
            ConstraintKind.CHECK,
            "c",
            WrittenExpression("s.a > 0", (NameUse(0, ("s", "a"), (1, 3)),)),
        ),
        (
            '{"is":"add_constraint","kind":"CHECK","name":"c","expression":{"text":"s.a > 0",'
            '"names":[{"start":0,"path":["s","a"],"ends":[1,3]}]},"validates":true}'
        ),
        None,
    ),
    (
        AddConstraint(
            *(ConstraintKind.FOREIGN_KEY, None, None, ("a",), "u (b)"), relies=True, validates=False
        ),
        (
            '{"is":"add_constraint","kind":"FOREIGN KEY","columns":["a"],"references":"u (b)",'
            '"relies":true}'
        ),
        None,
    ),
    (
        DropConstraint("c", if_exists=True),
        '{"is":"drop_constraint","name":"c","if_exists":true}',
        None,
    ),
    (ValidateConstraint("c"), '{"is":"validate_constraint","name":"c"}', None),
    (RewriteOlderFiles(), '{"is":"rewrite"}', '{"is":"RewriteOlderFiles"}'),
]
WORKS = [
    (JobWork(), '{"version":1}', '{"is":"JobWork"}'),
    (
        JobWork(
            conversions=(
                Conversion(2, 3, "varchar", "INT"),
                Conversion(
                    *(4, 5, "varchar", "INT", "b::int"),
                    on_error_null=True,
                    clause=1,
                    parts=(4,),
                    named=((("s", "a"), 5),),
                    may_be_null=True,
                ),
            ),
            rewrites=True,
            refolds=True,
            remakes=True,
            indexes=(JobIndex("t", 1),),
        ),
        (
            '{"version":1,"conversions":[{"column_id":2,"shadow_id":3,"source":"varchar","target":'
            '"INT","clause":0},{"column_id":4,"shadow_id":5,"source":"varchar","target":"INT",'
            '"using":"b::int","on_error_null":true,"clause":1,"parts":[4],"named":[[["s","a"],5]],'
            '"may_be_null":true}],"rewrites":true,"refolds":true,"remakes":true,"indexes":'
            '[{"name":"t","table_id":1}]}'
        ),
        (
            '{"is":"JobWork","conversions":[{"is":"Conversion","column_id":2,"shadow_id":3,"source":'
            '"varchar","target":"INT","using":null,"on_error_null":false,"clause":0,"parts":[],'
            '"named":[],"may_be_null":false},{"is":"Conversion","column_id":4,"shadow_id":5,"source":'
            '"varchar","target":"INT","using":"b::int","on_error_null":true,"clause":1,"parts":[4],'
            '"named":[[["s","a"],5]],"may_be_null":true}],"clauses":[],"rewrites":true,"rollups":[],'
            '"refolds":true,"remakes":true,"indexes":[{"is":"JobIndex","name":"t","table_id":1}]}'
        ),
    ),
    (
        JobWork(
            conversions=(
                Conversion(*(7, 2, "int32", "STRING"), parts=(7,), shadow_parts=(2,), recalls=True),
            ),
            undoes=Undone(1, 5, "1 of 1 file(s) hold the old values"),
        ),
        (
            '{"version":1,"conversions":[{"column_id":7,"shadow_id":2,"source":"int32","target":'
            '"STRING","clause":0,"parts":[7],"shadow_parts":[2],"recalls":true}],"undoes":{"job":1,'
            '"published":5,"told":"1 of 1 file(s) hold the old values"}}'
        ),
        None,
    ),
    (
        JobWork(
            rollups=(
                RollupSpec("r", ("a",)),
                RollupSpec(
                    *("r2", ("a",)),
                    (MeasureSpec("s", Measure.SUM, "v"), MeasureSpec("c", Measure.COUNT)),
                    ("a",),
                ),
            )
        ),
        (
            '{"version":1,"rollups":[{"name":"r","columns":["a"]},{"name":"r2","columns":["a"],'
            '"measures":[{"name":"s","measure":"SUM","column":"v"},{"name":"c","measure":"COUNT"}],'
            '"duplicate_keys":["a"]}]}'
        ),
        (
            '{"is":"JobWork","conversions":[],"clauses":[],"rewrites":false,"rollups":[{"is":'
            '"RollupSpec","name":"r","columns":["a"],"measures":[],"duplicate_keys":null},{"is":'
            '"RollupSpec","name":"r2","columns":["a"],"measures":[{"is":"MeasureSpec","name":"s",'
            '"measure":{"is":"Measure","value":"SUM"},"column":"v"},{"is":"MeasureSpec","name":"c",'
            '"measure":{"is":"Measure","value":"COUNT"},"column":null}],"duplicate_keys":["a"]}],'
            '"refolds":false,"remakes":false,"indexes":[]}'
        ),
    ),
    *(
        (
            JobWork(clauses=(clause,)),
            f'{{"version":1,"clauses":[{text}]}}',
            before and f'{{"is":"JobWork","conversions":[],"clauses":[{before}],"rewrites":false}}',
        )
        for clause, text, before in CLAUSES
    ),
]


@pytest.mark.parametrize(("work", "text", "before"), WORKS)
def test_what_a_job_is_to_do(work, text, before):
    assert STORED_WORK.write(work) == text
    assert STORED_WORK.read(text, "job 1") == work
    # A clause that came after texts had versions has no text of before.
    assert before is None or STORED_WORK.read(before, "job 1") == work


def test_the_pace_of_a_job():
    slow = JobWork(rewrites=True, pace=JobPace(tasks=2, bytes_per_second=50_000_000))
    text = '{"version":1,"rewrites":true,"pace":{"tasks":2,"bytes_per_second":50000000}}'

    assert STORED_WORK.write(slow) == text
    assert STORED_WORK.read(text, "job 1") == slow
    assert STORED_WORK.read('{"version":1,"pace":{"tasks":3}}', "job 1").pace == JobPace(tasks=3)


def test_every_clause_and_type_has_a_name():
    assert {type(clause) for clause, _, _ in CLAUSES} == set(get_args(TableChange))
    assert set(modify.CLAUSES) == set(get_args(TableChange))
    names = {"primitive", "decimal", "struct", "list", "map"}
    written = form_of(DataType).write(NESTED)
    assert len(names) == len(get_args(DataType))
    assert all(f'"is": "{name}"' in json.dumps(written) for name in names)


def test_what_a_newer_writer_adds_is_passed_over():
    text = '{"version":1,"rewrites":true,"clauses":[{"is":"rewrite","fast":true}],"priority":3}'
    wanted = JobWork(clauses=(RewriteOlderFiles(),), rewrites=True)
    assert STORED_WORK.read(text, "job 1") == wanted


def test_the_states_of_jobs():
    assert [state.value for state in JobState] == [
        *("PENDING", "WAITING_TXN", "RUNNING", "PAUSED", "FINISHED", "CANCELLED")
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"version":2,"clauses":7}', "(format version 2, supported: 1)"),
        (
            '{"version":1,"clauses":[{"is":"explode"}]}',
            "('explode' is not one of add_column, drop_",
        ),
    ],
)
def test_what_only_a_newer_shelduck_can_do_is_said_of_its_job(text, told):
    with pytest.raises(NewerFormat) as caught:
        STORED_WORK.read(text, "job 3 on main.t")

    made = "the work of job 3 on main.t was made by a newer Shelduck; upgrade "
    assert str(caught.value).startswith(made + told)
