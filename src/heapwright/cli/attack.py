"""`heapwright attack`: which faults a heap notices, and when."""

from __future__ import annotations

from pathlib import Path

import click

from heapwright.cli.options import repair_option, seed_option
from heapwright.cli.output import json_option, print_json

LEVELS = ("none", "frees", "neighbours", "full")


@click.command()
@click.argument("heap", metavar="HEAP")
@click.argument("trace", metavar="[TRACE]", required=False, type=click.Path(path_type=Path))
@click.option("--checks", type=click.Choice(LEVELS), multiple=True, help="Level of checks; repeat the flag for more.")
@click.option(
    "--runs", type=click.IntRange(min=1), default=200, show_default=True, metavar="N", help="Runs of each fault."
)
@seed_option
@repair_option
@json_option
def command(
    heap: str, trace: Path | None, checks: tuple[str, ...], runs: int, seed: int, repair: bool, as_json: bool
) -> None:
    """Commit eleven faults on a heap, and count which it notices, and when.

    HEAP is a zoo NAME, a RECIPE.toml or STUDY:ID; its own level of checks does not matter, as all are tried unless
    --checks names some. Each run replays the calls of the trace, or a random program, on the generated C in a process
    of its own, and commits one fault at a random call.
    """
    from heapwright import api

    found = api.attack(heap, trace, checks=checks or None, runs=runs, seed=seed, repair=repair)
    if as_json:
        print_json(found)
        return
    from heapwright.cli.tables import print_table

    headings = ["fault", "at once", "later", "harmless", "silent", "crashed"]
    for level in found:
        rows = [
            [name, *(f"{count / told['runs']:.1%}" for key, count in told.items() if key != "runs")]
            for name, told in level["faults"].items()
        ]
        print_table(f"{level['heap']}, checks of {level['checks']}", headings, [rows], left=("fault",))
