"""budgets.toml: its numbers only fall, and the error for a rise says what to do."""

from __future__ import annotations

from tests.support import budgets

TODAY = {"files_entered.append": 100.0, "folders.text": 50.0}


def test_a_number_over_its_budget_says_what_to_do():
    assert budgets.above("files_entered.append", 101, 100) == (
        "files_entered.append is 101, and budgets.toml allows 100; make it cheaper again, or raise"
        " the budget with a page in docs/decisions that names files_entered.append, says what it"
        " buys, and when it falls again"
    )
    assert budgets.above("files_entered.append", 100, 100) is None


def test_a_budget_that_rises_needs_a_page_that_names_it():
    risen = TODAY | {"files_entered.append": 101.0}
    page = "We pay one file more (`files_entered.append`) until rollups have a folder."

    assert budgets.raised(risen, [TODAY], "") == ["files_entered.append"]
    assert budgets.raised(risen, [TODAY], page) == []
    assert budgets.raised(TODAY, [TODAY], "") == []


def test_a_budget_that_fell_once_does_not_rise_to_where_it_was():
    fallen = TODAY | {"folders.text": 40.0}

    assert budgets.raised(TODAY, [fallen, TODAY], "") == ["folders.text"]


def test_lines_of_code_are_counted_without_contracts_and_comments():
    text = (
        '"""What it is.\n\nMore.\n"""\n\nA = (\n    1,  # one\n)\n"""What A is."""\n# why\nB = 2\n'
    )

    assert budgets.code_lines(text) == 4


def test_a_new_budget_needs_no_page():
    assert budgets.raised(TODAY | {"source.lines": 1.0}, [TODAY], "") == []


def test_a_number_without_a_budget_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(budgets, "budgets", dict)
    monkeypatch.setattr(budgets, "counts", lambda: {"folders.new": 3})

    assert budgets.main() == 1
    assert "folders.new is 3, and budgets.toml has no line for it" in capsys.readouterr().err


def test_no_page_raises_a_budget_while_an_older_promise_is_open():
    older = "`source.code_lines` falls to\n65,255 by 2026-12-31."
    newer = "`java.lines` falls to 9,940 by 2027-01-31."
    now = {"source.code_lines": 65256.0, "java.lines": 9957.0}

    assert budgets.unkept(now, {"0082-rules": older}) == []
    [told] = budgets.unkept(now, {"0082-rules": older, "0084-more": newer})
    assert told == (
        "0084-more raises java.lines, and 0082-rules has not kept its promise for"
        " source.code_lines; keep that first"
    )
    kept = now | {"source.code_lines": 65255.0}
    assert budgets.unkept(kept, {"0082-rules": older, "0084-more": newer}) == []
