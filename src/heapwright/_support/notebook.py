"""Tables of a notebook: HTML with nothing but text in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def escape(text: str) -> str:
    """Text as HTML."""
    from html import escape

    return escape(text)


def table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], after: str = "") -> str:
    """A table under a title, the first column to the left; `after` is HTML that follows."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(_cell(at, cell) for at, cell in enumerate(row))}</tr>" for row in rows)
    return (
        f"<table><caption>{escape(title)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{after}"
    )


def pairs(title: str, told: Mapping[str, str], after: str = "") -> str:
    """A table of a word and a value in each row."""
    return table(title, ("", ""), list(told.items()), after)


def folded(what: str, text: str) -> str:
    """Text that is shown where its reader asks for it."""
    return f"<details><summary>{escape(what)}</summary><pre>{escape(text)}</pre></details>"


def number(value: float | None) -> str:
    """A number for people; a dash for what is not known."""
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def _cell(at: int, text: str) -> str:
    return f'<td style="text-align:{"right" if at else "left"}">{escape(text)}</td>'
