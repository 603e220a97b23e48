"""`heapwright diagnose`: the fault of a heap, from telemetry, counters, snapshots, logs or traces."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from heapwright._cli import completion
from heapwright._cli.options import Bytes
from heapwright._cli.output import json_option, note, print_json, print_sentences
from heapwright._cli.pipes import called, from_stdin

if TYPE_CHECKING:
    from heapwright._api.diagnosis import Diagnosis, Finding


@click.command()
@click.argument(
    "files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path), callback=from_stdin
)
@click.option(
    "--heap",
    "heaps",
    metavar="HEAP",
    multiple=True,
    shell_complete=completion.heaps,
    help="The allocator in use, on which traces are replayed, as for `fit`; default: that of the log, else "
    "freertos-heap4. Repeat the flag for allocators to try.",
)
@click.option("--arena", type=Bytes(), metavar="BYTES", help="Size of the heap in use, as 131072 or 128K.")
@click.option(
    "-o", "--output", metavar="OUT", type=click.Path(path_type=Path), help="Picture to draw: OUT.svg or OUT.html."
)
@json_option
def command(
    files: tuple[Path, ...], heaps: tuple[str, ...], arena: int | None, output: Path | None, as_json: bool
) -> None:
    """Say what is wrong with a heap, and what cures it.

    FILE is any of: free memory and largest block over time (CSV, JSON lines, or the lines of any program),
    counters (mallinfo, malloc_stats, lwIP's stats, heap_caps_print_heap_info, `free` of NuttX, ...), one or several
    lists of blocks with addresses, a heap trace of ESP-IDF, a log of heap calls in any wording, a trace, or a study.
    What it is, is found out.

    The first line says what is wrong: a leak, fragmentation, too small, the wrong memory, a burst, nothing, or not
    enough data; and how certain that is. The steps that cure it are tried by replay if every heap call is there.
    """
    from heapwright import _api as api

    result = api.diagnose(list(files), heap=list(heaps), arena=arena, output=output)
    for info in result.notes:
        note(info)
    if as_json:
        print_json(_plain(result))
        return
    _print(result)


_WHOLE = re.compile(r"\d{1,3}(?:,\d{3})*")


def _plain(result: Diagnosis) -> dict[str, Any]:
    findings = [asdict(item) for item in result.findings]
    for item in findings:
        item.pop("picture")
        rows = [[_number(cell) for cell in row] for row in item.pop("rows")]
        item["numbers"] = [dict(zip(item["heads"], row, strict=True)) for row in rows]
        item.pop("heads")
    return {
        "kind": result.kind,
        "confidence": result.confidence,
        "sentence": result.sentence,
        "files": [{"path": called(name), "form": form} for name, form in result.files.items()],
        "findings": findings,
        "notes": list(result.notes),
    }


def _number(cell: str) -> str | int:
    return int(cell.replace(",", "")) if _WHOLE.fullmatch(cell) else cell


def _print(result: Diagnosis) -> None:
    print_sentences([_headline(result.finding)])
    for name, form in result.files.items():
        print_sentences([f"{called(name)}: {form}"])
    for finding in result.findings:
        click.echo()
        if finding.sentence not in result.sentence:
            print_sentences([_headline(finding)])
        _show(finding)
    if result.finding.record_next:
        print_sentences([f"Record next: {result.finding.record_next}."])


def _headline(finding: Finding) -> str:
    return f"{finding.kind[0].upper()}{finding.kind[1:]} ({finding.confidence}): {finding.sentence}."


def _show(finding: Finding) -> None:
    from heapwright._cli.tables import print_table

    if finding.rows:
        print_table(finding.memory, finding.heads, [finding.rows], [finding.heads[0], "call site", "owner", "caller"])
    tried = [cure for cure in finding.cures if cure.after is not None]
    if tried:
        rows = [[cure.text, "-" if cure.before is None else f"{cure.before:,}", f"{cure.after:,}"] for cure in tried]
        head = "what takes less memory, by replay" if finding.kind == "nothing wrong" else "what cures it, by replay"
        print_table("", [head, "bytes before", "after"], [rows], [head])
    else:
        steps = [f"- {cure.text}" + (f" (`{cure.command}`)" if cure.command else "") for cure in finding.cures]
        if steps:
            click.echo("What may cure it:")
            print_sentences(steps)
            click.echo()
