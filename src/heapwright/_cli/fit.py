"""`heapwright fit`: the arena size that a trace needs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import click

from heapwright._cli.completion import platforms
from heapwright._cli.options import (
    ByteList,
    growth_option,
    heap_option,
    live_option,
    read_traces,
    replayed_argument,
    reserved_for_option,
    word_size_option,
)
from heapwright._cli.output import check_errors, json_option, note, print_rows, print_sentences

if TYPE_CHECKING:
    from heapwright._api import Fit
    from heapwright._traces.trace import Trace


class _Column(NamedTuple):
    """A heading, and the attribute of `Fit` below it; None: the guarantee."""

    heading: str
    key: str | None


_COLUMNS = (
    _Column("minimum", "smallest_arena_bytes"),
    _Column("monotone\nminimum", "safe_arena_bytes"),
    _Column("guarantee", None),
    _Column("recommended", "reserve_bytes"),
    _Column("fragmentation\nbound", "worst_case_bytes"),
)


@click.command()
@replayed_argument
@heap_option
@click.option(
    "--copies",
    type=click.IntRange(min=0),
    metavar="N",
    help="Perturbed copies at the recorded load that the recommended size must complete, too; default none.",
)
@click.option(
    "--regions",
    type=ByteList(),
    metavar="BYTES,...",
    help="Place objects in 2 to 4 memory regions of these sizes, each with the heap: every order, the best first.",
)
@click.option(
    "--platform",
    metavar="NAME",
    shell_complete=platforms,
    help="Size recipes as generated for this system, and print its options: freertos, zephyr, esp-idf, lvgl ...",
)
@reserved_for_option
@growth_option
@live_option
@word_size_option
@json_option
def command(
    traces: tuple[Path, ...],
    heaps: tuple[str, ...],
    copies: int | None,
    regions: tuple[int, ...] | None,
    platform: str | None,
    held_out: tuple[Path, ...],
    growth: float,
    live: int | None,
    word_size: Literal[32, 64] | None,
    as_json: bool,
) -> None:
    """Find the size of the arena: the heap region that an allocator gets.

    The minimum completes the trace. From the monotone minimum on, every larger arena completes it, too. The recommended
    size adds a fifth to what the trace and the held-out traces need, for other recordings of that load; --live or
    --growth sizes it for another load. All sizes include control data. Where nothing proves that larger arenas complete
    the trace, many sizes are tested.

    Foreign heaps are programs: the file of --heap, and the adapter next to it, is compiled and run with your rights.
    """
    from heapwright import _api as api

    recordings = read_traces(traces)
    for text in (text for trace in recordings for text in trace.notes):
        note(text)
    if regions is not None:
        from heapwright._cli.regions import fit_regions

        fit_regions(recordings, heaps, regions, as_json)
        return
    recipe = getattr(api.find_heap(heaps[0]), "recipe", None) if len(recordings) == len(heaps) == 1 else None
    if recipe is not None and recipe.memory:
        from heapwright._cli.regions import fit_memories

        fit_memories(recordings[0], heaps[0], as_json)
        return
    if growth != 1 and live is not None:
        raise click.UsageError("--growth and --live both set the load: give one of them")
    result = api.fit(
        recordings,
        heaps,
        growth=growth,
        live=live,
        copies=copies,
        held_out=read_traces(held_out),
        word_size=word_size,
        platform=platform or "auto",
    )
    assert isinstance(result, list)
    check_errors(result)
    if as_json:
        print_rows(result)
        return
    _print_fits(result, copies or 0, len(held_out))
    print_sentences([text for trace in recordings if (text := _offer(trace, result, heaps))])


def _print_fits(result: Sequence[Fit], copies: int, held_out: int) -> None:
    """Print the table of arenas, and the sentences below it."""
    from heapwright._traces.failures import CHANGE_LIFE

    print_sentences(_leaks(result))
    _print_arenas(result)
    print_sentences(_test_notes(result))
    recommended = [fit for fit in result if fit.reserve_bytes is not None]
    if recommended:
        _print_margin(copies, held_out)
    for fit in {fit.trace: fit for fit in recommended}.values():
        failures = [f"{fit.trace}: {fit.failures}; {CHANGE_LIFE}."] if fit.failures else []
        print_sentences([_load_sentence(fit), *failures])
    print_sentences([text for fit in result if (text := _remark(fit))])
    for part in dict.fromkeys(part for fit in result for part in fit.options):
        click.echo()
        print_sentences([f"{part.file}, {part.counts}:"])
        for line in part.lines:
            click.echo(f"    {line}")


def _leaks(result: Sequence[Fit]) -> list[str]:
    """A sentence for each trace that leaks, with the arena of the first heap that has one."""
    from heapwright._traces.leaks import leak_sentence

    known = {fit.trace: fit for fit in reversed(result)}
    known |= {fit.trace: fit for fit in reversed(result) if fit.reserve_bytes is not None}
    return [
        leak_sentence(fit.leaks, name, fit.reserve_bytes, fit.smallest_arena_bytes)
        for name, fit in known.items()
        if fit.leaks
    ]


def _offer(trace: Trace, result: Sequence[Fit], heaps: Sequence[str]) -> str:
    """The change of the program that saves most on a trace, on the first heap; "" if there is none."""
    from heapwright import _api as api
    from heapwright._traces.size_uses import dominant_size

    fit = next(fit for fit in result if fit.trace == trace.name)
    if fit.smallest_arena_bytes is None or dominant_size(trace) is None:
        return ""
    change = api.what_if_offer(trace, heaps[0], fit.smallest_arena_bytes)
    if change is None:
        return ""
    before, after = change.before or 0, change.after or 0
    return (
        f"With {change.text}, {trace.name} would need {after:,} bytes on {fit.heap}, {before - after:,} less, static "
        "buffers included."
    )


def _remark(fit: Fit) -> str:
    """What the table cannot say of an allocator: why it has no arena, or where it gets its memory."""
    if fit.error:
        return f"No arena: {fit.error}"
    if fit.smallest_arena_bytes is None and fit.reserve_bytes is not None:
        return f"{fit.heap}: gets its memory from the system; the recommended size is the most that it took."
    if fit.failed:
        return _why_none(fit)
    if fit.refused:
        return f"{fit.heap}: allocations fail in any arena that it supports: {', '.join(fit.refused)}"
    return ""


def _print_arenas(result: Sequence[Fit]) -> None:
    """Print one table: the trace in the title or, of several, above its rows; without columns that are empty."""
    from heapwright._cli.tables import number, print_table, short_names

    names = short_names(fit.heap for fit in result)
    traces = list(dict.fromkeys(fit.trace for fit in result))
    columns = [item for item in _COLUMNS if item.key is None or any(getattr(fit, item.key) for fit in result)]
    indent = "  " if len(traces) > 1 else ""

    def row(fit: Fit) -> list[str]:
        cells = [number(item.key, getattr(fit, item.key)) if item.key else _guarantee(fit) for item in columns]
        return [indent + names[fit.heap], *cells]

    sections = []
    for trace in traces:
        rows = [row(fit) for fit in result if fit.trace == trace]
        sections.append(rows if len(traces) == 1 else [[trace, *[""] * len(columns)], *rows])
    of_trace = f" for {traces[0]}" if len(traces) == 1 else ""
    headings = ["heap", *(item.heading for item in columns)]
    print_table(f"Arena sizes in bytes{of_trace}", headings, sections, left=("heap", "guarantee"))


def _why_none(fit: Fit) -> str:
    """Why no arena completes a trace: the limits of the allocator."""
    limits = [
        f"holds {fit.reach_objects:,} objects at most" if fit.reach_objects is not None else "",
        f"uses {fit.reach_bytes:,} bytes at most" if fit.reach_bytes is not None else "",
        f"serves no request above {fit.reach_request_bytes:,} bytes" if fit.reach_request_bytes is not None else "",
    ]
    why = ", ".join(filter(None, limits)) or "does not grow as these need"
    return f"{fit.heap}: {fit.failed:,} requests of {fit.trace} fail however large the arena is: it {why}."


def _print_margin(copies: int, held_out: int) -> None:
    from heapwright._replay.reserve import MARGIN

    need = f" and {held_out} held-out trace{'s need' if held_out > 1 else ' need'}" if held_out else " needs"
    margin = f"The recommended size is {100 * (MARGIN - 1):.0f} % more than the trace{need}"
    margin += f", and completes {copies} perturbed copies of it" if copies else ""
    print_sentences([f"{margin}. It does not cover long-run growth: explore does."])


def _load_sentence(fit: Fit) -> str:
    """How many live bytes are permanent, how many depend on the load, and the load of the recommended size."""
    text = f"{fit.trace}: {fit.fixed_bytes:,} live bytes are permanent, {fit.varying_bytes:,} depend on the load"
    return f"{text}." if fit.growth == 1 else f"{text}; the recommended size is for {fit.growth:.3g} times that load."


def _guarantee(fit: Fit) -> str:
    return "-" if fit.safe_arena_bytes is None else "proved" if fit.safe_proved else "tested"


def _test_notes(result: Sequence[Fit]) -> list[str]:
    """What "tested" means, and the limits of allocators that support less than twice the recommended size."""
    most = max((fit.safe_tried or 0 for fit in result if not fit.safe_proved), default=0)
    notes = [f"Tested: it completed the trace, and so did {most:,} larger sizes."] if most else []
    for fit in result:
        if fit.reach_bytes is not None and fit.reserve_bytes is not None and fit.reach_bytes < 2 * fit.reserve_bytes:
            notes.append(f"{fit.heap} uses {fit.reach_bytes:,} bytes at most.")
    return list(dict.fromkeys(notes))
