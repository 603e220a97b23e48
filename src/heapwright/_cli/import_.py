"""`heapwright import`: a log of heap calls becomes a trace, a file of packets a packet table."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

from heapwright._cli.options import Bytes, read_traces, seed_option
from heapwright._cli.output import json_option, note, print_json, print_sentences
from heapwright._cli.pipes import called, from_stdin, to_stdout

if TYPE_CHECKING:
    from heapwright._traces.logs import Imported
    from heapwright._traces.recorded import Follow

PACKETS = ("capture", "tsh", "csv", "profile")
LOGS = (
    "text",
    "board",
    "valgrind",
    "mtrace",
    "heaptrack",
    "malloclab",
    "rmm",
    "kmem",
    "lttng",
    "perf",
    "bpftrace",
    "esp-idf",
    "nuttx",
    "sysview",
    "tracealyzer",
    "ltrace",
    "bytehound",
    "calls-csv",
)


@click.command("import")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path), callback=from_stdin)
@click.option(
    "--format", "format_name", type=click.Choice((*LOGS, *PACKETS)), help="The format of FILE; found without it."
)
@click.option(
    "--count",
    type=click.IntRange(min=1),
    metavar="N",
    help="Of a profile: how many packets; default, as many as it saw.",
)
@click.option(
    "--follow",
    type=click.Choice(["each", "one"]),
    default="each",
    help="Of a folder: a trace of each process, the default, or one of them all.",
)
@click.option(
    "--arena", type=Bytes(), metavar="BYTES", help="Of a log: what its heap had, as 131072 or 128K; as it says itself."
)
@click.option("--repair", is_flag=True, help="Of a log: put in the frees without which its arena could not hold it.")
@click.option(
    "--elf", metavar="ELF", type=click.Path(path_type=Path), help="Of a board's log: its program, which names sites."
)
@seed_option
@click.option(
    "--pattern",
    "patterns",
    multiple=True,
    metavar="EVENT=TEXT",
    help="Of a log in its own wording: its lines, as 'alloc=got {size} at {address}'; once for each kind of line.",
)
@click.option(
    "--heap", metavar="NAME", help="Of a log of several heaps: the one to import; without it a trace of each."
)
@click.option(
    "--failed-life",
    type=click.IntRange(min=0),
    metavar="CALLS",
    help="Of a log or a trace: how long the object of a failed request lives; default: as served ones of its size.",
)
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    required=True,
    type=click.Path(path_type=Path),
    callback=to_stdout,
    help="The trace or packet table to write, a Parquet file; - is stdout.",
)
@json_option
def command(
    file: Path,
    format_name: str | None,
    count: int | None,
    follow: Follow,
    arena: int | None,
    repair: bool,
    elf: Path | None,
    seed: int,
    patterns: tuple[str, ...],
    heap: str | None,
    failed_life: int | None,
    output: Path,
    as_json: bool,
) -> None:
    """Turn FILE into a trace or a packet table.

    A trace is made of a log of heap calls, as Valgrind, ltrace, mtrace, heaptrack, LTTng, perf, bpftrace, SystemView,
    Tracealyzer and others write it (`heapwright hooks bpftrace` and `hooks perf` give the scripts), or of lines that
    any program can print (docs/logs.md); --pattern reads lines in any wording. gzip, xz and zstd are undone. If FILE
    is a folder, it is one that a killed `heapwright record` left. With --failed-life it may be a trace.

    A packet table is made of a capture (pcap, pcapng), TSH (44 bytes a packet), CSV with a time and a length column, or
    a profile, as `heapwright profile PACKETS --json` prints it: then the packets are synthetic, --count and --seed say
    which, and the table says so.
    """
    from heapwright import _api as api

    is_log = _is_log(file, bool(patterns) or format_name in LOGS, format_name)
    if failed_life is not None and not is_log and format_name is None and _set_life(file, failed_life, output, as_json):
        return
    if not is_log:
        _reject_log_options(arena, repair, elf, patterns, heap, failed_life)
    if file.is_dir():
        _import_recording(file, output, follow, as_json)
    elif is_log:
        imported = api.convert_log(
            file,
            output,
            format=format_name,
            arena=arena,
            repair=repair,
            elf=elf,
            failed_life=failed_life,
            heap=heap,
            patterns=patterns,
        )
        _print_log(file, imported, output, as_json)
    elif format_name is None and (proposed := api.proposed_patterns(file)):
        raise api.no_pattern_error(file, proposed)
    else:
        _import_packets(file, format_name, count, seed, output, as_json)


def _is_log(file: Path, requested: bool, format_name: str | None) -> bool:
    """Whether a file is to be read as a log of heap calls: if that was requested, or it looks like one."""
    from heapwright import _api as api

    return not file.is_dir() and (requested or (format_name is None and api.is_log(file)))


def _reject_log_options(*values: object) -> None:
    """Raise UsageError if an option was given that only logs of heap calls have."""
    if any(value is not None and value is not False and value != () for value in values):
        options = "--arena, --repair, --elf, --pattern, --heap and --failed-life"
        raise click.UsageError(f"{options} are for logs of heap calls; leave them out")


def _set_life(file: Path, failed_life: int, output: Path, as_json: bool) -> bool:
    """Write a trace with another life of its failed requests; False if the file is no trace."""
    from heapwright import _api as api

    if file.is_dir() or not api.is_trace(file):
        return False
    (trace,) = read_traces((file,))
    changed = api.with_failed_life(trace, failed_life)
    changed.trace.write(output)
    if as_json:
        rows = {key: getattr(changed, key) for key in ("changed", "peak_bytes_before", "peak_bytes", "says")}
        print_json({"path": str(output), **rows})
    else:
        print_sentences([f"{changed.says}.", f"{called(output)}: {len(changed.trace):,} calls"])
    return True


def _import_recording(folder: Path, output: Path, follow: Follow, as_json: bool) -> None:
    from heapwright import _api as api
    from heapwright._cli.record import file_lines

    files = api.import_recording(folder, output, follow=follow)
    for line in file_lines(files):
        note(line)
    if as_json:
        print_json({"files": [dataclasses.asdict(file) for file in files]})


def _print_log(file: Path, imported: Imported, output: Path, as_json: bool) -> None:
    for line in (*imported.repairs, *imported.caveats):
        note(f"{file}: {line}")
    if imported.failures:
        note(f"{file}: {imported.failures}")
    if as_json:
        print_json(dataclasses.asdict(imported) | {"path": str(output)})
        return
    objects = f"{imported.live_objects_peak:,} object{'s' * (imported.live_objects_peak != 1)}"
    peak = f"peak {imported.requested_peak_bytes:,} B in {objects}"
    print_sentences([f"{called(output)}: {imported.calls:,} calls of a {imported.format} log, {peak}"])
    for other in imported.others:
        calls = f"{other.calls:,} call{'s' * (other.calls != 1)}"
        print_sentences([f"{other.path}: {calls}, peak {other.requested_peak_bytes:,} B: another heap"])


def _import_packets(
    file: Path, format_name: str | None, count: int | None, seed: int, output: Path, as_json: bool
) -> None:
    from heapwright import _api as api

    table = api.import_packets(file, format=format_name, count=count, seed=seed)
    table.write(output)
    warning = table.metadata.get("warning")
    if warning:
        note(f"{file}: {warning}")
    if as_json:
        print_json({"path": str(output), "packets": len(table), "warning": warning})
        return
    synthetic = " (synthetic)" if table.metadata.get("synthetic") == "true" else ""
    click.echo(f"{called(output)}: {len(table):,} packets over {table.ts_us[-1] / 1e6:.1f} s{synthetic}")
