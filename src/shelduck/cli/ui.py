"""``shelduck ui``: a lake in the browser."""

from __future__ import annotations

from typing import Annotated

import typer

from shelduck.cli.options import Catalog, console
from shelduck.errors import InvalidRequest


def ui(
    catalog: Catalog,
    port: Annotated[int, typer.Option(help="port on 127.0.0.1; 0 takes any free one")] = 8765,
    *,
    allow_changes: Annotated[
        bool, typer.Option("--allow-changes", help="show buttons that change the lake")
    ] = False,
) -> None:
    """Show the lake in a browser: tables, schemas through time, files, snapshots and jobs."""
    try:
        from shelduck.web.serving import serve  # noqa: PLC0415 - only this command needs the extra
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("shelduck"):
            raise
        raise InvalidRequest(
            f"{error.name!r} is not installed; run pip install 'shelduck[ui]'"
        ) from error

    def tell(address: str) -> None:
        how = "changes allowed" if allow_changes else "read-only"
        console.print(f"{address} ({how}; stop with Ctrl-C)", markup=False, soft_wrap=True)

    serve(catalog, port, allow_changes=allow_changes, tell=tell)
