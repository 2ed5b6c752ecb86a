import pytest

from shelduck.errors import Unsupported
from shelduck.formats.report import Exported, ExportReport, FileRewrite, Loss

LOSS = Loss("column 'u'", "uuid is shown as text")
FILE = FileRewrite("/lake/a.parquet", 2048, ("column 'c' is int32 in the file",), 7)


def test_a_table_with_losses_only_is_ready_and_names_them():
    report = ExportReport("Iceberg", "main.t", 3, losses=(LOSS,))

    assert report.is_ready
    report.require_ready()
    assert str(report).splitlines() == [
        "main.t at snapshot 3 is ready for Iceberg",
        "readers of Iceberg will not see, or see differently:",
        "  - column 'u': uuid is shown as text",
    ]


def test_files_to_write_anew_are_listed_with_the_remedy():
    report = ExportReport("Iceberg", "main.t", 3, rewrites=(FILE,), inlined_rows=2)

    with pytest.raises(Unsupported) as refused:
        report.require_ready()
    assert str(refused.value).splitlines() == [
        "main.t at snapshot 3 is not ready for Iceberg",
        "1 file(s) (2.0 kB) must be rewritten first:",
        "  - file 7, /lake/a.parquet (2.0 kB): column 'c' is int32 in the file",
        "2 row(s) are in the catalog and must be flushed first",
        (
            "export with rewrite=True, or run table.flush_inlined_data() and table.rewrite([7])"
            " and export again"
        ),
    ]


def test_rows_in_the_catalog_alone_stand_in_the_way():
    report = ExportReport("Iceberg", "main.t", 3, inlined_rows=1)

    assert not report.is_ready
    assert "run table.flush_inlined_data() and export again" in str(report)


def test_a_long_list_is_cut_and_says_so():
    files = tuple(FileRewrite(f"/{n}", 1, ("old",), n) for n in range(30))
    lines = str(ExportReport("Iceberg", "main.t", 3, rewrites=files)).splitlines()

    assert "  - and 10 more" in lines
    assert lines[-1].endswith("19, …]) and export again")


def test_an_export_says_where_it_is_and_that_something_was_lost():
    report = ExportReport("Iceberg", "main.t", 3, losses=(LOSS,))

    assert str(Exported("/x/v1.metadata.json", 3, 4, report)) == (
        "main.t at snapshot 3: 4 file(s) in /x/v1.metadata.json; 1 loss(es) reported"
    )
