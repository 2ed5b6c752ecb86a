"""Random programs over tables with constraints, generated columns and identities, against lists.

A statement whose rows break a rule changes nothing. The rows of each program are read by DuckDB.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

import shelduck
from tests.support.lengths import shown, turns
from tests.support.oracle import DuckDBOracle

Number = int | None
CHECKS = {
    "{x} > 0": lambda x, y: x is None or x > 0,
    "{x} < {y}": lambda x, y: x is None or y is None or x < y,
    "{y} IN (1, 2, 3)": lambda x, y: y is None or y in (1, 2, 3),
    "{x} IS NOT NULL": lambda x, y: x is not None,
    "NOT ({x} = 4 AND {y} = 4)": lambda x, y: not (x == 4 and y == 4),
    "{x} + {y} <> 5 OR {y} IS NULL": lambda x, y: x is None or y is None or x + y != 5,
}
GENERATED = {
    "{x} * 10": lambda x, y: None if x is None else x * 10,
    "coalesce({x}, {y}, -1)": lambda x, y: x if x is not None else y if y is not None else -1,
    "CASE WHEN {x} > {y} THEN 1 ELSE 0 END": lambda x, y: int(bool(x and y and x > y)),
}
HOW = ("ALWAYS", "BY DEFAULT")


@dataclass
class Program:
    """One table, and what it must hold: rows of k, x, y and g."""

    lake: shelduck.Lake
    chance: random.Random
    name: str
    rows: dict[int, tuple[Number, Number]] = field(default_factory=dict)
    checks: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=lambda: {"x": "x", "y": "y"})
    told: list[str] = field(default_factory=list)
    refused: int = 0
    keys: int = 0

    def __post_init__(self) -> None:
        self.generated = self.chance.choice([*GENERATED])
        self.how = self.chance.choice(HOW)
        text = self.chance.choice([*CHECKS])
        self.checks["c"] = text
        self.say(
            f"CREATE TABLE {self.name} (k INT, x INT, g INT GENERATED ALWAYS AS"
            f" ({self.spelled(self.generated)}), y INT, id BIGINT GENERATED {self.how} AS IDENTITY,"
            f" CONSTRAINT c CHECK ({self.spelled(text)}))",
            holds=True,
        )

    def spelled(self, text: str) -> str:
        return text.format(**self.names)

    def say(self, statement: str, *, holds: bool) -> None:
        """Run a statement that must end well, or be refused for a rule."""
        self.told.append(statement)
        if holds:
            self.lake.execute(statement)
            return
        with pytest.raises(shelduck.InvalidRequest, match=r"is not satisfied by the row|cannot be"):
            self.lake.execute(statement)
        self.refused += 1

    def fits(self, *rows: tuple[Number, Number]) -> bool:
        return all(CHECKS[text](*row) for text in self.checks.values() for row in rows)

    def drawn(self) -> tuple[Number, Number]:
        values = (None, -1, 1, 1, 2, 2, 3, 4)
        return self.chance.choice(values), self.chance.choice(values)

    def step(self) -> None:
        acts = (self.insert, self.insert, self.update, self.merge, self.rename, self.constrain)
        self.chance.choice(acts)()

    def insert(self) -> None:
        new = {self.keys + n: self.drawn() for n in range(self.chance.randint(1, 3))}
        self.keys += len(new)
        g = [GENERATED[self.generated](*row) for row in new.values()]
        gives = self.chance.random() < 0.3
        is_right = not gives or self.chance.random() < 0.7
        g = g if is_right else [(n or 0) + 1 for n in g]
        listed = ", ".join(
            f"({k}, {sql(x)}, {sql(y)}{f', {sql(n)}' if gives else ''})"
            for (k, (x, y)), n in zip(new.items(), g, strict=True)
        )
        columns = f"k, {self.names['x']}, {self.names['y']}{', g' if gives else ''}"
        holds = is_right and self.fits(*new.values())
        self.say(f"INSERT INTO {self.name} ({columns}) VALUES {listed}", holds=holds)
        self.rows |= new if holds else {}

    def update(self) -> None:
        value, least = self.drawn()[0], self.chance.randrange(self.keys + 1)
        new = {k: (value, y) for k, (_, y) in self.rows.items() if k >= least}
        holds = self.fits(*new.values())
        self.say(
            f"UPDATE {self.name} SET {self.names['x']} = {sql(value)} WHERE k >= {least}",
            holds=holds,
        )
        self.rows |= new if holds else {}

    def merge(self) -> None:
        """Delete a row, change another, and add one."""
        gone, changed, added = self.keys - 1, self.keys - 2, self.keys
        x, y = self.drawn()
        new = {added: (x, y)}
        if changed in self.rows:
            new[changed] = (self.rows[changed][0], y)
        holds = self.fits(*new.values())
        self.say(
            f"MERGE INTO {self.name} AS t USING (VALUES ({gone}), ({changed}), ({added})) AS s (n)"
            f" ON t.k = s.n WHEN MATCHED AND s.n = {gone} THEN DELETE WHEN MATCHED THEN UPDATE SET"
            f" {self.names['y']} = {sql(y)} WHEN NOT MATCHED AND s.n = {added} THEN INSERT"
            f" (k, {self.names['x']}, {self.names['y']}) VALUES ({added}, {sql(x)}, {sql(y)})",
            holds=holds,
        )
        if holds:
            self.rows = {k: row for k, row in (self.rows | new).items() if k != gone}
            self.keys += 1

    def rename(self) -> None:
        which = self.chance.choice("xy")
        new = f"{which}{len(self.told)}"
        self.say(f"ALTER TABLE {self.name} RENAME {self.names[which]} TO {new}", holds=True)
        self.names[which] = new

    def constrain(self) -> None:
        if self.checks and self.chance.random() < 0.3:
            gone = self.chance.choice([*self.checks])
            del self.checks[gone]
            self.say(f"ALTER TABLE {self.name} DROP CONSTRAINT {gone}", holds=True)
            return
        text, made = self.chance.choice([*CHECKS]), f"c{len(self.told)}"
        later = self.chance.random() < 0.3
        is_held = all(CHECKS[text](*row) for row in self.rows.values())
        clause = f"ADD CONSTRAINT {made} CHECK ({self.spelled(text)}){' NOT VALID' * later}"
        self.say(f"ALTER TABLE {self.name} {clause}", holds=later or is_held)
        if later:
            self.checks[made] = text
            self.say(f"ALTER TABLE {self.name} VALIDATE CONSTRAINT {made}", holds=is_held)
            if not is_held:
                self.say(f"ALTER TABLE {self.name} DROP CONSTRAINT {made}", holds=True)
                del self.checks[made]
        elif is_held:
            self.checks[made] = text


def sql(value: Number) -> str:
    return "CAST(NULL AS INT)" if value is None else str(value)


def run(spark, folder, seeds, steps) -> int:
    """Run the programs of these seeds in one lake; return how many statements were refused."""
    url, programs = f"sqlite:///{folder}/lake.db", []
    with shelduck.connect(url, f"{folder}/data/", spark) as lake:
        for seed in seeds:
            program = Program(lake, random.Random(seed), f"t{seed}")
            program.insert()
            for _ in range(steps - 1):
                program.step()
            programs.append(program)
    with DuckDBOracle(url) as duckdb:
        for program in programs:
            x, y, g = program.names["x"], program.names["y"], GENERATED[program.generated]
            found = duckdb.sql(f"SELECT k, {x}, {y}, g, id FROM {program.name} ORDER BY k")
            wanted = [(k, *row, g(*row)) for k, row in sorted(program.rows.items())]
            assert [row[:4] for row in found] == wanted, program.told
            numbers = [row[4] for row in found]
            assert len({*numbers}) == len(numbers), program.told
            assert all(n > 0 for n in numbers), program.told
    return sum(program.refused for program in programs)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seeds", [range(12), *(range(n, n + 22) for n in range(12, 100, 22))])
def test_programs_keep_to_the_rules_of_their_tables(spark, tmp_path, seeds):
    assert run(spark, tmp_path, seeds, 2) > len(seeds) // 8


@pytest.mark.slow
@pytest.mark.parametrize("seeds", turns(range(100, 2100), 25), ids=shown)
def test_two_thousand_programs_keep_to_the_rules(spark, tmp_path, seeds):
    assert run(spark, tmp_path, seeds, 5) > 10
