"""`heapwright record`: run a program and keep its heap calls."""

from __future__ import annotations

import dataclasses
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from heapwright._cli.output import json_option, note, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heapwright._traces.record import Recording
    from heapwright._traces.recorded import Follow, Recorded

_SHOWN = 10


@click.command(name="record", context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False})
@click.option(
    "-o", "--output", metavar="TRACE", type=click.Path(path_type=Path), help="The trace; default PROGRAM.parquet."
)
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=1),
    help="End a process's recording after N calls; CMD goes on.",
)
@click.option(
    "--follow",
    type=click.Choice(["each", "one"]),
    default="each",
    help="A trace of each process, the default, or one of them all.",
)
@click.option("--sites", is_flag=True, help="Record the call site of each call.")
@json_option
@click.argument("cmd", metavar="CMD...", nargs=-1, required=True, type=click.UNPROCESSED)
def command(
    output: Path | None, limit: int | None, follow: Follow, sites: bool, as_json: bool, cmd: tuple[str, ...]
) -> None:
    """Run CMD and write its heap calls as a Parquet trace.

    Each process of CMD gets a trace of its own: the one with most calls is written to --output, the others next to it
    with their names added, more than ten in a folder. The trace of a forked process begins with the objects that it
    inherited. With --follow one, one trace holds the calls of all processes, ordered by time. CMD's input and output
    pass through (with --json its output goes to stderr). Ctrl-C goes to CMD; the recording is kept. If `record` itself
    is killed, `heapwright import` reads the folder that it leaves.
    """
    from heapwright._traces.record import record

    stdout = sys.stderr.fileno() if as_json else None
    recording = record(cmd, output, limit=limit, follow=follow, sites=sites, stdout=stdout, report=note)
    for line in _summary(recording):
        note(line)
    if as_json:
        files = [dataclasses.asdict(file) for file in recording.files]
        print_json({"files": files, "exit_status": recording.exit_status, "cost": dataclasses.asdict(recording.cost)})


def file_lines(files: Sequence[Recorded]) -> list[str]:
    """Say what was written, the largest first."""
    lines = []
    for file in files[:_SHOWN]:
        what = f"{file.events:,} calls of {file.name} (process {file.pid}, threads: {file.threads})"
        lines.append(f"{file.path}: {what}, peak {file.requested_peak_bytes:,} B in {file.live_objects_peak:,} objects")
        lines += [f"{file.path}: {note}" for note in file.notes]
    if len(files) > _SHOWN:
        lines.append(f"{files[-1].path.parent}: traces of {len(files) - _SHOWN} more processes (--json lists all)")
    return lines


def _summary(recording: Recording) -> list[str]:
    """Say what was written, how the program ended and what recording cost, a line each."""
    lines = file_lines(recording.files)
    if recording.exit_status < 0:
        lines.append(f"the program was ended by {signal.Signals(-recording.exit_status).name}")
    elif recording.exit_status > 0:
        lines.append(f"the program ended with exit status {recording.exit_status}")
    cost = recording.cost
    share = f"{100 * cost.share:.1f} % of the run's processor time"
    lines.append(f"{cost.events:,} calls, {cost.ns_per_event:.0f} ns a call of recording, {share}")
    return lines
