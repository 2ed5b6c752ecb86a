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
