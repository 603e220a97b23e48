"""What every command shares in talking to the person: JSON on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from heapwright.explore.study import Study

json_option = click.option("--json", "as_json", is_flag=True, help="Print machine-readable JSON on stdout.")


def print_json(value: Any) -> None:
    """Write one JSON document to stdout; numpy numbers become plain ones."""
    json.dump(value, sys.stdout, default=_plain)
    sys.stdout.write("\n")


def note(text: str) -> None:
    """Tell something beside the result, a line on stderr."""
    click.echo(f"heapwright: {text}", err=True)


def note_partial(study: Study) -> None:
    """Say that a study holds a part of its space, if it does."""
    if study.complete is False:
        note(f"{study.path}: partial: {study.tried} recipes were tried; the others may be better")


def _plain(value: Any) -> Any:
    if hasattr(value, "item"):
        return value.item()
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)
