"""Files that no other user of the machine can have written."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_GROUP, _OTHERS = 0o020, 0o002
_ROOT = 0


def require_private(path: Path) -> None:
    """Raise PermissionError if another user, but for root, can write a file or put another there.

    ``path`` is absolute and without links. Of the directories above its own, groups may write those
    of the user's own group, which many systems give to one user alone.
    """
    if not hasattr(os, "geteuid"):
        return
    for place in (path, *path.parents):
        found = place.lstat()
        is_near = place in (path, path.parent)
        others = _OTHERS
        if is_near or found.st_gid != os.getegid():
            others |= _GROUP
        # In a sticky directory, only the owner of a file replaces it.
        is_sticky = bool(found.st_mode & stat.S_ISVTX) and not is_near
        is_ours = found.st_uid in (os.geteuid(), _ROOT)
        if stat.S_ISLNK(found.st_mode) or not is_ours or (found.st_mode & others and not is_sticky):
            raise PermissionError(f"another user can write {place}")
