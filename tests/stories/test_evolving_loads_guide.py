"""The guide to evolving loads, executed; what it prints is what it says."""

from __future__ import annotations

from pathlib import Path

from tests.stories.test_readme import python_blocks
from tests.support.lakes import rows
from tests.support.oracle import DuckDBOracle

GUIDE = Path(__file__).parents[2] / "docs/guides/evolving-loads.md"


def test_the_code_of_the_guide_runs_and_prints_what_it_says(tmp_path, monkeypatch, spark, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile("\n".join(python_blocks(GUIDE.read_text())), str(GUIDE), "exec"), names)

    told = capsys.readouterr().out
    for line in (
        "id int64\ndevice struct<os: varchar, version: int32>\ncountry varchar\n",
        "ALTER TABLE main.events ALTER COLUMN id TYPE STRING (heavy, 2 file(s) with 2 row(s): ",
        '|AT     |{"id":"E-7","device":{"build":"b1"}}|',
        "id of main.events was INT in snapshot 2, which does not hold 5000000000",
        "CREATE VIEW main.events_v1 AS SCHEMA VERSION 2 OF main.events",
    ):
        assert line in told
    lake = names["lake"]
    assert lake.sql("SELECT * FROM events_v1").dtypes == [
        ("id", "int"),
        ("device", "struct<os:string>"),
    ]
    columns = "id, land, day, score, _rescued"
    wanted = [(8, None, None, None, None), (10, None, None, 1.5, None)]
    assert rows(lake.sql(f"SELECT {columns} FROM events WHERE id IN (8, 10) ORDER BY id")) == wanted
    lake.close()
    with DuckDBOracle(f"sqlite:///{tmp_path}/loads.db") as oracle:
        found = oracle.sql(f"SELECT {columns} FROM events WHERE id IN (8, 10) ORDER BY id")
    assert found == wanted
