"""What every command shares in talking to the person: JSON on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

json_option = click.option("--json", "as_json", is_flag=True, help="Print machine-readable JSON on stdout.")


def print_json(value: Any) -> None:
    """Write one JSON document to stdout; numpy numbers become plain ones."""
    json.dump(value, sys.stdout, default=_plain)
    sys.stdout.write("\n")


def _plain(value: Any) -> Any:
    if hasattr(value, "item"):
        return value.item()
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)
