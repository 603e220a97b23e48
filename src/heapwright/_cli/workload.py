"""`heapwright workload`: traces of modelled network applications."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from heapwright._cli.group import Group
from heapwright._cli.options import Command, Numbers, seed_option, trace_output_option
from heapwright._cli.output import json_option, print_json, print_sentences, print_written, written
from heapwright._cli.pipes import from_stdin

if TYPE_CHECKING:
    from heapwright._traces.trace import Trace


LOADS = Numbers("0.7, several as 0.5,0.7,0.9, or a range as 0.5:0.9:0.1, above 0")


class Setting(NamedTuple):
    """A parameter of a model, given by `--set NAME=VALUE`."""

    name: str
    type: click.ParamType[Any]
    meaning: str


class _CyclesType(click.ParamType[int | None]):
    """A number of cycles, or "all"."""

    name = "cycles"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | None:
        return None if value == "all" else click.IntRange(min=1).convert(value, param, ctx)


_NUMBER = click.FloatRange(min=0)
_BYTES = click.IntRange(min=0)
_ADDED = click.IntRange(0, 1 << 20)
_CARRIED = (
    Setting("count", click.IntRange(min=1), "use the first packets only; default all"),
    Setting("rate", click.FloatRange(min=0, min_open=True), "bits a second of the link, instead of --load"),
    Setting("longest_gap", _NUMBER, "seconds to which longer pauses are cut; default none"),
)
_RING = Setting("ring", click.IntRange(1, (1 << 32) - 1), "packets held at most, others are dropped; default no limit")
_HEADERS = "bytes of a packet that are not stored; default 40 with --size ip, else 0"

SETTINGS: dict[str, tuple[Setting, ...]] = {
    "drr": (
        *_CARRIED,
        _RING,
        Setting("quantum", click.IntRange(64, 1 << 40), "bytes per visit of a queue; default 9216"),
        Setting(
            "rotation",
            click.Choice(["restart", "classic"]),
            "after a packet: from the oldest queue, or on from the queue served last; default restart",
        ),
        Setting("extra", _ADDED, "bytes added to each packet; default 16"),
        Setting("headers", _BYTES, _HEADERS),
        Setting("node", _ADDED, "bytes of a queue node; default 24"),
        Setting("queues", click.IntRange(1, 1 << 31), "queues that flows are hashed into; default one per flow"),
    ),
    "easyport": (*_CARRIED, _RING, Setting("extra", _ADDED, "bytes added to each frame; default 0")),
    "url": (*_CARRIED, _RING, Setting("patterns", _ADDED, "rows of the URL table; default 64")),
    "queue": (
        *_CARRIED,
        Setting("limit", click.IntRange(min=1), "packets it holds; default 1000"),
        Setting("burst", click.IntRange(min=1), "packets that arrive before it is emptied; default limit"),
        Setting("cycles", _CyclesType(), "how often it is filled, or all: once per packet; default 1"),
    ),
    "modem": (
        Setting("instances", click.IntRange(1, 1 << 16), "modem instances; default 5"),
        Setting("idle", _NUMBER, "mean seconds between calls of an instance; default 60"),
        Setting("hold", _NUMBER, "mean seconds of a connection; default 600"),
        Setting("retrain", _NUMBER, "share of connections that slow down once; default 0.1"),
        Setting("memory", click.IntRange(min=1), "bytes that all share; default 131072"),
        Setting("low_priority", _NUMBER, "share of calls of low priority; default 0.25"),
        Setting("reserve", _NUMBER, "share of the memory that those must leave free; default 0.1"),
    ),
    "poisson": (
        Setting("min_size", _BYTES, "smallest request in bytes; default 80"),
        Setting("max_size", _BYTES, "largest request, sizes are uniform; default 2000"),
        Setting("hold", _NUMBER, "mean seconds that a buffer is held; default 1"),
        Setting("low_priority", _NUMBER, "share of requests of low priority, which a reserve may reject; default 0"),
    ),
}
"""The parameters of each model that few change."""


class _SettingType(click.ParamType[tuple[str, Any]]):
    """NAME=VALUE, a parameter of a workload."""

    name = "setting"

    def __init__(self, workload: str) -> None:
        self._settings = {setting.name: setting for setting in SETTINGS[workload]}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Any]:
        if isinstance(value, tuple):
            return value
        name, equals, text = value.partition("=")
        setting = self._settings.get(name.strip().replace("-", "_"))
        if not equals or setting is None:
            self.fail(f"{value!r}: valid: NAME=VALUE with NAME one of {', '.join(self._settings)}", param, ctx)
        return setting.name, setting.type.convert(text.strip(), param, ctx)


def _set_option(workload: str) -> Callable[[Command], Command]:
    return click.option(
        "--set",
        "settings",
        metavar="NAME=VALUE",
        multiple=True,
        type=_SettingType(workload),
        help="A parameter listed below. Repeat the flag for more.",
    )


def _settings_help(workload: str) -> str:
    """The end of a workload's help: its parameters, wrapped and indented."""
    width = max(len(setting.name) for setting in SETTINGS[workload]) + 2
    lines = []
    for setting in SETTINGS[workload]:
        first, *rest = textwrap.wrap(setting.meaning, 74 - width)
        lines += [f"  {setting.name:{width}}{first}", *(" " * (width + 2) + line for line in rest)]
    return "\b\nParameters of --set:\n" + "\n".join(lines)


_SIZES = {
    "ip": "its ip_len (frame_len if it carries no IP)",
    "payload": "the data after its headers (frame_len if it carries no IP)",
    "frame": "its frame_len",
}


def _load(default: str | None, help: str) -> Callable[[Command], Command]:
    return click.option(
        "--load",
        "loads",
        metavar="SHARE[,...]",
        type=LOADS,
        default=default,
        show_default=True,
        help=f"{help} Several, as 0.5,0.7 or 0.5:0.9:0.1, make a trace each.",
    )


def _packets(*sizes: str, load: str | None = "0.9") -> Callable[[Command], Command]:
    """The argument and the options of a workload that carries packets; the first of `sizes` is the default."""
    options = (
        click.argument("packets", metavar="PACKETS", type=click.Path(path_type=Path), callback=from_stdin),
        click.option(
            "--size",
            type=click.Choice(sizes),
            default=sizes[0],
            show_default=True,
            help=f"Bytes of a packet: {', or '.join(_SIZES[size] for size in sizes)}.",
        ),
        _load(load, "Share of time the link is busy."),
        trace_output_option,
        json_option,
    )

    def decorate(function: Command) -> Command:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


@click.group(cls=Group)
def command() -> None:
    """Make the trace of a modelled network application.

    drr, easyport, url and queue carry the packets of a packet table (see `heapwright import`); modem and poisson make
    their own. docs/workloads.md has the reasons for all defaults.
    """


@command.command(epilog=_settings_help("drr"))
@_packets("payload", "ip", "frame")
@_set_option("drr")
def drr(packets: Path, output: Path, as_json: bool, **options: Any) -> None:
    """Deficit round robin: a queue for each flow of PACKETS, created and destroyed with its packets."""
    _write("drr", packets, output, as_json, **options)


@command.command(epilog=_settings_help("easyport"))
@_packets("frame", "ip")
@_set_option("easyport")
def easyport(packets: Path, output: Path, as_json: bool, **options: Any) -> None:
    """A gateway that buffers the frames of PACKETS, first in, first out."""
    _write("easyport", packets, output, as_json, **options)


@command.command(epilog=_settings_help("url"))
@_packets("ip", "frame")
@_set_option("url")
def url(packets: Path, output: Path, as_json: bool, **options: Any) -> None:
    """URL-based switching: blocks of 8, 11 and 20 bytes for each of PACKETS."""
    _write("url", packets, output, as_json, **options)


@command.command(epilog=_settings_help("queue"))
@_packets("ip", "frame", load=None)
@_set_option("queue")
def queue(packets: Path, output: Path, as_json: bool, **options: Any) -> None:
    """A transmit queue, filled with PACKETS and emptied; a packet that finds it full is dropped.

    With --load or rate it is filled as packets arrive, and emptied as the link sends.
    """
    _write("queue", packets, output, as_json, **options)


@command.command(epilog=_settings_help("modem"))
@click.option(
    "--calls", metavar="N", type=click.IntRange(1, 1 << 24), default=1000, show_default=True, help="Modem calls in all."
)
@_set_option("modem")
@seed_option
@trace_output_option
@json_option
def modem(output: Path, as_json: bool, **options: Any) -> None:
    """A multi-channel modem concentrator: calls enter and leave software units, each with blocks of its own."""
    _write("modem", None, output, as_json, **options)


@command.command(epilog=_settings_help("poisson"))
@click.option(
    "--interarrival",
    metavar="SECONDS",
    type=float,
    default=0.002,
    show_default=True,
    help="Mean seconds between requests.",
)
@_load(None, "Factor of the request rate that --interarrival sets; default 1.")
@click.option(
    "--requests", metavar="N", type=click.IntRange(min=1), default=1_000_000, show_default=True, help="Requests."
)
@_set_option("poisson")
@seed_option
@trace_output_option
@json_option
def poisson(output: Path, as_json: bool, **options: Any) -> None:
    """Requests of a Poisson process, with uniform sizes and exponential holding times."""
    _write("poisson", None, output, as_json, **options)


def _write(
    name: str,
    packets: Path | None,
    output: Path,
    as_json: bool,
    loads: tuple[float, ...] | None = None,
    settings: tuple[tuple[str, Any], ...] = (),
    **options: Any,
) -> None:
    from heapwright import _api as api

    options |= dict(settings)
    if options.get("rate") is not None:
        if loads and len(loads) > 1:
            raise click.UsageError("rate is one load: give several loads without it")
        loads = None
    if not loads:
        trace = api.workload(name, packets, **options)
        trace.write(output)
        reports = [_report(trace, output, as_json)]
    else:
        reports = []
        traces = api.workload(name, packets, load=loads, **options)
        for trace, load in zip(traces, loads, strict=True):
            path = output if len(loads) == 1 else output.with_name(f"{output.stem}-{load:g}{output.suffix}")
            trace.write(path)
            reports.append(_report(trace, path, as_json, api.load_peaks(name, packets, load=load, **options)))
    if as_json:
        print_json(reports if len(reports) > 1 else reports[0])


def _report(trace: Trace, path: Path, as_json: bool, peaks: dict[float, int] | None = None) -> dict[str, Any]:
    """Print what was written, or return it for JSON."""
    by_load = {f"{load:g}": peak for load, peak in (peaks or {}).items()}
    if as_json:
        return written(trace, path) | ({"peaks_by_load": by_load} if peaks else {})
    print_written(trace, path)
    for key, label in _COUNTS.items():
        if key in trace.metadata:
            click.echo(f"{label}: {int(trace.metadata[key]):,}")
    if peaks:
        less, here, more = peaks.values()
        at = trace.metadata["load"]
        print_sentences([f"peak {here:,} bytes at load {at}; 10 % less load: {less:,}; 10 % more: {more:,}"])
    return {}


_COUNTS = {
    "used": "packets used",
    "dropped": "packets dropped",
    "connected": "connected",
    "refused_low": "rejected, low priority",
    "refused_high": "rejected, high priority",
}
