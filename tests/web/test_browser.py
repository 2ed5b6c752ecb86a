"""The page in a real browser: every page at two widths, in light and dark. `make browser`."""

from __future__ import annotations

import os
import shutil
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import uvicorn
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

import shelduck
from shelduck.lake.state import LakeState
from shelduck.web.application import listening, make_app
from shelduck.web.guard import Guard
from tests.support.shown_lake import ShownLake, make
from tests.support.time_limit import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

PICTURES = os.environ.get("SHELDUCK_PICTURES")
"""A folder for screenshots, if they are wanted."""
WIDE, NARROW, PHONE = 1600, 360, 400
LONG = "x" * 120
"""A name without a place to break it."""
WORDY = f"""
CREATE TABLE {LONG} (k{LONG} INT, day DATE, v{LONG} INT SUM)
AGGREGATE KEY (k{LONG}, day) ROLLUP (r{LONG} (k{LONG}, v{LONG}))
PARTITIONED BY (bucket(4, k{LONG}), day) SORTED BY (day, k{LONG}) COMMENT '{LONG}';
CREATE TABLE u (id BIGINT GENERATED ALWAYS AS IDENTITY, a{LONG} STRING DEFAULT '{LONG}',
  s STRUCT<f{LONG}: INT>, PRIMARY KEY (id), CONSTRAINT c{LONG} CHECK (a{LONG} <> '{LONG}'));
ALTER TABLE u RENAME COLUMN a{LONG} TO b{LONG};
CREATE VIEW v{LONG} COMMENT '{LONG}' AS SELECT '{LONG}' AS {LONG}
"""
STORY = "/tables/1?open=5"
PAGES = {
    "lake": "/",
    "story": STORY,
    "definition": "/tables/7/definition",
    "rows": "/tables/7/rows",
    "moult": "/tables/1/moult",
    "files": "/tables/6/files",
    "partitions": "/tables/7/files",
    "snapshots": "/snapshots",
    "compare": "/snapshots/compare?a=40&b=1500",
    "branches": "/branches",
    "jobs": "/jobs",
    "plan": "/plan?sql=ALTER+TABLE+events+ALTER+COLUMN+amount+TYPE+STRING",
    "error": "/tables/99",
}
SERIOUS = {"serious", "critical"}


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> Iterator[str]:
    """A served lake with 30 tables, 2,000 snapshots and a running job; changes are allowed."""
    shown = make(tmp_path_factory.mktemp("shown"))
    # What pictures show as the address of the catalog.
    shown.files.store.where = "sqlite:///lake.db"
    with serving(shown) as told:
        yield told
    shown.close()


@pytest.fixture(scope="module")
def wordy(tmp_path_factory) -> Iterator[str]:
    """A served lake whose names, texts and values are long: two tables, a rollup and a view."""
    shown = ShownLake(tmp_path_factory.mktemp(LONG))
    shown.lake.execute(WORDY)
    shown.alter("u", LONG, LONG, shelduck.add_column(f"z{LONG}", "int"))
    shown.files.append("u", [{"id": 1, f"b{LONG}": LONG * 9, f"z{LONG}": None}])
    shown.files.append("u", [{"id": 2, f"b{LONG}": "two  words\nand a line", f"z{LONG}": 2}])
    shown.lake.execute(f"CREATE BRANCH {LONG}b WITH TABLES (u)")
    for name in (f"{LONG}b.u", "u"):
        shown.lake.execute(f"ALTER TABLE {name} RENAME COLUMN b{LONG} TO {name[0]}{LONG}")
    job, _ = shown.begin("u", shelduck.change_type(f"z{LONG}", "string"))
    shown.run(job, 1, 2)
    with serving(shown) as told:
        yield told
    shown.close()


@contextmanager
def serving(shown: ShownLake) -> Iterator[str]:
    """The address of a server that shows a lake and its rows."""
    listener = listening(0)
    guard = Guard(listener.getsockname()[1], allow_changes=True)
    state = LakeState(shown.files.store, shown.files.info)
    app = make_app(state, guard, rows_from=shown.url)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield guard.address
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = shutil.which("chromium")
    assert found, "no chromium on the path; run make chromium"
    expect.set_options(timeout=PATIENCE * 1000)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture
def page(browser, address, request) -> Iterator[Page]:
    """A page that has opened the address; a message on its console fails the test."""
    width, scheme = getattr(request, "param", (WIDE, "light"))
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme=scheme,
        base_url=address.partition("?")[0],
        reduced_motion="reduce",
    )
    made = context.new_page()
    made.set_default_timeout(PATIENCE * 1000)
    told: list[str] = []
    made.on("console", lambda message: told.append(f"{message.type}: {message.text}"))
    made.on("pageerror", lambda error: told.append(str(error)))
    made.on("requestfailed", lambda failed: told.append(f"{failed.failure}: {failed.url}"))
    made.goto(address)
    yield made
    context.close()
    # The page of an error has its status on the console.
    assert [t for t in told if "404 (Not Found)" not in t and "ERR_ABORTED" not in t] == []


def views():
    # The other two have no lines of their own.
    quick = {(WIDE, "light"), (NARROW, "dark")}
    return [
        pytest.param(
            *(view,), id=f"{view[0]}-{view[1]}", marks=() if view in quick else pytest.mark.slow
        )
        for view in ((w, s) for w in (WIDE, NARROW) for s in ("light", "dark"))
    ]


@pytest.mark.parametrize("page", views(), indirect=True)
def test_every_page_is_whole_and_nothing_keeps_people_out(page, request):
    axe = Axe()
    view = request.node.callspec.id
    for name, path in PAGES.items():
        page.goto(path)
        over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert over <= 0, f"{name} is {over} pixels too wide"
        found = axe.run(page).response["violations"]
        wrong = [(v["id"], v["nodes"][0]["html"][:200]) for v in found if v["impact"] in SERIOUS]
        assert wrong == [], name
        if PICTURES:
            page.screenshot(path=Path(PICTURES) / f"{name}-{view}.png", full_page=True)


@pytest.mark.slow
def test_long_words_fit_a_phone(browser, wordy):
    context = browser.new_context(
        viewport={"width": PHONE, "height": 900}, base_url=wordy.partition("?")[0]
    )
    page = context.new_page()
    page.goto(wordy)
    lists = (
        "/",
        f"/?q={LONG}",
        "/snapshots",
        "/snapshots/compare?a=0",
        "/jobs",
        "/views/99",
        "/branches",
        f"/branches/diff?branch={LONG}b",
    )
    plans = (f"/plan?sql=ALTER+TABLE+u+DROP+COLUMN+{LONG}", "/plan?sql=ALTER+TABLE+u+REWRITE")
    shown = [a.get_attribute("href") for a in page.locator("#tables th a").all()]
    assert len(shown) == 5
    tabs = ("", "?open=all", "/definition", "/moult", "/files", "/rows")
    of_tables = [f"{link}{tab}" for link in shown if "tables" in link for tab in tabs]
    views = [link for link in shown if "views" in link]
    wide = {}
    for path in (*lists, *plans, *of_tables, *views):
        assert page.goto(path).status == (404 if path == "/views/99" else 200), path
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > PHONE:
            wide[path] = width
        # An address that is cut leaves room for what is allowed.
        expect(page.locator(".where .badge")).to_be_in_viewport(ratio=1)
        if PICTURES:
            name = path.strip("/").replace("/", "-")[:20] or "lake"
            page.screenshot(path=Path(PICTURES) / f"long-{name}.png", full_page=True)
    context.close()
    assert wide == {}


def test_the_picture_of_the_readme_is_whole(browser, address):
    context = browser.new_context(
        viewport={"width": 1160, "height": 900},
        device_scale_factor=2,
        base_url=address.partition("?")[0],
    )
    made = context.new_page()
    made.set_default_timeout(PATIENCE * 1000)
    made.goto(f"{STORY}&at=986")
    card = made.locator("section.story")
    assert card.evaluate("e => e.querySelector('.story-scroll').scrollWidth - e.clientWidth") < 0
    if PICTURES:
        card.screenshot(path=Path(PICTURES) / "story.png")
    context.close()


def test_a_click_on_a_snapshot_shows_it_without_leaving_the_page(page):
    page.goto(STORY)
    page.evaluate("window.here = true")
    page.locator("#at-349").click(position={"x": 8, "y": 300})
    expect(page.locator("#event-h")).to_have_text("Snapshot 349")
    expect(page.locator("#story")).to_contain_text("renamed at to seen_at")
    expect(page.locator("#story")).to_contain_text("One name for times everywhere")
    expect(page.locator("#schema-h")).to_have_text("The schema at snapshot 349")
    page.locator("#newer").click()
    expect(page.locator("#event-h")).to_have_text("Snapshot 491")
    page.locator("#fold-5").click()
    expect(page.locator("#fold-5")).to_contain_text("Unfold")
    page.locator("#scale-changes").click()
    expect(page.locator("#scale-changes")).to_have_attribute("aria-current", "true")
    assert page.evaluate("window.here") is True
    page.go_back()
    expect(page.locator("#scale-snapshots")).to_have_attribute("aria-current", "true")


@pytest.mark.slow
def test_the_picture_is_where_its_numbers_say(page):
    page.goto(f"{STORY}&scale=snapshots")
    svg = page.locator(".story-svg").bounding_box()
    step = page.locator("#at-986").bounding_box()
    bar = page.locator(".story-svg .seg", has_text="decimal").bounding_box()
    # Snapshots 1 to 1999: snapshot 986 begins after 985 of them.
    place = svg["x"] + svg["width"] * 985 / 1999
    assert step["x"] == pytest.approx(place, abs=0.6)
    assert bar["x"] == pytest.approx(place, abs=0.6)
    assert bar["x"] + bar["width"] == pytest.approx(svg["x"] + svg["width"], abs=0.6)
    labels = [box.bounding_box()["y"] for box in page.locator(".lanes li").all()]
    bars = [g.locator("rect.body").first.bounding_box()["y"] for g in page.locator("g.lane").all()]
    assert len(labels) == len(bars) == 14
    for label, drawn in zip(labels, bars, strict=True):
        assert drawn - label == pytest.approx(5, abs=0.6)


@pytest.mark.slow
def test_the_keyboard_reaches_everything(page):
    page.goto("/")
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    expect(page.locator(".skip")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.type("shipm")
    expect(page.locator("#tables tbody tr")).to_have_count(1)
    expect(page.locator("#q")).to_be_focused()
    assert page.url.endswith("q=shipm&sort=name")

    page.goto(STORY)
    page.locator("#at-228").focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    outline = page.locator("#at-228").evaluate("e => getComputedStyle(e).outlineWidth")
    assert outline == "3px"
    page.keyboard.press("Enter")
    expect(page.locator("#event-h")).to_have_text("Snapshot 228")
    expect(page.locator("#at-228")).to_be_focused()


def test_a_plan_is_made_without_leaving_the_page(page):
    page.goto("/plan?table=1")
    page.evaluate("window.here = true")
    area = page.locator("#sql")
    area.fill("ALTER TABLE main.events ADD COLUMN note STRING")
    page.get_by_role("button", name="Plan").click()
    expect(page.locator("#plan")).to_contain_text("Metadata only")
    area.fill("ALTER TABLE main.events DROP COLUMN nothing")
    page.get_by_role("button", name="Plan").click()
    expect(page.locator("#plan")).to_contain_text("This cannot be planned")
    assert page.evaluate("window.here") is True


def test_jobs_are_live_and_one_is_cancelled(page):
    page.goto("/jobs")
    expect(page.locator("#jobs")).to_contain_text("7 of 20 files")
    with page.expect_request(lambda r: r.headers.get("hx-request") == "true"):
        pass
    asked: list[str] = []
    page.once("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    button = page.get_by_role("button", name="Cancel job 3")
    button.click()
    expect(page.locator("#jobs")).to_contain_text("RUNNING")
    page.once("dialog", lambda dialog: (asked.append(dialog.message), dialog.accept()))
    button.click()
    expect(page.locator("#jobs")).to_contain_text("cancelled on the page")
    assert asked == ["Cancel job 3 on main.customers? The table stays as it is."] * 2
    expect(button).to_have_count(0)
