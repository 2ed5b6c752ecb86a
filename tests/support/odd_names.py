"""Texts that paths, URIs, globs and shells take for something else."""

from __future__ import annotations

VALUES = [
    *("A+B", "A%2BB", "a%b", "%", "%%", "100%25", "New York", " x", "x ", "Zürich", "Zu\u0308rich"),
    *("😀", "日本", "#", "a#b", "?", "a?b=c&d", "a:b", "a;b", "a@b", "a,b", "a=b", "[x]", "{x,y}"),
    *("*", "a\\b", "a/b", "a//b", ".", "..", "../x", "a'b", 'a"b', "a`b", "<x>", "a|b", "~", "$x"),
    *("(x)", "a&b", "", "\t", "a\nb", "__HIVE_DEFAULT_PARTITION__", "NULL", ".x", "_x"),
]

# A column also has no value, and long ones: the name of a directory has at most 255 bytes.
LONG = "x" * 200
ODD = [*VALUES, None, LONG]

# Those that object stores need most; a request to one costs more than a file on a disk.
FEW = ["A+B", "A%2BB", "a%b", "New York", "Zürich", "#", "a?b=c&d", "a/b", "..", ""]
