"""``python -m shelduck.cli``."""

from __future__ import annotations

from shelduck.cli.app import main

if __name__ == "__main__":
    main()
