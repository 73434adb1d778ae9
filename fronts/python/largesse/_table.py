"""Tables as text for terminals, and as HTML for notebooks."""

from __future__ import annotations

import html
from typing import Any, Sequence

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


def size(count: float) -> str:
    """Returns a number of bytes in the unit in which it has at most four digits before the point.

    >>> size(80_000_000)
    '76.3 MiB'
    """
    unit = 0
    while count >= 1024 and unit + 1 < len(_UNITS):
        count /= 1024
        unit += 1
    return f"{count:.0f} bytes" if unit == 0 else f"{count:.1f} {_UNITS[unit]}"


def counted(count: int, noun: str) -> str:
    """Returns a count and its noun, whose plural ends in s.

    >>> counted(1, "page"), counted(3, "page")
    ('1 page', '3 pages')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"


def text(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Returns a table as text, whose columns are as wide as their longest cell."""
    cells = [list(columns), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(columns))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells)


def as_html(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Returns a table as HTML, for a notebook."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(_cell(value))}</td>" for value in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    return "unknown" if value is None else "yes" if value is True else "no" if value is False else str(value)
