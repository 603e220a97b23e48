"""`heapwright prove`: what holds after any few calls of a generated heap."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from heapwright._cli.options import Bytes, heap_argument
from heapwright._cli.output import SHUT, json_option, note, print_json, print_sentences, print_verdicts

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
    help="Allocations before the check.",
)
@click.option("--arena", type=Bytes(), metavar="BYTES", help="Arena; default its own data and 96 more.")
@click.option("--largest", type=Bytes(), default=32, show_default=True, metavar="BYTES", help="Largest request.")
@click.option(
    "--method",
    type=click.Choice(["cbmc", "enumeration"]),
    help="CBMC follows all sizes at once; enumeration runs each program. Default: enumeration for bins and buddies.",
)
@click.option("--unbounded", is_flag=True, help="Prove a fixed pool's contracts by Frama-C, for any number of calls.")
@click.option("--check", is_flag=True, help="As a gate: print one line, and exit with 3 where a property fails.")
@click.option("--junit", metavar="FILE", type=click.Path(path_type=Path), help="Write JUnit's XML, a case a harness.")
@json_option
def command(
    heap: str,
    calls: int,
    arena: int | None,
    largest: int,
    method: Literal["cbmc", "enumeration"] | None,
    unbounded: bool,
    check: bool,
    junit: Path | None,
    as_json: bool,
) -> None:
    """Prove what holds after any few calls of the heap that is generated, in a small arena; and try the edges of sizes.

    Checked are alignment, overlap, bounds and the checker's invariants, and that no access leaves the arena. What fails
    is told with the calls that show it, and makes the exit code 1, with --check 3. docs/proofs.md says what that means.
    """
    from heapwright import _api as api

    proof = api.prove(
        heap,
        calls=calls,
        arena=arena,
        largest=largest,
        method=method,
        unbounded=unbounded,
        junit=junit,
        progress=(lambda name: None) if check else lambda name: note(f"{name} ..."),
    )
    if as_json:
        print_json([proof.as_json()])
    elif check:
        print_verdicts([proof.verdict])
    else:
        _tell(proof)
    if proof.failed:
        raise click.exceptions.Exit(SHUT if check else 1)


def _tell(proof: Proof) -> None:
    """Print a line for each harness, and the calls that show what fails."""
    for harness in proof.harnesses:
        programs = "" if harness.programs is None else f"{harness.programs:,} programs, "
        text = f"{programs}{harness.properties} properties, {len(harness.failures)} failed, {harness.seconds:.0f} s"
        print_sentences([f"{proof.heap} {harness.name}: {text} ({harness.bounds})"])
        for what, calls in harness.failures.items():
            print_sentences([f"  FAILED {what}: {'; '.join(calls) or 'no call'}"])
