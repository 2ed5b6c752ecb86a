"""The command line: thin commands over the public API."""

from __future__ import annotations

from shelduck.cli.app import main

__all__ = ["main"]
