"""The benchmark's results as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import click
from results import Aim, Measured, arena_ratio, by_set, ratios, sets_of
from tables import print_table
from threads import print_threads

VERDICTS = {True: "met", False: "not met", None: "not measured"}


def print_results(about: dict[str, Any], measured: Sequence[Measured], aims: Sequence[Aim]) -> None:
    """Print what was measured on what, trace by trace, then the ratios and the aims."""
    _about(about)
    _times("CPU time of a call in ns, payload untouched", [(item.trace, item.ns) for item in measured])
    _times("CPU time of a call in ns, payload written once", [(item.trace, item.ns_written) for item in measured])
    _arenas(measured)
    means = ratios(measured)
    _untouched_and_written(means, measured)
    for key in sets_of(measured):
        _ratios(f"Time over that of the reference, {key} traces, payload untouched", means["time"], key)
    _ratios("The same over all traces without the replay loop", means["time_without_loop"], "all")
    _ratios("The same over all traces, payload written once", means["time_written"], "all")
    _folded(means["folded_over_run_time"], measured)
    click.echo()
    print_threads({item.trace: item.ns_threads for item in measured})
    _aims(aims)


def _about(about: dict[str, Any]) -> None:
    exploration, pick = about["exploration"], about["pick"]
    lines = {
        "date": about["date"],
        **about["machine"],
        "effort": f"median of {about['rounds']} rounds of all heaps, {about['milliseconds']:g} ms or one pass each",
        "exploration": f"{exploration['recipes_per_second']:,.0f} recipes a second: {exploration['recipes']:,} on "
        f"{exploration['trace']} in {exploration['seconds']:.1f} s",
        "broker pick": f"the balanced one of these, {pick['id']}: {pick['recipe']}",
        "left out": "; ".join(about["missing"]) or "nothing",
    }
    for name, value in lines.items():
        click.echo(f"{name:12} {value}")


def _times(title: str, times: Sequence[tuple[str, dict[str, float]]]) -> None:
    names = list(dict.fromkeys(name for _, ns in times for name in ns))
    rows = [[trace, *(f"{ns[name]:.1f}" if name in ns else "-" for name in names)] for trace, ns in times]
    _show(title, ["trace", *names], rows)


def _arenas(measured: Sequence[Measured]) -> None:
    names = list(measured[0].arena_bytes)
    rows = [
        [item.trace, f"{item.peak_live_bytes:,}", *(ratio_text(arena_ratio(name)(item)) for name in names)]
        for item in measured
    ]
    means = [ratio_text(by_set(measured, arena_ratio(name))["all"]) for name in names]
    beside = [ratio_text(by_set(measured, arena_ratio(name, "dlmalloc"))["all"]) for name in names]
    largest = [ratio_text(most([arena_ratio(name, "dlmalloc")(item) for item in measured])) for name in names]
    foot = [["geometric mean", "", *means], ["over dlmalloc's", "", *beside], ["the same, at most", "", *largest]]
    _show("Smallest arena over the peak of live bytes", ["trace", "peak live, B", *names], rows, foot)


def most(ratios: Iterable[float | None]) -> float | None:
    """The largest of those that are known."""
    return max((ratio for ratio in ratios if ratio is not None), default=None)


def _ratios(title: str, means: dict[str, dict[str, dict[str, float | None]]], key: str) -> None:
    references = list(next(iter(means.values())))
    rows = [[name, *(ratio_text(over[other][key]) for other in references)] for name, over in means.items()]
    _show(f"{title}, geometric means", ["heap", *(f"/ {other}" for other in references)], rows)


def _untouched_and_written(means: dict[str, Any], measured: Sequence[Measured]) -> None:
    """The two aims side by side: the heap's own work, and that of a program that writes what it was given."""
    sets = sets_of(measured)
    rows = [
        [name, *(ratio_text(means[how][name]["dlmalloc"][key]) for how in ("time", "time_written") for key in sets)]
        for name, over in means["time"].items()
        if "dlmalloc" in over
    ]
    headings = ["heap", *(f"untouched, {key}" for key in sets), *(f"written, {key}" for key in sets)]
    if rows:
        _show("Time over dlmalloc's, the payload untouched and written once, geometric means", headings, rows)


def _folded(means: dict[str, dict[str, float | None]], measured: Sequence[Measured]) -> None:
    sets = sets_of(measured)
    rows = [[name, *(ratio_text(over[key]) for key in sets)] for name, over in means.items()]
    _show("Time with the policy folded over that with the policy at run time, geometric means", ["recipe", *sets], rows)


def _aims(aims: Sequence[Aim]) -> None:
    rows = [
        [aim.aim, quantity(aim.limit, aim), quantity(aim.measured, aim), VERDICTS[aim.met], aim.remark] for aim in aims
    ]
    _show("Aims", ["aim", "at most", "measured", "verdict", "remark"], rows)


def _show(title: str, headings: list[str], rows: list[list[str]], foot: list[list[str]] | None = None) -> None:
    click.echo()
    print_table(title, headings, [rows, foot or []], left=(headings[0], "verdict", "remark"))


def ratio_text(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def quantity(value: float | None, aim: Aim) -> str:
    return "-" if value is None else f"{value:,.3f} x" if aim.unit == "x" else f"{value:,.0f} {aim.unit}"
