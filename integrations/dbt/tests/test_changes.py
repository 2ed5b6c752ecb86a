"""Models whose shape changes, and what else dbt's own tests do not ask."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from dbt_common.exceptions import DbtRuntimeError

from tests.support.oracle import DuckDBOracle

MODEL = """
{{{{ config(materialized='incremental', incremental_strategy='{strategy}', unique_key='id',
            on_schema_change='{how}', heavy='{heavy}') }}}}
select {columns}
"""
SEED = """id,word,n
1,it's,9007199254740993
2,back\\slash,
3,,3
"""


class Project:
    """A project with one model, whose text changes between runs."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"m.sql": "select 1 as id"}

    @staticmethod
    def run(project: Any, columns: str, *more: str, ok: bool = True, **config: str) -> str:
        given = {"strategy": "merge", "how": "sync_all_columns", "heavy": "job"} | config
        return Project.run_text(project, MODEL.format(columns=columns, **given), *more, ok=ok)

    @staticmethod
    def run_text(project: Any, text: str, *more: str, ok: bool = True) -> str:
        Path(project.project_root, "models", "m.sql").write_text(text, encoding="utf-8")
        _, told = run_dbt_and_capture(["run", *more], expect_pass=ok)
        return told

    @staticmethod
    def rows(project: Any, columns: str = "*", name: str = "m") -> list[Any]:
        query = f"select {columns} from {project.test_schema}.{name} order by 1"
        return [tuple(row) for row in project.run_sql(query, fetch="all")]


class TestChanges(Project):
    def test_types_and_fields_follow_the_model(self, project, lake):
        self.run(
            project, "'1' as id, named_struct('a', 1) as s, 5 as n, 'x' as gone", "--full-refresh"
        )
        told = self.run(project, "2 as id, named_struct('b', 'q', 'a', 2L) as s, 6.5 as n")

        for clause in (
            "`id` TYPE INT",
            "`s`.`a` TYPE BIGINT",
            "ADD COLUMN `s`.`b` STRING",
            "DROP COLUMN `gone` CASCADE",
        ):
            assert clause in told
        found = self.rows(project, "id, s.a, s.b, n")
        assert found == [(1, 1, None, Decimal(5)), (2, 2, "q", Decimal("6.5"))]
        with DuckDBOracle(lake["catalog"]) as oracle:
            query = f"SELECT id, s.a, s.b, n FROM lake.{project.test_schema}.m ORDER BY id"
            assert oracle.sql(query) == found

    def test_new_fields_and_wider_types_are_appended_and_nothing_else(self, project):
        self.run(project, "1 as id, named_struct('a', 1) as s, 'x' as kept", "--full-refresh")
        new = "2L as id, named_struct('a', 2, 'b', 3) as s"
        told = self.run(project, new, strategy="append", how="append_new_columns")

        assert "ALTER COLUMN `id` TYPE BIGINT, ADD COLUMN `s`.`b` INT" in told
        assert self.rows(project, "id, s.b, kept") == [(1, None, "x"), (2, 3, None)]
        assert "ADD COLUMN" not in self.run(project, new, how="append_new_columns")

    def test_a_heavy_change_is_refused_where_that_is_asked_for(self, project):
        self.run(project, "1 as id, 'x' as w", "--full-refresh")
        told = self.run(project, "'2' as id, 'y' as w, 1 as more", ok=False, heavy="fail")

        assert "would have to be converted: ALTER COLUMN `id` TYPE STRING" in told
        assert self.rows(project) == [(1, "x")]
        told = self.run(project, "2 as id, 'y' as w", ok=False, heavy="maybe")
        assert "`heavy` must be job or fail, not 'maybe'" in told

    def test_a_value_that_cannot_be_converted_leaves_the_table_as_it_was(self, project):
        self.run(project, "'one' as id", "--full-refresh")
        told = self.run(project, "2 as id", ok=False)

        assert "'one'" in told
        assert self.rows(project) == [("one",)]

    def test_a_merge_changes_rows_of_its_keys_only(self, project):
        self.run(project, "id, 'old' as w from range(3)", "--full-refresh")
        self.run(project, "id, 'new' as w from range(2, 4)")

        assert self.rows(project) == [(0, "old"), (1, "old"), (2, "new"), (3, "new")]

    def test_an_unknown_strategy_is_refused(self, project):
        assert "Expected one of: append, merge" in self.run(
            project, "1 as id", ok=False, strategy="x"
        )


class TestPartitions(Project):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "m.sql": """
                {{ config(materialized='incremental', incremental_strategy='insert_overwrite',
                          partition_by=['day']) }}
                select id, day from values (1, '2026-01-01'), (2, '2026-01-02') as t(id, day)
                {% if is_incremental() %} where false union all select 9, '2026-01-02' {% endif %}
            """
        }

    def test_only_partitions_of_the_new_rows_are_replaced(self, project):
        run_dbt(["run"])
        run_dbt(["run"])

        assert self.rows(project) == [(1, "2026-01-01"), (9, "2026-01-02")]


class TestSeeds(Project):
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"words.csv": SEED}

    def test_texts_and_numbers_of_a_seed_are_what_they_were(self, project):
        for _ in range(2):
            run_dbt(["seed"])
            found = self.rows(project, "id, word, n", "words")
            assert found == [(1, "it's", 9007199254740993), (2, "back\\slash", None), (3, None, 3)]


class TestRefusals(Project):
    def test_grants_and_formats_are_refused_by_name(self, project):
        told = self.run(project, "1 as id {{ config(grants={'select': ['bob']}) }}", ok=False)
        assert "Shelduck has no grants" in told
        told = self.run(
            project, "1 as id {{ config(file_format='orc') }}", "--full-refresh", ok=False
        )
        assert "cannot have the file_format 'orc'" in told


class TestContracts(Project):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        schema = """
models:
  - name: m
    config: {materialized: MADE, contract: {enforced: true}}
    columns:
      - {name: id, data_type: int, constraints: [{type: not_null}]}
      - {name: w, data_type: string}
"""
        return {"m.sql": "select 1 as id, 'x' as w", "schema.yml": schema.replace("MADE", "table")}

    def test_types_are_compared_before_and_null_is_refused_after(self, project):
        self.run_text(project, "select 1 as id, 'x' as w", ok=True)
        assert "This model has an enforced contract that failed" in self.run_text(
            project, "select '1' as id, 'x' as w", ok=False
        )
        assert self.rows(project) == [(1, "x")]
        with pytest.raises(DbtRuntimeError, match="NULL"):
            project.run_sql(f"insert into {project.test_schema}.m values (null, 'y')")
        assert "NULL" in self.run_text(
            project, "select cast(null as int) as id, 'x' as w", ok=False
        )


class TestSnapshots(Project):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"m.sql": "select 1 as id, named_struct('a', 1) as s"}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {
            "history.sql": """
                {% snapshot history %}
                {{ config(unique_key='id', strategy='check', check_cols='all') }}
                select * from {{ ref('m') }}
                {% endsnapshot %}
            """
        }

    def test_a_snapshot_gets_fields_and_wider_types(self, project):
        run_dbt(["build"])
        Path(project.project_root, "models", "m.sql").write_text(
            "select 5000000000 as id, named_struct('a', 1, 'b', 2) as s, 'new' as w",
            encoding="utf-8",
        )
        run_dbt(["build"])

        found = self.rows(project, "id, s.b, w, dbt_valid_to is null", "history")
        assert found == [(1, None, None, True), (5000000000, 2, "new", True)]
