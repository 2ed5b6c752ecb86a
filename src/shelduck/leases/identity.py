"""Names of active processes, by which others on the same machine know whether they are alive."""

from __future__ import annotations

import os
import socket
import uuid
from pathlib import Path


def new_identity() -> str:
    """Return a unique name for a writer or worker of this process."""
    return f"{_place()}/{os.getpid()}/{uuid.uuid4()}"


def is_gone(identity: str | None) -> bool:
    """Return whether its process is known to be dead; False if unknown, or if there is none."""
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
    """Return the host and the container in which process ids are unique."""
    try:
        space = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        space = ""
    return f"{socket.gethostname()}{space}"
