"""Laws of schema as code: what was pulled differs in nothing, and any file can be reached."""

from __future__ import annotations

import itertools
import random

import pytest

import shelduck
from shelduck.model.text.quoting import quote_name, quote_text

TYPES = {
    "INT": ("7", "-1"),
    "BIGINT": ("7", "5000000000"),
    "DOUBLE": ("0.5", "-1e300"),
    "DECIMAL(9,2)": ("1.50", "0"),
    "STRING": ("'x'", "'it''s -- id: 9'"),
    "VARCHAR(20)": ("'x'",),
    "DATE": ("'2020-01-01'",),
    "TIMESTAMP": ("'2020-01-01 12:00:00+00:00'",),
    "BOOLEAN": ("true",),
    "BINARY": (),
    "ARRAY<STRING>": (),
    "STRUCT<a: INT, b: STRING>": (),
    "MAP<STRING, ARRAY<INT>>": (),
}
WIDER = {"INT": "BIGINT", "STRUCT<a: INT, b: STRING>": "STRUCT<a: BIGINT, b: STRING, c: DATE>"}
NAMES = ["id", "Name", "a b", "select", "größe", "x.y", "c`d", "--", "day", "v", "w", "long_name"]
COMMENTS = [None, "plain", "it's; -- id: 4", "two\nlines"]


class Drawn:
    """One column of a table: its id once it has one."""

    def __init__(self, chance: random.Random, name: str) -> None:
        self.name = name
        self.type = chance.choice([*TYPES])
        self.default = chance.choice([None, *TYPES[self.type]])
        self.is_needed = self.default is not None and chance.random() < 0.3
        self.comment = chance.choice(COMMENTS)
        self.id: int | None = None

    def line(self) -> str:
        text = f"{quote_name(self.name)} {self.type}"
        text += " NOT NULL" if self.is_needed else ""
        text += f" DEFAULT {self.default}" if self.default is not None else ""
        return text + (f" COMMENT {quote_text(self.comment)}" if self.comment else "")


class Table:
    """A drawn table, which can be changed and written as a file."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        names = chance.sample(NAMES, chance.randint(1, 7))
        self.columns = [Drawn(chance, name) for name in names]
        self.comment = chance.choice(COMMENTS)
        self.arrange()

    def arrange(self) -> None:
        plain = [c.name for c in self.columns if c.type in ("INT", "BIGINT", "STRING", "DATE")]
        self.partition = self.chance.choice([None, *plain])
        self.sorting = self.chance.choice([None, *plain])

    def change(self) -> None:
        """Drop, rename, retype, move and add columns."""
        chance = self.chance
        # A name that the table has means the column that has it.
        free = [n for n in NAMES if n not in {c.name for c in self.columns}]
        if len(self.columns) > 1 and chance.random() < 0.5:
            self.columns.remove(chance.choice(self.columns))
        if len(self.columns) > 1 and chance.random() < 0.3:
            one, other = chance.sample(self.columns, 2)
            one.name, other.name = other.name, one.name
        for column in self.columns:
            if free and chance.random() < 0.3:
                column.name = free.pop(0)
            if chance.random() < 0.3:
                column.type = WIDER.get(column.type, column.type)
            if chance.random() < 0.3:
                column.default = chance.choice([None, *TYPES.get(column.type, ())])
            if chance.random() < 0.3:
                column.comment = chance.choice(COMMENTS)
            if chance.random() < 0.3:
                column.is_needed = not column.is_needed
        for name in free[: chance.randint(0, 2)]:
            self.columns.insert(chance.randint(0, len(self.columns)), Drawn(chance, name))
        if chance.random() < 0.3:
            chance.shuffle(self.columns)
        self.comment = chance.choice(COMMENTS)
        self.arrange()

    def text(self) -> str:
        last = self.columns[-1]
        lines = [
            f"  {c.line()}{'' if c is last else ','}{'' if c.id is None else f' -- id: {c.id}'}"
            for c in self.columns
        ]
        text = "CREATE TABLE t (\n" + "\n".join(lines) + "\n)"
        if self.partition is not None:
            text += f"\nPARTITIONED BY ({quote_name(self.partition)})"
        if self.sorting is not None:
            text += f"\nSORTED BY ({quote_name(self.sorting)})"
        if self.comment is not None:
            text += f"\nCOMMENT {quote_text(self.comment)}"
        return text


def tell(folder, seeds):
    """Pull, change and apply tables of these seeds; each has a lake's name for itself."""
    with shelduck.connect(f"sqlite:///{folder}/lake.db", f"{folder}/data/") as lake:
        for seed in seeds:
            chance = random.Random(seed)
            table = Table(chance)
            assert lake.plan({"t": table.text()}).apply() == []
            for _ in range(2):
                places = lake.pull_schema(folder / str(seed))
                assert [p.name for p in places] == ["main.t.sql"]
                assert str(lake.plan(folder / str(seed))) == "nothing differs"
                ids = {f.name: f.id for f in lake.table("t").columns}
                for column in table.columns:
                    column.id = ids[column.name]
                before = {c.id for c in table.columns}
                table.change()
                plan = lake.plan({"t": table.text()})
                plan.apply(allow_drop=True)
                assert str(lake.plan({"t": table.text()})) == "nothing differs", plan
                found = lake.table("t").columns
                assert [f.name for f in found] == [c.name for c in table.columns]
                for field, column in zip(found, table.columns, strict=True):
                    # What stays keeps its id, and what is new gets one that was never used.
                    assert field.id == column.id if column.id else field.id not in before
                    assert field.nullable is not column.is_needed
            lake.drop_table("t")


def test_files_round_trip_and_are_reached(tmp_path):
    tell(tmp_path, range(25))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("block", range(5))
def test_a_thousand_changes_of_files_are_reached(tmp_path, block):
    tell(tmp_path, itertools.islice(itertools.count(1000 + 100 * block), 100))
