"""`heapwright fit`: find the arena to reserve for a trace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from heapwright.cli.options import (
    heap_option,
    read_traces,
    repair_option,
    replayed_argument,
    reserved_for_option,
    seed_option,
    word_size_option,
)
from heapwright.cli.output import check_errors, json_option, note, print_rows, print_sentences

if TYPE_CHECKING:
    from heapwright.api import Fit


@click.command()
@replayed_argument
@heap_option
@click.option("--step", type=click.IntRange(min=1), metavar="BYTES", help="Precision; default one alignment unit.")
@click.option(
    "--copies",
    type=click.IntRange(min=0),
    metavar="N",
    help="Perturbed copies that the reserved arena must serve; default 8, fewer of long traces.",
)
@reserved_for_option
@click.option(
    "--share",
    type=click.FloatRange(0, 1, min_open=True),
    metavar="SHARE",
    default=1.0,
    show_default=True,
    help="Share of the copies that it must serve.",
)
@seed_option
@word_size_option
@repair_option
@json_option
def command(
    traces: tuple[Path, ...],
    heaps: tuple[str, ...],
    step: int | None,
    copies: int | None,
    held_out: tuple[Path, ...],
    share: float,
    seed: int,
    word_size: Literal[32, 64] | None,
    repair: bool,
    as_json: bool,
) -> None:
    """Find the arena to reserve.

    The smallest serves the trace; the safe one and every larger one do; the reserved one serves perturbed copies of the
    trace, as "trace copies" makes them, and held-out traces, too. All count control data. Where nothing proves that
    larger arenas serve, many are tried.

    Foreign heaps are programs: what --heap names, and the adapter beside it, is compiled and run with your rights.
    """
    from heapwright import api

    read = read_traces(traces, repair)
    for told in (told for trace in read for told in trace.notes):
        note(told)
    found = api.fit(
        read,
        heaps,
        step=step,
        copies=copies,
        held_out=read_traces(held_out, repair),
        share=share,
        seed=seed,
        word_size=word_size,
    )
    assert isinstance(found, list)
    check_errors(found)
    if as_json:
        print_rows(found)
        return
    from heapwright.cli.tables import number, print_table

    cells = [
        [
            fit.trace,
            fit.heap,
            number("smallest_arena_bytes", fit.smallest_arena_bytes),
            number("safe_arena_bytes", fit.safe_arena_bytes),
            _how_sure(fit),
            number("reserve_bytes", fit.reserve_bytes),
            number("worst_case_bytes", fit.worst_case_bytes),
            "-" if fit.reach_bytes is None else f"{fit.reach_bytes:,}",
        ]
        for fit in found
    ]
    headings = ["trace", "heap", "smallest arena", "safe arena", "how sure", "reserve", "worst case", "reach"]
    print_table("Arenas in bytes", headings, [cells], left=("trace", "heap", "how sure"))
    for count in dict.fromkeys(fit.copies for fit in found):
        _tell_reserve(count, share, len(held_out))
    for fit in found:
        if fit.error:
            print_sentences([f"No arena: {fit.error}"])
        elif fit.smallest_arena_bytes is None and fit.reserve_bytes is not None:
            print_sentences([f"{fit.heap}: gets its memory from the system; its reserve is the most that it took."])
        elif fit.refused:
            print_sentences([f"{fit.heap}: refused in any arena that it reaches: {', '.join(fit.refused)}"])


def _tell_reserve(copies: int, share: float, held_out: int) -> None:
    of_copies = f"{copies} perturbed copies of it" if share == 1 else f"{share:.0%} of {copies} perturbed copies of it"
    others = [of_copies] * (copies > 0) + [f"held-out traces: {held_out}"] * (held_out > 0)
    if others:
        print_sentences([f"The reserve is enough for the trace and for {', '.join(others)}."])


def _how_sure(fit: Fit) -> str:
    if fit.safe_arena_bytes is None:
        return "-"
    return "proved" if fit.safe_proved else f"{fit.safe_tried:,} larger ones tried"
