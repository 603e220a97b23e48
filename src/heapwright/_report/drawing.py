"""A picture in a file of its own: SVG, or a page that holds one."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heapwright._support.errors import HeapwrightError, ParameterError
from heapwright._support.names import xml_text
from heapwright._support.writing import write_text

SUFFIXES = (".svg", ".html")


def check_suffix(output: Path) -> None:
    """Raise ParameterError for a name under which nothing can be drawn."""
    if output.suffix not in SUFFIXES:
        raise ParameterError(f"{output}: a picture ends in {' or '.join(SUFFIXES)}", parameter="output")


_SUSPECT = re.compile(r"\\[bf]|\\u(?:00[0189]|007f|d[89a-f]|fff[ef])|\x7f")
"""How JSON spells a character that XML cannot hold; longer texts may spell others so, too."""


def svg_of(spec: Mapping[str, Any]) -> str:
    """A Vega-Lite specification as SVG. All texts in it, names from files among them, are made valid XML first.

    Raises ValueError if it cannot be drawn.
    """
    import vl_convert

    text = json.dumps(spec)
    if _SUSPECT.search(text):  # rare, and going through all data takes longer than this search
        text = json.dumps(_harmless(spec))
    drawing: str = vl_convert.vegalite_to_svg(text)
    return drawing


def _harmless(value: Any) -> Any:
    if isinstance(value, str):
        return xml_text(value)
    if isinstance(value, Mapping):
        return {key: _harmless(item) for key, item in value.items()}
    return [_harmless(item) for item in value] if isinstance(value, (list, tuple)) else value


def write_drawing(spec: dict[str, Any], title: str, description: str, output: Path) -> None:
    """Draw a Vega-Lite specification; ``description`` is for those who do not see it.

    Raises ParameterError for a name that `check_suffix` does not know, HeapwrightError where the file cannot be
    written or drawn.
    """
    check_suffix(output)
    try:
        drawing = svg_of(spec)
    except ValueError as error:
        raise HeapwrightError(f"{output}: cannot be drawn: {error}") from error
    # Vega leaves out a description of pictures that have several panels.
    drawing = drawing.replace("<svg ", f'<svg role="img" aria-label="{html.escape(description)}" ', 1)
    if output.suffix == ".html":
        drawing = (
            f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>\n'
            f"<body>{drawing}</body></html>\n"
        )
    write_text(output, drawing)
