"""Output: JSON, sentences, notes and exit codes of all commands.

A command's result goes to stdout, with --json as one document and nothing else. Notes and progress go to stderr.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import shutil
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from heapwright._cli.pipes import called
from heapwright._support.errors import HeapwrightError
from heapwright._support.names import printable

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from heapwright._api import Fit, Replay
    from heapwright._studies.analysis import Analysis
    from heapwright._traces.trace import Trace

json_option = click.option("--json", "as_json", is_flag=True, help="Print machine-readable JSON on stdout.")


SHUT = 3
"""The exit code of a check that fails."""

LONGEST_LINE = 4000


PIPED_COLUMNS = 100
"""Width of a line if stdout is no terminal and the variable COLUMNS is not set."""


def stdout_columns() -> int:
    """Width of a line on stdout: that of the terminal, else COLUMNS or `PIPED_COLUMNS`."""
    if sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    requested = os.environ.get("COLUMNS", "")
    return int(requested) if requested.isdecimal() and int(requested) else PIPED_COLUMNS


WORDS = "heapwright.words"
"""Where the words of the command line are kept, in a context's `meta`."""


def command_line() -> str:
    """The command line that runs, as a shell takes it."""
    return shlex.join(click.get_current_context().meta[WORDS])


def print_json(value: Any) -> None:
    """Write one JSON document to stdout; numpy numbers become plain ones."""
    sys.stdout.write(json.dumps(value, default=_plain) + "\n")  # json.dump itself takes six times as long


def print_rows(result: Sequence[DataclassInstance]) -> None:
    """Write one JSON array of the results for each trace and heap.

    `error` stands only in what failed, `memories` only with a recipe in several, `failed_low` only with priorities,
    `options` only if the system is known.
    """
    rows = map(dataclasses.asdict, result)
    optional: dict[str, Any] = {"error": None, "memories": {}, "failed_low": None, "options": ()}
    print_json([{key: value for key, value in row.items() if optional.get(key, ...) != value} for row in rows])


def print_sentences(sentences: Sequence[str]) -> None:
    """Print each sentence on lines no longer than `stdout_columns`, the later ones indented."""
    width = stdout_columns()
    for sentence in map(called, map(printable, sentences)):
        indent = " " * (len(sentence) - len(sentence.lstrip()) + 2)
        lines = textwrap.wrap(sentence, width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)
        click.echo("\n".join(lines))


def print_verdicts(sentences: Sequence[str]) -> None:
    """Print each sentence on a line of its own, where no person reads: build servers look for them."""
    if sys.stdout.isatty():
        print_sentences(sentences)
    else:
        click.echo("\n".join(map(called, map(printable, sentences))))


def check_errors(result: Sequence[Replay | Fit]) -> None:
    """Fail if every heap has failed; otherwise the reasons are in the rows of those that have."""
    if all(item.error for item in result):
        raise HeapwrightError("; ".join(dict.fromkeys(str(item.error) for item in result)))


def written(trace: Trace, path: Path) -> dict[str, Any]:
    """The JSON of a written trace."""
    return {
        "path": called(path),
        "events": len(trace),
        "requested_peak_bytes": trace.peak_live_bytes,
        "live_objects_peak": trace.peak_live_objects,
        "metadata": trace.metadata,
    }


def print_written(trace: Trace, path: Path) -> None:
    """Print the summary of a written trace."""
    peak = f"peak {trace.peak_live_bytes:,} B in {trace.peak_live_objects:,} objects"
    print_sentences([f"{called(path)}: {len(trace):,} calls, {peak}"])


def note(text: str) -> None:
    """Print a note or the progress on stderr, one line, cut if it quotes a huge name."""
    shown = text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]}..."
    click.echo(f"heapwright: {called(printable(shown))}", err=True)


def note_partial(study: Analysis) -> None:
    """Note that a study is partial, if it is."""
    if info := study.caveat:
        note(info)


def _plain(value: Any) -> Any:
    if hasattr(value, "item"):
        return value.item()
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)
