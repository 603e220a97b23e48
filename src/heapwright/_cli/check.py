"""`heapwright check`: the heap's check in CI."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from heapwright._cli.completion import conditions
from heapwright._cli.options import (
    Bytes,
    growth_option,
    heap_option,
    recordings_argument,
    reserved_for_option,
)
from heapwright._cli.output import SHUT, json_option, print_json, print_verdicts
from heapwright._cli.pipes import from_stdin
from heapwright._cli.renamed import repairs_requested

if TYPE_CHECKING:
    from heapwright._studies.gate import Checked


@click.command()
@recordings_argument
@heap_option
@click.option(
    "--field",
    metavar="DUMP",
    multiple=True,
    type=click.Path(path_type=Path),
    callback=from_stdin,
    help="What a device sent: its app_field, raw or as hexadecimal digits in a log. Repeat for more.",
)
@click.option("--budget", type=Bytes(), metavar="BYTES", help="Fail if the recommended arena is larger: 131072, 128K.")
@click.option(
    "--fail-if",
    metavar="'KEY > VALUE'",
    shell_complete=conditions,
    multiple=True,
    help="Fail if this holds: 'accesses_malloc_max > 200', 'leaks > 0', or 'reserve_bytes > +5%' of the baseline. "
    "Repeat for more.",
)
@click.option(
    "--baseline",
    metavar="OLD",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A trace of an older version, or its --json output: changes are reported. Repeat the flag for more.",
)
@reserved_for_option
@growth_option
@click.option("--junit", metavar="FILE", type=click.Path(path_type=Path), help="Write JUnit XML, a test case per rule.")
@click.option("--sarif", metavar="FILE", type=click.Path(path_type=Path), help="Write SARIF, a result per failed rule.")
@json_option
def command(
    traces: tuple[Path, ...],
    heaps: tuple[str, ...],
    field: tuple[Path, ...],
    budget: int | None,
    fail_if: tuple[str, ...],
    baseline: tuple[Path, ...],
    held_out: tuple[Path, ...],
    growth: float,
    junit: Path | None,
    sarif: Path | None,
    as_json: bool,
) -> None:
    """Check heaps against rules on traces of today's build; the exit code is 3 if a rule fails.

    Arena sizes are those of `fit`, metrics those of `replay`. With --baseline a rule may be relative to the old value,
    and a failure names the objects that take more memory at the peak than before. Without rules the figures are
    printed; with --json they are a later --baseline.

    With --field the heap of a device is checked: it still fits, is drifting, or is too small, which fails. TRACE is
    the recording that the heap was tailored to, if neither the block nor a study knows it.
    """
    from heapwright import _api as api

    if not traces and not field:
        raise click.UsageError("Missing argument 'TRACE...', or --field DUMP.")
    checked = api.check(
        traces,
        heaps,
        fail_if,
        field=field,
        budget=budget,
        baseline=baseline,
        held_out=held_out,
        growth=growth,
        repair=repairs_requested(),
        junit=junit,
        sarif=sarif,
    )
    if as_json:
        print_json(api.described(checked))
    else:
        for item in checked:
            print_verdicts(item.sentences() or _figures(item))
    if not all(item.passed for item in checked):
        raise click.exceptions.Exit(SHUT)


def _figures(item: Checked) -> list[str]:
    from heapwright._studies.gate import ARENAS

    keys = (*ARENAS, "footprint_bytes", "accesses", "accesses_malloc_max", "accesses_free_max")
    text = ", ".join(f"{key} {item.values[key]:,}" for key in keys if item.values.get(key) is not None)
    return [*item.leak_sentences(), f"{item.trace} on {item.heap}: {text}"]
