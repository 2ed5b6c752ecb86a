"""Small wrong changes to the code, and whether tests find them; see `make mutants`.

    python -m tests.support.mutants COUNT SEED

Each mutant changes one place of `src` that a recorded test reaches: an operator, a condition, a
dropped statement, swapped arguments, a number. First the fast tests that reach its line run, from
the cheapest, until one fails; then, if none did, those that tests/left_out.txt names. Of each set,
those run that cost a minute together: many lines are reached by thousands. A mutant that only the
second set finds says that the fast set lacks a test. What `make cover` recorded must be there.
"""

from __future__ import annotations

import ast
import os
import random
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path

from tests.support.cover import ROOT, Recorded, left_out_tests

SOURCE = ROOT / "src" / "shelduck"
RECORDED = ROOT / "build" / "recorded"
WORK = ROOT / "build" / "mutants"
_OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.BitOr: ast.BitAnd,
}
# Seconds of CPU that the tests of a mutant may cost in each set. A change makes something wait for
# ever if they take so many times as long after the start.
_LIMIT, _SLOWER, _START = 60, 10, 300


@dataclass(frozen=True)
class Mutant:
    """One change: the text of the whole module after it."""

    path: str
    line: int
    change: str
    text: str


def mutant_of(path: Path, number: int) -> Mutant:
    """The mutant of a module in which the place of a number changes."""
    tree = ast.parse(path.read_text())
    line, change, act = next(place for n, place in enumerate(_places(tree)) if n == number)
    act()
    name = path.relative_to(SOURCE).as_posix()
    return Mutant(name, line, change, ast.unparse(ast.fix_missing_locations(tree)))


def _places(tree: ast.Module) -> Iterator[tuple[int, str, object]]:
    """Line, name and action of each possible change, inside of functions."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        types = {id(part) for node in ast.walk(function) for part in _types_of(node)}
        for node in ast.walk(function):
            if id(node) not in types:
                yield from _changes(node)


def _types_of(node: ast.AST) -> Iterator[ast.AST]:
    """Each part of the annotations of a node: nothing runs them."""
    for given in (getattr(node, "annotation", None), getattr(node, "returns", None)):
        if given is not None:
            yield from ast.walk(given)


def _changes(node: ast.AST) -> Iterator[tuple[int, str, object]]:
    line = getattr(node, "lineno", 0)
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _OPERATORS:
        yield line, "comparison", partial(_replace_operator, node.ops)
    elif isinstance(node, ast.BoolOp | ast.BinOp) and type(node.op) in _OPERATORS:
        yield line, "operator", partial(setattr, node, "op", _OPERATORS[type(node.op)]())
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        negated = ast.UnaryOp(ast.Not(), node.test)
        yield node.test.lineno, "condition", partial(setattr, node, "test", negated)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield line, "dropped statement", partial(setattr, node, "value", ast.Constant(None))
    elif isinstance(node, ast.Call) and len(node.args) == 2:
        yield line, "swapped arguments", partial(node.args.reverse)
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield line, "number", partial(setattr, node, "value", node.value + 1)


def _replace_operator(operators: list[ast.cmpop]) -> None:
    operators[0] = _OPERATORS[type(operators[0])]()  # type: ignore[assignment]


def drawn(count: int, seed: int, reached: dict[tuple[str, int], list[str]]) -> list[Mutant]:
    """So many mutants on lines that tests reach, as many of each layer as there is code in it."""
    generator = random.Random(seed)
    modules = sorted(SOURCE.rglob("*.py"))
    weights = [path.stat().st_size for path in modules]
    found: list[Mutant] = []
    while len(found) < count:
        (path,) = generator.choices(modules, weights)
        name = path.relative_to(SOURCE).as_posix()
        places = enumerate(_places(ast.parse(path.read_text())))
        possible = [number for number, (line, *_) in places if (name, line) in reached]
        mutant = mutant_of(path, generator.choice(possible)) if possible else None
        if mutant is not None and mutant not in found:
            found.append(mutant)
    return found


def killed(mutant: Mutant, tests: list[str], copy: Path) -> bool:
    """Whether one of the tests fails on the code with the change."""
    target = copy / "src" / "shelduck" / mutant.path
    original = target.read_text()
    target.write_text(mutant.text)
    try:
        # Without a JVM first: such a run takes a second.
        for part in (False, True):
            ids = [t for t in tests if _needs_jvm(t) is part]
            if ids and _fails(ids, copy):
                return True
    finally:
        target.write_text(original)
    return False


def _fails(tests: list[str], copy: Path) -> bool:
    listed = copy / "ids.txt"
    listed.write_text("\n".join(tests))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", ""]
    try:
        done = subprocess.run(
            [*command, "@ids.txt"],
            cwd=copy,
            env=os.environ | {"PYTHONPATH": str(copy / "src")},
            check=False,
            capture_output=True,
            timeout=_START + _SLOWER * _LIMIT,
        )
    except subprocess.TimeoutExpired:
        return True  # the change makes something wait for ever
    return done.returncode != 0


def _needs_jvm(test: str) -> bool:
    return not test.startswith(("tests/unit/", "tests/catalog/", "tests/web/"))


def main(count: str = "100", seed: str = "1") -> None:
    recorded = Recorded(RECORDED)
    reached: dict[tuple[str, int], list[str]] = defaultdict(list)
    for test in sorted(recorded.tests, key=lambda t: recorded.costs[t]):
        for name, line in recorded.lines[test]:
            reached[name.rpartition("/src/shelduck/")[2], line].append(test)
    left_out = left_out_tests()
    copies = [WORK / str(n) for n in range(2)]
    for copy in copies:
        shutil.rmtree(copy, ignore_errors=True)
        for part in ("src", "tests", "docs", "examples", "pyproject.toml", "README.md"):
            whole = ROOT / part
            (shutil.copytree if whole.is_dir() else shutil.copy)(whole, _below(copy / part))
    free = list(copies)

    def cheapest(tests: list[str]) -> list[str]:
        spent = accumulate(recorded.costs[test] for test in tests)
        return [t for t, cost in zip(tests, spent, strict=True) if cost <= _LIMIT] or tests[:1]

    def judge(mutant: Mutant) -> str:
        copy = free.pop()
        try:
            tests = reached[mutant.path, mutant.line]
            if killed(mutant, cheapest([t for t in tests if t not in left_out]), copy):
                return "fast"
            others = cheapest([t for t in tests if t in left_out])
            return "left out" if killed(mutant, others, copy) else ""
        finally:
            free.append(copy)

    mutants = drawn(int(count), int(seed), reached)
    table: Counter[tuple[str, str]] = Counter()
    with ThreadPoolExecutor(len(copies)) as pool:
        for mutant, by in zip(mutants, pool.map(judge, mutants), strict=True):
            table[mutant.path.partition("/")[0], by or "nobody"] += 1
            print(f"{by or 'nobody':9} {mutant.path}:{mutant.line} {mutant.change}", flush=True)  # noqa: T201
    for (layer, by), number in sorted(table.items()):
        print(f"{layer:12} {by:9} {number}")  # noqa: T201


def _below(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


if __name__ == "__main__":
    main(*sys.argv[1:])
