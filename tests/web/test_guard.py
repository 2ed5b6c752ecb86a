"""Requests of other sites, other names and other people."""

from __future__ import annotations

import builtins
import socket

import pytest
from typer.testing import CliRunner

import shelduck
from shelduck.catalog.commit.commit import commit
from shelduck.catalog.running import job_rows as catalog_jobs
from shelduck.cli.app import app as command_line
from shelduck.doors.connect import connect_existing
from shelduck.model.changes.change import CommitInfo
from shelduck.model.changes.job import JobState, JobWork, NewJob
from shelduck.web.guard import POLICY, Guard
from tests.support.lake import Lake
from tests.web.conftest import BASE, TOKEN, served


@pytest.fixture
def job(lake):
    lake.create("t", a="int")
    head = lake.head().id
    new = NewJob(lake.table("t").id, "main.t", JobWork())
    return commit(lake.store, lake.info, [new], base=head, info=CommitInfo()).job.id


@pytest.fixture
def changing(lake, job):
    """A client that may change things once it has opened the address."""
    with served(lake, allow_changes=True) as client:
        yield client


def state(lake, number):
    with lake.store.read() as connection:
        found = catalog_jobs.job(connection, number)
    return found.state, found.message


SAME = {"Origin": BASE}


def test_a_job_is_cancelled_with_the_token_and_from_the_page_itself(lake, job, changing):
    opened = changing.get(f"/jobs?token={TOKEN}&table=1", follow_redirects=False)
    assert (opened.status_code, opened.headers["location"]) == (303, "/jobs?table=1")
    cookie = opened.headers["set-cookie"]
    assert cookie.startswith(f"shelduck_ui_8765={TOKEN};")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert f'action="/jobs/{job}/cancel"' in changing.get("/jobs").text

    assert changing.post(f"/jobs/{job}/explode", headers=SAME).status_code == 404
    for act, after in (("pause", JobState.PAUSED), ("resume", JobState.PENDING)):
        assert f'action="/jobs/{job}/{act}"' in changing.get("/jobs").text
        changing.post(f"/jobs/{job}/{act}", headers=SAME, follow_redirects=False)
        assert state(lake, job)[0] is after
    done = changing.post(f"/jobs/{job}/cancel", headers=SAME, follow_redirects=False)
    assert (done.status_code, done.headers["location"]) == (303, "/jobs")
    assert state(lake, job) == (JobState.CANCELLED, "cancelled on the page")
    again = changing.post(f"/jobs/{job}/cancel", headers=SAME)
    assert again.status_code == 400
    assert "it is already CANCELLED" in again.text


@pytest.mark.parametrize(
    ("headers", "cookie", "why"),
    [
        ({}, TOKEN, "another site"),
        ({"Origin": "null"}, TOKEN, "another site"),
        ({"Origin": "https://127.0.0.1:8765"}, TOKEN, "another site"),
        ({"Origin": "http://127.0.0.1:9999"}, TOKEN, "another site"),
        ({"Origin": "http://evil.example"}, TOKEN, "another site"),
        ({"Origin": f"{BASE}.evil.example"}, TOKEN, "another site"),
        (SAME, None, "the token is missing"),
        (SAME, "", "the token is missing"),
        (SAME, "the-tokem", "the token is missing"),
        ({"Origin": BASE, "Host": "evil.example:8765"}, TOKEN, "answers only to"),
    ],
)
def test_changes_of_others_are_refused(lake, job, changing, headers, cookie, why):  # noqa: PLR0917
    if cookie is not None:
        changing.cookies.set("shelduck_ui_8765", cookie)
    found = changing.post(f"/jobs/{job}/cancel", headers=headers)
    assert found.status_code == 403
    assert why in found.text
    assert state(lake, job)[0] is JobState.PENDING


def test_a_read_only_page_has_no_button_and_changes_nothing(lake, job):
    with served(lake) as client:
        client.cookies.set("shelduck_ui_8765", TOKEN)
        assert (
            client.get(f"/?token={TOKEN}", follow_redirects=False).headers.get("set-cookie") is None
        )
        assert "<button" not in client.get("/jobs").text
        found = client.post(f"/jobs/{job}/cancel", headers=SAME)
    assert (found.status_code, found.text) == (
        403,
        "refused: this server is read-only; start it with --allow-changes\n",
    )
    assert state(lake, job)[0] is JobState.PENDING


def test_a_wrong_token_in_the_address_gives_no_cookie(changing):
    found = changing.get("/?token=wrong", follow_redirects=False)
    assert (found.status_code, found.headers["location"]) == (303, "/")
    assert "set-cookie" not in found.headers
    assert "<button id=" not in changing.get("/jobs").text


def test_the_address_with_a_token_never_leads_elsewhere(changing):
    found = changing.get(f"{BASE}//evil.example/?token={TOKEN}", follow_redirects=False)
    assert found.headers["location"] == "/evil.example/"


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "127.0.0.1:9999", "127.0.0.1", "localhost", ""]
)
def test_other_names_get_nothing(page, host):
    found = page.client.get("/", headers={"Host": host})
    assert (found.status_code, found.text) == (
        403,
        "refused: this server answers only to 127.0.0.1:8765 and localhost:8765\n",
    )
    assert page.client.get("/assets/style.css", headers={"Host": host}).status_code == 403


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8765", "localhost:8765", "LOCALHOST:8765", "[::1]:8765"]
)
def test_its_own_names_get_the_page(page, host):
    assert page.client.get("/", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("path", ["/", "/nope", "/assets/style.css", "/assets/htmx.min.js"])
def test_every_response_has_the_policy(page, path):
    headers = page.client.get(path).headers
    assert headers["content-security-policy"] == POLICY
    assert "unsafe" not in POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "same-origin"
    expected = "max-age=31536000, immutable" if path.startswith("/assets") else "no-store"
    assert headers["cache-control"] == expected


@pytest.mark.parametrize("path", ["/assets/../app.py", "/assets/%2e%2e/app.py", "/assets/"])
def test_only_assets_are_served(page, path):
    assert page.client.get(path).status_code == 404


def test_the_address_has_a_token_only_if_changes_are_allowed():
    reading, first, second = Guard(80), Guard(81, allow_changes=True), Guard(81, allow_changes=True)
    assert reading.address == "http://127.0.0.1:80/"
    assert first.address == f"http://127.0.0.1:81/?token={first.token}"
    assert len(first.token) == 43
    assert first.token != second.token
    assert first.token not in repr(first)
    assert "127.0.0.1" in reading.hosts


EVIL = "<script>alert(1)</script>\"'&{{7*7}}"


def test_names_authors_and_messages_are_escaped(lake, page, sql):
    sql(
        f"CREATE TABLE `{EVIL}` (`{EVIL}` INT, s STRUCT<`{EVIL}`: INT>)",
        f"COMMENT ON TABLE `{EVIL}` IS 'x<img src=x onerror=alert(1)>'",
    )
    with shelduck.connect(lake.url, author=EVIL) as connected, connected.transaction(EVIL) as tx:
        change = shelduck.add_column("`<b>bold</b>`", "string", default="<i>x</i>")
        quoted = EVIL.replace("`", "``")
        tx.table(f"`{quoted}`").alter(change)
    number = lake.table(EVIL).id
    for path in (
        *("/", "/?q=<script>", "/snapshots", "/snapshots?author=<script>", "/jobs"),
        *(f"/tables/{number}?open=all", f"/tables/{number}/moult", f"/tables/{number}/files"),
        *("/snapshots/compare?a=1&b=3", f"/plan?table={number}", "/plan?sql=<script>"),
    ):
        found = page.tree(path)
        assert [s.get("src").partition("?")[0] for s in found.iter("script")] == [
            "/assets/htmx.min.js"
        ]
        assert [i.get("src").partition("?")[0] for i in found.iter("img")] == ["/assets/duck.svg"]
        assert list(found.iter("b")) + list(found.iter("i")) == []
        assert not [e for e in found.iter() if "style" in e.attrib]
        assert not [a for e in found.iter() for a in e.attrib if a.startswith(("on", "hx-on"))]
        assert "{{7*7}}" in page.text("/")


def test_the_page_asks_for_nothing_from_elsewhere(page, sql):
    sql("CREATE TABLE t (a INT)")
    for path in ("/", f"/tables/{page.id_of('t')}", "/jobs", "/plan"):
        links = [
            value
            for e in page.tree(path).iter()
            for name, value in e.attrib.items()
            if name in ("href", "src", "action", "hx-get", "hx-post")
        ]
        assert links
        assert all(link.startswith(("/", "#")) and not link.startswith("//") for link in links)


def test_a_password_is_not_shown(postgres_server, data_path):
    with postgres_server.fresh_database() as url:
        secret = url.replace("postgres@", "postgres:Gehe1m-Wort@")
        assert secret != url
        lake = Lake(secret, data_path)
        lake.create("t", a="int")
        with served(lake) as client:
            for path in ("/", "/jobs", "/nope", "/tables/1", "/tables/7", "/snapshots?kind=x"):
                text = client.get(path).text
                assert "Gehe1m" not in text
                assert "postgres:***@" in text
        lake.store.close()


def invoke(*arguments):
    return CliRunner().invoke(command_line, list(arguments))


def test_the_command_names_the_extra_that_is_missing(sqlite_url, monkeypatch):
    real = builtins.__import__

    def missing(name, *rest):
        if name == "shelduck.web.application":
            raise ModuleNotFoundError("No module named 'starlette'", name="starlette")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    found = invoke("ui", "-c", sqlite_url)
    assert (
        str(found.exception)
        == "'starlette' is not installed; run pip install '.[ui]' in your checkout of Shelduck"
    )


def test_the_command_refuses_what_it_cannot_serve(sqlite_url, lake):
    nothing = invoke("ui", "-c", f"{sqlite_url}.nothing")
    assert isinstance(nothing.exception, shelduck.NotFound)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        found = invoke("ui", "-c", lake.url, "--port", port)
    assert isinstance(found.exception, shelduck.InvalidRequest)
    assert f"cannot listen on 127.0.0.1:{port}" in str(found.exception)
    assert "choose another port with --port" in str(found.exception)
    huge = invoke("ui", "-c", lake.url, "--port", "99999")
    assert "cannot listen on 127.0.0.1:99999" in str(huge.exception)


def test_the_lake_is_not_created(sqlite_url, tmp_path):
    invoke("ui", "-c", sqlite_url)
    assert not (tmp_path / "catalog.db").exists()
    with pytest.raises(shelduck.NotFound):
        connect_existing(sqlite_url)
