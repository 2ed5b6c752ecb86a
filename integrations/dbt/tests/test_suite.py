"""dbt's own tests of adapters. A list names those that do not run here, and says why."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import dbt.tests.adapter
import pytest
from dbt.tests.adapter.basic.expected_catalog import base_expected_catalog, no_stats
from dbt.tests.adapter.basic.test_docs_generate import BaseDocsGenerate
from dbt.tests.adapter.persist_docs.test_persist_docs import BasePersistDocs
from dbt.tests.util import run_dbt

if TYPE_CHECKING:
    from collections.abc import Iterator

# Why tests of these classes do not run here; of some, a class below says it in Spark's words.
NOT_HERE = {
    "Shelduck has no grants; test_changes.py has the refusal": """
        TestIncrementalGrants TestInvalidGrants TestModelGrants TestSeedGrants
        TestSnapshotGrants""",
    "its models, seeds or messages are in PostgreSQL's words": """
        TestAfterRunHooks TestAliases TestConstraintQuotedColumn TestCurrentTimestamp
        TestCurrentTimestamps TestEmptyModelsArentRun TestEphemeralMulti TestEphemeralNested
        TestGetIntervalsBetween TestHookRefs TestIncrementalConstraintsColumnsEqual
        TestIncrementalConstraintsRollback TestIncrementalConstraintsRuntimeDdlEnforcement
        TestIncrementalContractSqlHeader TestModelConstraintsRuntimeEnforcement
        TestPostgresColumnTypes TestPostgresUnitTestingTypes TestPrePostModelHooks
        TestPrePostModelHooksInConfig TestPrePostModelHooksInConfigKwargs
        TestPrePostModelHooksInConfigWithCount TestPrePostModelHooksUnderscores TestPrePostRunHooks
        TestSameAliasDifferentDatabases TestSameAliasDifferentSchemas TestSeedWithWrongDelimiter
        TestShowDoesNotHandleDoubleLimit TestSimpleSeedColumnOverride
        TestTableConstraintsColumnsEqual TestTableConstraintsRollback
        TestTableConstraintsRuntimeDdlEnforcement TestTableContractSqlHeader
        TestViewConstraintsColumnsEqual TestDocsGenReferences TestDocsGenerate""",
    "dbt on Spark does not quote names, so they have no dots": "TestSeedSpecificFormats",
    "relations of Spark have no database": """
        TestCachingLowerCaseModel TestCachingSelectedSchemaOnly TestCachingUppercaseModel
        TestNoPopulateCache TestSimpleCopyUppercase""",
    "merge does what delete+insert is for": """
        TestIncrementalPredicatesDeleteInsert TestPredicatesDeleteInsert""",
    "a view stays when its table is replaced": "TestBasicSeedTests TestSeedConfigFullRefreshOn",
    "a timestamp does not go into a column of dates by itself": "TestSnapshot",
    "numbers of a seed are BIGINT and DOUBLE": "TestTypeFloat TestTypeInt",
    "dbt on Spark lists without an order": "TestListagg",
    "Spark has no materialized views": "TestSimpleCopyBase",
    "DuckLake keeps no comments of the columns of views": "TestPersistDocs",
    "it reads a file that the package does not have": "TestSimpleSeedWithBOM",
}
LEFT_OUT = {name for names in NOT_HERE.values() for name in names.split()}


def found() -> Iterator[tuple[str, type]]:
    """Return the test classes of dbt's package with a name for each."""
    root = Path(dbt.tests.adapter.__path__[0])
    for path in sorted(root.rglob("test_*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        module = importlib.import_module(".".join((dbt.tests.adapter.__name__, *parts)))
        for name, known in vars(module).items():
            is_own = isinstance(known, type) and known.__module__ == module.__name__
            if is_own and name.startswith("Test") and name not in LEFT_OUT:
                yield name, known


for _name, _known in found():
    # Two modules may have a class of the same name.
    _place = _known.__module__.removeprefix(f"{dbt.tests.adapter.__name__}.").replace(".", "_")
    globals()[_name if _name not in globals() else f"{_name}_{_place}"] = _known


class TestDocumentation(BaseDocsGenerate):
    """Columns have Spark's types, and nobody owns a table."""

    @pytest.fixture(scope="class")
    def expected_catalog(self, project):
        return base_expected_catalog(
            project,
            role=None,
            id_type="bigint",
            text_type="string",
            time_type="timestamp",
            view_type="view",
            table_type="table",
            model_stats=no_stats(),
        )


class TestComments(BasePersistDocs):
    """Views have a comment, and their columns have none."""

    def test_has_comments_pglike(self, project):
        run_dbt(["docs", "generate"])
        catalog = json.loads(Path("target/catalog.json").read_text(encoding="utf-8"))
        nodes = catalog["nodes"]
        self._assert_has_table_comments(nodes["model.test.table_model"])
        self._assert_has_view_comments(nodes["model.test.view_model"], has_column_comments=False)
        no_docs = nodes["model.test.no_docs_model"]
        self._assert_has_view_comments(no_docs, has_node_comments=False, has_column_comments=False)


def test_what_is_left_out_exists():
    """A class that dbt has renamed or dropped must not stay on the list."""
    root = Path(dbt.tests.adapter.__path__[0])
    text = "".join(path.read_text(encoding="utf-8") for path in root.rglob("test_*.py"))
    assert [name for name in sorted(LEFT_OUT) if f"class {name}(" not in text] == []
