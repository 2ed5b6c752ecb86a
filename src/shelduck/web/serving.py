"""The server: one process on 127.0.0.1, until it is interrupted."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn

from shelduck.catalog.databases.store import open_store
from shelduck.catalog.schema.lake_schema import open_lake
from shelduck.errors import InvalidRequest
from shelduck.web.application import make_app
from shelduck.web.guard import Guard
from shelduck.work.state import LakeState

HOST = "127.0.0.1"


def serve(url: str, port: int, *, allow_changes: bool, tell: Callable[[str], None]) -> None:
    """Serve the page of a lake until Ctrl-C; ``tell`` gets the address when it can be opened.

    ``port`` 0 takes any free port. Raises NotFound if there is no lake, and InvalidRequest if the
    port is taken.
    """
    store = open_store(url)
    try:
        state = LakeState(store, open_lake(store), show_progress=False)
        with listening(port) as listener:
            guard = Guard(listener.getsockname()[1], allow_changes)
            config = uvicorn.Config(
                make_app(state, guard),
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
