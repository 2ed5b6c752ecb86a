"""Names of processes at work, which tell others on the same machine whether they still live."""

from __future__ import annotations

import os
import socket
import uuid
from pathlib import Path


def new_identity() -> str:
    """Return a name for a writer or worker of this process that nobody else has."""
    return f"{_place()}/{os.getpid()}/{uuid.uuid4()}"


def is_gone(identity: str | None) -> bool:
    """Tell whether its process is known to be dead; False for None, and where a lease must tell."""
    if identity is None:
        return False
    place, _, rest = identity.partition("/")
    process = rest.partition("/")[0]
    if place != _place() or not process.isdigit():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _place() -> str:
    """Return where process ids mean something: the host, and what a container sees of it."""
    try:
        space = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        space = ""
    return f"{socket.gethostname()}{space}"
