"""`heapwright attack`: the faults that a heap detects, and when."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from heapwright._cli.options import CPUS, heap_argument
from heapwright._cli.output import json_option, print_json
from heapwright._cli.pipes import from_stdin
from heapwright._cli.renamed import repairs_requested

LEVELS = ("none", "frees", "neighbours", "full")


@click.command()
@heap_argument
@click.argument("trace", metavar="[TRACE]", required=False, type=click.Path(path_type=Path), callback=from_stdin)
@click.option("--checks", type=click.Choice(LEVELS), multiple=True, help="Level of checks. Repeat the flag for more.")
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Runs of each fault, default 200; trials of each technique, default 400.",
)
@click.option("--exploits", is_flag=True, help="Run twelve published exploitation techniques instead.")
@click.option(
    "--beside",
    metavar="HEAP",
    multiple=True,
    help="Another heap to compare with: also lib:NAME, PATH.so, PATH.c or ADAPTER=PATH. Repeat the flag for more.",
)
@click.option("--cpu", type=click.Choice(CPUS), help="An emulated processor to run it on; default is this machine.")
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(path_type=Path), help="Draw the counts: FILE.svg or FILE.html."
)
@json_option
def command(
    heap: str,
    trace: Path | None,
    checks: tuple[str, ...],
    runs: int | None,
    exploits: bool,
    beside: tuple[str, ...],
    cpu: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Inject eleven kinds of faults into a heap, and count which it detects, and when.

    HEAP is a zoo NAME, a RECIPE.toml or STUDY:ID. All levels of checks are tested unless --checks names some. Each run
    replays the calls of the trace, or a random program, on the generated C, in a process of its own or on an emulated
    processor, and injects one fault at a random call. A foreign heap of --beside has detected a fault if it stops the
    program.

    With --exploits twelve published techniques try to take control of a heap from one bug, each in many trials, with
    32-bit and 64-bit pointers. Control means that a word outside the arena changed, malloc returned a pointer outside
    the arena, or two objects overlap.
    """
    from heapwright import _api as api

    result = api.attack(
        heap,
        trace,
        checks=checks or None,
        runs=runs,
        repair=repairs_requested(),
        beside=beside,
        output=output,
        cpu=cpu,
        exploits=exploits,
    )
    if as_json:
        print_json(result)
        return
    if exploits:
        _print_exploits(result)
        return
    from heapwright._cli.tables import print_table

    headings = ["fault", "immediately", "late", "harmless", "silent", "crashed"]
    for level in result:
        rows = [
            [name, *(f"{count / info['runs']:.1%}" for key, count in info.items() if key != "runs")]
            for name, info in level["faults"].items()
        ]
        ended = ", ".join(f"{name} {times:,}" for name, times in level.get("signals", {}).items())
        title = f"checks of {level['checks']}" if level["checks"] else f"runs ended by {ended or 'no signal'}"
        title += f", on an emulated {level['cpu']}" if level["cpu"] else ""
        print_table(f"{level['heap']}, {title}", headings, [rows], left=("fault",))


def _print_exploits(result: list[dict[str, Any]]) -> None:
    from heapwright._cli.tables import print_table

    rows = [[name, *(_cell(level["exploits"][name]) for level in result)] for name in result[0]["exploits"]]
    headings = ["technique", *(f"{level['checks']} {level['width']}" for level in result)]
    print_table(f"{result[0]['heap']}, result of each technique", headings, [rows], left=("technique",))


def _cell(result: dict[str, Any]) -> str:
    if result["control"] is None:
        return "-" if result["result"] == "does not apply" else str(result["result"])
    return f"{result['control']}{', detected' if result['noticed'] else ''}".upper()
