"""The benchmark's results as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
from contenders import RUN_TIME
from results import REFERENCES, SETS, Aim, Measured, arena_ratio, by_set, ratios

from heapwright.cli.tables import print_table

VERDICTS = {True: "met", False: "not met", None: "not measured"}


def print_results(about: dict[str, Any], measured: Sequence[Measured], aims: Sequence[Aim]) -> None:
    """Print what was measured on what, trace by trace, then the ratios and the aims."""
    _about(about)
    _times("CPU time of a call in ns, payload untouched", [(one.trace, one.ns) for one in measured])
    _times("CPU time of a call in ns, payload written once", [(one.trace, one.ns_touched) for one in measured])
    _arenas(measured)
    means = ratios(measured)
    _ratios("Time over that of the reference, payload untouched", means["time"], measured)
    _ratios("Time over that of the reference, payload written once", means["time_touched"], measured)
    _folded(means["folded_over_run_time"], measured)
    _aims(aims)


def _about(about: dict[str, Any]) -> None:
    exploration, pick = about["exploration"], about["pick"]
    lines = {
        **about["machine"],
        "effort": f"median of {about['rounds']} rounds x {about['passes']} passes, more on short traces; heaps in turn",
        "exploration": f"{exploration['recipes_per_second']:,.0f} recipes a second: {exploration['recipes']:,} on "
        f"{exploration['trace']} in {exploration['seconds']:.1f} s",
        "broker pick": f"the balanced one of these, {pick['id']}: {pick['recipe']}",
        "left out": ", ".join(f"{name} (not installed)" for name in about["missing"]) or "nothing",
    }
    for name, value in lines.items():
        click.echo(f"{name:12} {value}")


def _times(title: str, times: Sequence[tuple[str, dict[str, float]]]) -> None:
    names = [name for name in times[0][1] if not name.endswith(RUN_TIME)]
    _show(title, ["trace", *names], [[trace, *(f"{ns[name]:.1f}" for name in names)] for trace, ns in times])


def _arenas(measured: Sequence[Measured]) -> None:
    names = list(measured[0].arena_bytes)
    rows = [
        [one.trace, f"{one.peak_live_bytes:,}", *(_ratio(arena_ratio(name)(one)) for name in names)] for one in measured
    ]
    means = [_ratio(by_set(measured, arena_ratio(name))["all"]) for name in names]
    headings = ["trace", "peak live, B", *names]
    _show("Smallest arena over the peak of live bytes", headings, rows, ["geometric mean", "", *means])


def _ratios(title: str, means: dict[str, dict[str, dict[str, float | None]]], measured: Sequence[Measured]) -> None:
    sets = _sets(measured)
    rows = [[name, *(_ratio(over[other][key]) for other in REFERENCES for key in sets)] for name, over in means.items()]
    _show(f"{title}, geometric means", ["heap", *(f"/ {other}\n{key}" for other in REFERENCES for key in sets)], rows)


def _folded(means: dict[str, dict[str, float | None]], measured: Sequence[Measured]) -> None:
    sets = _sets(measured)
    rows = [[name, *(_ratio(over[key]) for key in sets)] for name, over in means.items()]
    _show("Time with the policy folded over that with the policy at run time, geometric means", ["recipe", *sets], rows)


def _aims(aims: Sequence[Aim]) -> None:
    rows = [
        [one.aim, _quantity(one.limit, one), _quantity(one.measured, one), VERDICTS[one.met], one.remark]
        for one in aims
    ]
    _show("Aims", ["aim", "at most", "measured", "verdict", "remark"], rows)


def _sets(measured: Sequence[Measured]) -> list[str]:
    """The sets that have traces."""
    return [key for key in SETS if key == "all" or any(one.set == key for one in measured)]


def _show(title: str, headings: list[str], rows: list[list[str]], foot: list[str] | None = None) -> None:
    click.echo()
    print_table(title, headings, [rows, [foot] if foot else []], left=(headings[0], "verdict", "remark"))


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _quantity(value: float | None, aim: Aim) -> str:
    return "-" if value is None else f"{value:,.3f} x" if aim.unit == "x" else f"{value:,.0f} {aim.unit}"
