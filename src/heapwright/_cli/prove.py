"""`heapwright prove`: bounded model checking of a generated heap."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from heapwright._cli.options import Bytes, heap_argument
from heapwright._cli.output import SHUT, json_option, print_json, print_sentences, print_verdicts
from heapwright._cli.progress import steps

if TYPE_CHECKING:
    from heapwright._api import Proof


@click.command()
@heap_argument
@click.option(
    "--calls",
    type=click.IntRange(2, 8),
    default=3,
    show_default=True,
    metavar="N",
    help="Allocations of a call sequence.",
)
@click.option("--arena", type=Bytes(), metavar="BYTES", help="Arena; default the control data and 96 bytes.")
@click.option("--largest", type=Bytes(), default=32, show_default=True, metavar="BYTES", help="Largest request.")
@click.option(
    "--method",
    type=click.Choice(["cbmc", "enumeration", "frama-c"]),
    help="CBMC covers all sizes at once, enumeration runs each call sequence: the default for bins and buddies. "
    "Frama-C proves a fixed pool's contracts for any number of calls.",
)
@click.option(
    "--junit", metavar="FILE", type=click.Path(path_type=Path), help="Write JUnit XML, a test case per harness."
)
@json_option
def command(
    heap: str,
    calls: int,
    arena: int | None,
    largest: int,
    method: Literal["cbmc", "enumeration", "frama-c"] | None,
    junit: Path | None,
    as_json: bool,
) -> None:
    """Check all short call sequences of the generated heap in a small arena, and test sizes at the limits.

    Alignment, overlap, bounds and the invariants of the heap are checked, and that no access leaves the arena. A
    property that fails is printed with the calls that show it, and the exit code is 3. The last line is the verdict.
    docs/proofs.md explains what is proved.
    """
    from heapwright import _api as api

    with steps() as report:
        proof = api.prove(
            heap,
            calls=calls,
            arena=arena,
            largest=largest,
            method=None if method == "frama-c" else method,
            unbounded=method == "frama-c",
            junit=junit,
            progress=lambda name: report(f"{name} ..."),
        )
    if as_json:
        print_json([proof.as_json()])
    else:
        _print_proof(proof)
    if proof.failed:
        raise click.exceptions.Exit(SHUT)


def _print_proof(proof: Proof) -> None:
    """Print a line per harness, the calls that show each failure, and the verdict."""
    for harness in proof.harnesses:
        programs = "" if harness.programs is None else f"{harness.programs:,} programs, "
        text = f"{programs}{harness.properties} properties, {len(harness.failures)} failed, {harness.seconds:.0f} s"
        print_sentences([f"{proof.heap} {harness.name}: {text} ({harness.bounds})"])
        for what, calls in harness.failures.items():
            print_sentences([f"  FAILED {what}: {'; '.join(calls) or 'no call'}"])
    print_verdicts([proof.verdict])
