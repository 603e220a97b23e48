"""Renamed options: old command lines that still run, with a warning, for one release (docs/upgrading.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import click

from heapwright._cli.output import note

REPAIR = "heapwright.repair"
"""The key of `--repair` in a context's `meta`: the traces that the command reads are repaired on the way."""


class Renamed(NamedTuple):
    """The words in place of an old option; `{}` in them stands for its value.

    Attributes:
        words: the new words.
        takes_value: whether the old option took a value.
        leads: whether the new words come before all others.
    """

    words: tuple[str, ...]
    takes_value: bool = True
    leads: bool = False


class Removed(NamedTuple):
    """An option without a successor, and the advice for its user."""

    advice: str


_FROM_PYTHON = "the command line always uses the default; Python's function of that name still takes it"
_SEED = Removed(_FROM_PYTHON)


def _settings(*names: str) -> dict[str, Renamed | Removed]:
    return {f"--{name.replace('_', '-')}": Renamed(("--set", f"{name}={{}}")) for name in names}


_PACKETS = _settings("longest_gap", "count", "rate")

OPTIONS: dict[str, dict[str, Renamed | Removed]] = {
    "attack": {"--seed": _SEED, "--compiler": Removed(_FROM_PYTHON), "--word-size": Removed(_FROM_PYTHON)},
    "check": {"--seed": _SEED},
    "explore": {
        "--complete": Renamed(("--tolerance", "none"), takes_value=False),
        "--endurance": Renamed((), takes_value=False),
        "--no-endurance": Renamed(("--long-run", "0"), takes_value=False),
        "--future": Renamed(("--long-run", "{}")),
        "--energy-table": Removed(_FROM_PYTHON),
        "--warm": Removed(_FROM_PYTHON),
    },
    "fit": {
        "--seed": _SEED,
        "--step": Removed(_FROM_PYTHON),
        "--share": Removed(_FROM_PYTHON),
        "--clients": Removed("give --growth WANTED/RECORDED, as 2.5 for 20 clients recorded and 50 wanted"),
        "--admit": Removed("replay pools of several counts, and read admitted_fraction"),
        "--workload": Removed("write the trace with `heapwright workload` first"),
        "--set": Removed("write the trace with `heapwright workload` first"),
        "--sweep": Removed("write the traces with `heapwright workload` first"),
        "--output": Removed("it drew the picture of --admit, which is gone, too"),
        "-o": Removed("it drew the picture of --admit, which is gone, too"),
    },
    "generate": {
        f"--{name}": Renamed(("--also", name), takes_value=False) for name in ("inline", "package", "watched")
    },
    "measure": {
        "--front": Renamed((), takes_value=False),
        "--objectives": Removed(_FROM_PYTHON),
        "--kernel": Removed("set FREERTOS_KERNEL_PATH to the folder of tasks.c"),
        "--compiler": Removed(_FROM_PYTHON),
        "--backend": Removed(_FROM_PYTHON),
    },
    "prove": {
        "--check": Renamed((), takes_value=False),
        "--unbounded": Renamed(("--method", "frama-c"), takes_value=False),
    },
    "replay": {
        "--fit": Removed("run `heapwright fit`"),
        "--energy-table": Removed(_FROM_PYTHON),
    },
    "report": {
        "--format": Renamed(()),
        "--baseline": Renamed(("{}",), leads=True),
        "--plots": Removed("the plots are in OUTPUT_plots next to the page"),
    },
    "reproduce": {"--readings": Renamed(("--reading", "{}"))},
    "stress": {"--seed": _SEED},
    "study again": {"--trace": Removed("it recomputes the metrics on all traces")},
    "study extend": {"--jobs": Removed(_FROM_PYTHON)},
    "suggest": {"--jobs": Removed(_FROM_PYTHON)},
    "trace cut": {
        "--first": Renamed(("--part", ":{}")),
        "--last": Renamed(("--part", "-{}:")),
        "--start": Renamed(("--part", "{}:")),
        "--stop": Renamed(("--part", ":{}")),
    },
    "trace resample": {"--block": Removed(_FROM_PYTHON)},
    "trace scale": {"--buffers": Removed(_FROM_PYTHON), "--no-buffers": Removed(_FROM_PYTHON)},
    "trace worst": {"--seed": _SEED},
    "workload drr": {**_PACKETS, **_settings("ring", "quantum", "rotation", "extra", "headers", "node", "queues")},
    "workload easyport": {**_PACKETS, **_settings("ring", "extra")},
    "workload modem": _settings("calls", "instances", "idle", "hold", "retrain", "memory", "low_priority", "reserve"),
    "workload poisson": _settings("interarrival", "requests", "hold", "low_priority", "min_size", "max_size"),
    "workload queue": {
        **_PACKETS,
        **_settings("burst", "cycles", "limit"),
        "--all": Renamed(("--set", "cycles=all"), takes_value=False),
    },
    "workload url": {**_PACKETS, **_settings("ring", "patterns")},
}
"""Options of 0.2 and earlier by the command that had them; `--repair` is of all that read traces."""

_REPAIRED = {
    *("attack", "check", "explore", "fit", "generate", "measure", "profile", "replay", "report", "stress", "suggest"),
    "study extend",
    *(f"trace {name}" for name in ("copies", "cut", "diff", "export", "info", "merge", "resample", "scale", "worst")),
}


def current_words(ctx: click.Context, command: str, words: Sequence[str]) -> list[str]:
    """The words of a command line with today's options, after a warning for each old one.

    Raises click.UsageError for one that has no successor.
    """
    if command == "workload":  # a command of its own for each workload in 0.2
        command = next((f"workload {word}" for word in words if f"workload {word}" in OPTIONS), command)
    changes = OPTIONS.get(command, {})
    if not changes and command not in _REPAIRED:
        return list(words)
    return _translated(ctx, command, iter(words), changes)


def _translated(
    ctx: click.Context, command: str, words: Iterator[str], changes: dict[str, Renamed | Removed]
) -> list[str]:
    first: list[str] = []
    rest: list[str] = []
    for word in words:
        if word == "--":
            rest += [word, *words]
            break
        option, equals, value = word.partition("=")
        if option == "--repair" and command in _REPAIRED:
            _warn(command, option, "heapwright trace repair")
            ctx.find_root().meta[REPAIR] = True
            continue
        change = changes.get(option)
        if change is None:
            rest.append(word)
        elif isinstance(change, Removed):
            raise click.UsageError(f"{option} is gone from {command}: {change.advice}", ctx)
        else:
            if change.takes_value and not equals:
                value = next(words, "")
            replacement = [item.format(value) for item in change.words]
            _warn(command, option, " ".join(replacement) or "the default")
            (first if change.leads else rest).extend(replacement)
    return first + rest


def _warn(command: str, option: str, successor: str) -> None:
    note(f"{command} {option} is now {successor}; the old option goes with the next release")


def repairs_requested() -> bool:
    """Whether the command line has the old `--repair`."""
    ctx = click.get_current_context(silent=True)
    return bool(ctx and ctx.find_root().meta.get(REPAIR))
