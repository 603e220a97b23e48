"""Steps of commands that run other commands: a heading, and the command that does the same alone."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Sequence
from pathlib import Path

import click

from heapwright._cli.output import stdout_columns


def print_heading(text: str) -> None:
    """Print the title of a step, after an empty line."""
    click.echo()
    click.secho(textwrap.fill(text, stdout_columns()), bold=True)


def print_command(words: Sequence[str | Path]) -> list[str]:
    """Print a command as a shell takes it, and return its words."""
    texts = [str(word) for word in words]
    width = stdout_columns() - 6
    lines = textwrap.wrap(shlex.join(texts), width, break_long_words=False, break_on_hyphens=False)
    click.echo("$ " + " \\\n    ".join(lines))
    return texts
