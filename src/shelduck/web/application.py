"""The page as a server on 127.0.0.1: which address shows which page, and what errors look like."""

from __future__ import annotations

import socket
import traceback
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from hashlib import sha256

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

import shelduck.doors.subjects  # noqa: F401 - lets subjects take part in plans
from shelduck.catalog.databases.store import open_store
from shelduck.catalog.schema.lake_schema import open_lake
from shelduck.errors import (
    CatalogUnavailable,
    Conflict,
    InvalidRequest,
    NotFound,
    ShelduckError,
    Unsupported,
)
from shelduck.lake.state import LakeState
from shelduck.web.guard import Guard, GuardMiddleware
from shelduck.web.pages import files_page, jobs_page, lake_page, story_page, table_pages
from shelduck.web.site import ASSETS, Site

Page = Callable[[Site, Request], Response]
_PAGES: dict[str, Page] = {
    "/": lake_page.show,
    "/tables/{table:int}": story_page.show,
    "/tables/{table:int}/definition": table_pages.show_definition,
    "/tables/{table:int}/moult": table_pages.show_moult,
    "/tables/{table:int}/files": files_page.show,
    "/tables/{table:int}/rows": table_pages.show_rows,
    "/views/{view:int}": table_pages.show_view,
    "/snapshots": lake_page.show_log,
    "/snapshots/compare": lake_page.compare,
    "/jobs": jobs_page.show,
    "/plan": table_pages.show_plan,
    "/branches": lake_page.show_branches,
    "/branches/diff": lake_page.show_branch,
}
_STATUS: tuple[tuple[type[ShelduckError], int], ...] = (
    (NotFound, 404),
    (InvalidRequest, 400),
    (Unsupported, 422),
    (Conflict, 409),
    (CatalogUnavailable, 503),
)
HOST = "127.0.0.1"


def serve(
    url: str, port: int, *, allow_changes: bool, shows_rows: bool, tell: Callable[[str], None]
) -> None:
    """Serve the page of a lake until Ctrl-C; ``tell`` gets the address when it can be opened.

    ``port`` 0 takes any free port. ``shows_rows`` adds a page of rows to each table. Raises
    NotFound if there is no lake, and InvalidRequest if the port is taken.
    """
    store = open_store(url)
    try:
        state = LakeState(store, open_lake(store), show_progress=False)
        with listening(port) as listener:
            guard = Guard(listener.getsockname()[1], allow_changes)
            config = uvicorn.Config(
                make_app(state, guard, url if shows_rows else None),
                log_level="warning",
                access_log=False,
                server_header=False,
                lifespan="off",
            )
            tell(guard.address)
            uvicorn.Server(config).run(sockets=[listener])
    finally:
        store.close()


def listening(port: int) -> socket.socket:
    """Return a socket that listens on a port of this machine; 0 takes any free one."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen()
    except (OSError, OverflowError) as error:
        listener.close()
        raise InvalidRequest(
            f"cannot listen on {HOST}:{port}: {error}; choose another port with --port"
        ) from error
    return listener


def make_app(state: LakeState, guard: Guard, rows_from: str | None = None) -> Starlette:
    """Return the application that shows a lake; ``rows_from`` is as in `Site`."""
    state.starts_spark = False
    parts = b"".join(path.read_bytes() for path in sorted(ASSETS.iterdir()))
    site = Site(state, guard, sha256(parts).hexdigest()[:12], rows_from)
    return Starlette(
        routes=[
            *(Route(path, partial(_answer, site, page)) for path, page in _PAGES.items()),
            *(
                Route(f"/jobs/{{job:int}}/{act}", partial(_answer, site, page), methods=["POST"])
                for act, page in jobs_page.ACTS.items()
            ),
            Mount("/assets", _Assets(directory=ASSETS)),
        ],
        middleware=[Middleware(GuardMiddleware, guard=guard)],
        exception_handlers={HTTPException: partial(_missing, site)},
    )


def _answer(site: Site, page: Page, request: Request) -> Response:
    try:
        # The page of rows opens the catalog, and closes it for DuckDB.
        with site.door(), nullcontext() if page is table_pages.show_rows else site.opened():
            return page(site, request)
    except ShelduckError as error:
        status = next((code for kind, code in _STATUS if isinstance(error, kind)), 500)
        return _error(site, request, status, type(error).__name__, str(error))
    except Exception as error:  # noqa: BLE001 - a page that fails must not end the server
        # The catalog's store has hidden the secrets of its address in the error.
        traceback.print_exception(error)
        message = "this page failed; the terminal of shelduck ui says where"
        return _error(site, request, 500, type(error).__name__, message)


class _Assets(StaticFiles):
    """Files whose address changes with their content, so that browsers may keep them."""

    def file_response(self, *args: object, **options: object) -> Response:
        response = super().file_response(*args, **options)  # type: ignore[arg-type]
        response.headers["Cache-Control"] = "max-age=31536000, immutable"
        return response


def _error(site: Site, request: Request, status: int, kind: str, message: str) -> Response:
    return site.render(request, "error.html", status, kind=kind, message=message)


def _missing(site: Site, request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = "this page does not exist" if error.status_code == 404 else error.detail
    return _error(site, request, error.status_code, "Error", message)
