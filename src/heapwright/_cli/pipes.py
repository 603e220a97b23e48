"""The file name -: stdin for inputs, stdout for a written trace or log."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import Any

import click

from heapwright._support.names import addressed
from heapwright._support.temporary import temporary_folder

DASH = "-"
_READ = "heapwright.stdin"
_WRITTEN = "stdout"


def from_stdin(ctx: click.Context, _: click.Parameter, value: Any) -> Any:
    """Read stdin into a file for each - among paths; a callback of arguments and options."""
    if isinstance(value, tuple):
        return tuple(_read(ctx, item, "stdin") for item in value)
    return _read(ctx, value, "stdin")


def recipe_from_stdin(ctx: click.Context, _: click.Parameter, value: Any) -> Any:
    """Read a recipe from stdin into a file for each - among names of heaps; a callback of arguments and options."""
    if isinstance(value, tuple):
        return tuple(_read(ctx, item, "stdin.toml") for item in value)
    return _read(ctx, value, "stdin.toml")


def _read(ctx: click.Context, value: Path | str | None, name: str) -> Path | str | None:
    if str(value) != DASH:
        return value
    path: Path | None = ctx.meta.get(_READ)
    if path is None:
        path = ctx.meta[_READ] = Path(ctx.with_resource(temporary_folder("stdin")), name)
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
    if path.name != name:
        raise click.UsageError("stdin is a trace and a heap at once; give one of them as a file")
    return path if isinstance(value, Path) else str(path)


def called(text: Path | str) -> str:
    """A path, or a text with paths, as users know them: stdin and stdout by name, addresses with two slashes."""
    text = addressed(text)
    return re.sub(r"[^\s:'\"(]*/heapwright-std(?:in|out)-\w+/(stdin|stdout)(\.toml)?", r"\1", text)


def to_stdout(ctx: click.Context, _: click.Parameter, value: Path | None) -> Path | None:
    """Write a file for -, and send it to stdout at the end; what is printed meanwhile goes to stderr.

    A callback of options.
    """
    if value is None or str(value) != DASH:
        return value
    path = ctx.with_resource(temporary_folder(_WRITTEN)) / _WRITTEN
    stdout = sys.stdout

    def send() -> None:
        sys.stdout = stdout
        if path.exists():  # not where the command failed
            with path.open("rb") as file:
                shutil.copyfileobj(file, stdout.buffer)
            stdout.buffer.flush()

    ctx.call_on_close(send)  # which runs before the folder goes
    sys.stdout = sys.stderr
    return path
