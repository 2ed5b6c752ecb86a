"""Names of processes at work, which tell others on the same machine whether they still live."""

from __future__ import annotations

import os
import socket
import uuid


def new_identity() -> str:
    """Return a name for a writer or worker of this process that nobody else has."""
    return f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4()}"


def is_gone(identity: str) -> bool:
    """Tell whether its process is known to be dead; False where only its lease can tell."""
    host, _, rest = identity.partition("/")
    process = rest.partition("/")[0]
    if host != socket.gethostname() or not process.isdigit():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
