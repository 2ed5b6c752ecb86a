"""``shelduck ui``: a lake in the browser."""

from __future__ import annotations

from typing import Annotated

import typer

from shelduck.cli.lakes import wanted_lake
from shelduck.cli.options import Catalog, console
from shelduck.errors import InvalidRequest, missing_extra

PORT = 8765
EXAMPLE = "Example: shelduck ui -c sqlite:///lake.db"


def ui(
    catalog: Catalog,
    port: Annotated[int, typer.Option(help="port on 127.0.0.1; 0 takes any free one")] = PORT,
    *,
    allow_changes: Annotated[
        bool, typer.Option("--allow-changes", help="show buttons that change the lake")
    ] = False,
) -> None:
    """Show the lake in a browser: tables, schemas through time, files, snapshots and jobs."""
    show(wanted_lake(catalog).catalog, port, allow_changes=allow_changes)


def show(url: str, port: int = PORT, *, allow_changes: bool = False) -> None:
    """Serve the page of a lake until Ctrl-C, and print its address."""
    try:
        from shelduck.web.serving import serve
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("shelduck"):
            raise
        raise InvalidRequest(missing_extra(error.name, "ui")) from error

    def tell(address: str) -> None:
        how = "changes allowed" if allow_changes else "read-only"
        console.print(f"{address} ({how}; stop with Ctrl-C)", markup=False, soft_wrap=True)

    serve(url, port, allow_changes=allow_changes, tell=tell)
