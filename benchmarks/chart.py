"""Bars of ratios as SVG."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

_ROW, _LEFT, _WIDTH = 22, 210, 420
_MOST = 3.0
_COLOURS = {True: "#2e7d32", False: "#c62828"}


def chart(ratios: Mapping[str, float], title: str) -> str:
    """One bar for each name, 1.0 marked; a bar beyond the edge is cut and says its number."""
    height = _ROW * len(ratios) + 60
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 70}"'
            f' height="{height}" font-family="sans-serif" font-size="12">'
        ),
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="10" y="20" font-size="14" font-weight="bold">{escape(title)}</text>',
    ]
    for number, (name, found) in enumerate(ratios.items()):
        y = 34 + number * _ROW
        length = min(found, _MOST) / _MOST * _WIDTH
        lines += [
            f'<text x="{_LEFT - 8}" y="{y + 13}" text-anchor="end">{escape(name)}</text>',
            (
                f'<rect x="{_LEFT}" y="{y + 2}" width="{length:.0f}" height="{_ROW - 6}"'
                f' fill="{_COLOURS[found <= 1]}"/>'
            ),
            f'<text x="{_LEFT + length + 6:.0f}" y="{y + 13}">{found:.2f}</text>',
        ]
    one = _LEFT + _WIDTH / _MOST
    end = 34 + _ROW * len(ratios)
    lines += [
        (
            f'<line x1="{one:.0f}" y1="30" x2="{one:.0f}" y2="{end}" stroke="black"'
            ' stroke-dasharray="3 3"/>'
        ),
        f'<text x="{one:.0f}" y="{end + 14}" text-anchor="middle">1.0</text>',
        "</svg>",
    ]
    return "\n".join(lines) + "\n"
