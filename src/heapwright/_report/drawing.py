"""A picture in a file of its own: SVG, or a page that holds one."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

from heapwright._support.errors import HeapwrightError, ParameterError
from heapwright._support.writing import write_text

SUFFIXES = (".svg", ".html")


def check_suffix(output: Path) -> None:
    """Raise ParameterError for a name under which nothing can be drawn."""
    if output.suffix not in SUFFIXES:
        raise ParameterError(f"{output}: a picture ends in {' or '.join(SUFFIXES)}", parameter="output")


def write_drawing(spec: dict[str, Any], title: str, description: str, output: Path) -> None:
    """Draw a Vega-Lite specification; ``description`` is for those who do not see it.

    Raises ParameterError for a name that `check_suffix` does not know, HeapwrightError where the file cannot be
    written or drawn.
    """
    import vl_convert

    check_suffix(output)
    try:
        drawing: str = vl_convert.vegalite_to_svg(json.dumps(spec))
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
