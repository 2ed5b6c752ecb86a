"""The numbers of budgets.toml: what the code may cost. They only fall.

    python -m tests.support.budgets

A number above its budget fails. A number a tenth below it is printed, so that somebody lowers it.
All of them are counts. Seconds depend on the machine: `make cost` shows them, and nothing fails.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
BUDGETS = ROOT / "budgets.toml"
DECISIONS = ROOT / "docs" / "decisions"
_LOWER = 0.9
# How a page says when a number falls again: "`source.code_lines` falls to 65,255 by 2026-12-31".
_PROMISE = re.compile(r"`([^`]+)` falls to ([\d,]+) by (\d{4}-\d\d-\d\d)")
_NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    tokenize.ENDMARKER,
}


def budgets() -> dict[str, float]:
    """Each number by its name, such as `files_entered.append`."""
    return flat(tomllib.loads(BUDGETS.read_text()))


def flat(tables: dict[str, Any]) -> dict[str, float]:
    """The numbers of all tables, by table and key."""
    return {f"{table}.{key}": n for table, keys in tables.items() for key, n in keys.items()}


def above(name: str, found: float, allowed: float) -> str | None:
    """The sentence for a number that is over its budget."""
    if found <= allowed:
        return None
    return (
        f"{name} is {found:g}, and budgets.toml allows {allowed:g}; make it cheaper again, or raise"
        f" the budget with a page in docs/decisions that names {name}, says what it buys, and"
        " when it falls again"
    )


def within(name: str, found: float) -> None:
    """Fail where a number is over its budget, and tell where the budget can be lowered."""
    allowed = budgets()[name]
    if sentence := above(name, found, allowed):
        raise AssertionError(sentence)
    if found < allowed * _LOWER:
        print(f"{name} is {found:g}: lower its budget from {allowed:g}")  # noqa: T201


def raised(now: dict[str, float], before: list[dict[str, float]], pages: str) -> list[str]:
    """The names of budgets that are higher than they ever were, without a page that names them."""
    lowest: dict[str, float] = {}
    for old in before:
        for name, number in old.items():
            lowest[name] = min(number, lowest.get(name, number))
    return [name for name, n in now.items() if n > lowest.get(name, n) and f"`{name}`" not in pages]


def promised(page: str) -> dict[str, int]:
    """The numbers to which a page says that budgets fall."""
    return {name: int(n.replace(",", "")) for name, n, _day in _PROMISE.findall(_one_line(page))}


def unkept(now: dict[str, float], pages: dict[str, str]) -> list[str]:
    """A sentence if more than one page has a promise that is not kept, by the titles of pages."""
    is_open = {
        title: [name for name, n in promised(page).items() if now.get(name, 0) > n]
        for title, page in sorted(pages.items())
    }
    first, *later = [title for title, names in is_open.items() if names] or [""]
    return [
        f"{title} raises {', '.join(is_open[title])}, and {first} has not kept its promise for"
        f" {', '.join(is_open[first])}; keep that first"
        for title in later
    ]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def history() -> list[dict[str, float]]:
    """budgets.toml in each commit that changed it; empty outside of a repository."""
    log = _git("log", "--format=%H", "--", BUDGETS.name).split()
    texts = (_git("show", f"{commit}:{BUDGETS.name}") for commit in log)
    return [flat(tomllib.loads(text)) for text in texts if text]


def _git(*command: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(ROOT), *command], check=False, capture_output=True, text=True
    )
    return done.stdout


def counts() -> dict[str, float]:
    """What can be counted in the source without running it."""
    source = ROOT / "src" / "shelduck"
    modules = [path for path in source.rglob("*.py") if path.name != "__init__.py"]
    folders = Counter(path.relative_to(source).parts[0] for path in modules)
    texts = [path.read_text() for path in source.rglob("*.py")]
    found: dict[str, float] = {
        "source.code_lines": sum(map(code_lines, texts)),
        "source.modules": len(modules),
        "source.parameters": max(_longest_list(ast.parse(text)) for text in texts),
        "java.lines": sum(len(p.read_text().splitlines()) for p in source.rglob("*.java")),
        "docs.words": sum(len(p.read_text().split()) for p in (ROOT / "docs").rglob("*.md")),
    }
    return found | {f"folders.{name}": n for name, n in folders.items() if not name.endswith(".py")}


def code_lines(text: str) -> int:
    """The lines of a module that hold code: no contracts, comments and blank lines."""
    told: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            told.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    held: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            held.update(range(token.start[0], token.end[0] + 1))
    return len(held - told)


def _longest_list(tree: ast.AST) -> int:
    """The number of parameters of the function that has the most."""
    functions = (n.args for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))
    return max((len(a.posonlyargs + a.args + a.kwonlyargs) for a in functions), default=0)


def over(known: dict[str, float], found: dict[str, float]) -> list[str]:
    """Return a sentence for each number over its budget."""
    wrong = []
    for name, number in sorted(found.items()):
        if name not in known:
            wrong.append(f"{name} is {number:g}, and budgets.toml has no line for it; add one")
        elif sentence := above(name, number, known[name]):
            wrong.append(sentence)
        elif number < known[name] * _LOWER:
            print(f"{name} is {number:g}: lower its budget from {known[name]:g}")  # noqa: T201
    return wrong


def main() -> int:
    """Compare, print what stands out, and return 1 where something is over its budget."""
    known = budgets()
    wrong = over(known, counts())
    pages = {page.stem: page.read_text() for page in DECISIONS.glob("*.md")}
    wrong += [
        f"{name} was raised, and no page in docs/decisions names `{name}`; add one"
        for name in raised(known, history(), "".join(pages.values()))
    ]
    wrong += unkept(known, pages)
    print("\n".join(wrong), file=sys.stderr)  # noqa: T201
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
