"""`heapwright workload`: traces of modelled network applications."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from heapwright._cli.options import Numbers, seed_option, trace_output_option
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
    Setting("mtu", click.IntRange(68, 0xFFFF), "bytes of the largest IP packet; larger ones are cut; default none"),
)
FILE = "FILE.py"
"""The name of a user's queue in the table of parameters."""

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
    "priority": (
        *_CARRIED,
        _RING,
        Setting("urgent", _BYTES, "bytes of the largest frame that is sent before others; default 200"),
        Setting("extra", _ADDED, "bytes added to each packet; default 0"),
    ),
    "url": (*_CARRIED, _RING, Setting("patterns", _ADDED, "rows of the URL table; default 64")),
    "queue": (
        *_CARRIED,
        Setting("limit", click.IntRange(min=1), "packets it holds; default 1000"),
        Setting("burst", click.IntRange(min=1), "packets that arrive before it is emptied; default limit"),
        Setting("cycles", _CyclesType(), "how often it is filled, or all: once per packet; default 1"),
    ),
    FILE: (*_CARRIED, _RING, Setting("extra", _ADDED, "bytes added to each packet; default 0")),
    "modem": (
        Setting("calls", click.IntRange(1, 1 << 24), "modem calls in all; default 1000"),
        Setting("instances", click.IntRange(1, 1 << 16), "modem instances; default 5"),
        Setting("idle", _NUMBER, "mean seconds between calls of an instance; default 60"),
        Setting("hold", _NUMBER, "mean seconds of a connection; default 600"),
        Setting("retrain", _NUMBER, "share of connections that slow down once; default 0.1"),
        Setting("memory", click.IntRange(min=1), "bytes that all share; default 131072"),
        Setting("low_priority", _NUMBER, "share of calls of low priority; default 0.25"),
        Setting("reserve", _NUMBER, "share of the memory that those must leave free; default 0.1"),
    ),
    "poisson": (
        Setting("interarrival", _NUMBER, "mean seconds between requests; default 0.002"),
        Setting("requests", click.IntRange(min=1), "requests; default 1,000,000"),
        Setting("min_size", _BYTES, "smallest request in bytes; default 80"),
        Setting("max_size", _BYTES, "largest request, sizes are uniform; default 2000"),
        Setting("hold", _NUMBER, "mean seconds that a buffer is held; default 1"),
        Setting("low_priority", _NUMBER, "share of requests of low priority, which a reserve may reject; default 0"),
    ),
}
"""The parameters of each model that few change."""


def settings_of(workload: str) -> tuple[Setting, ...]:
    """The parameters of a workload of `NAMES`, or of a Python file with a queue."""
    return SETTINGS[FILE if workload.endswith(".py") else workload]


def chosen_settings(workload: str, given: Sequence[str], ctx: click.Context, param: click.Parameter) -> dict[str, Any]:
    """The values of `--set NAME=VALUE`, by name. Raises click.BadParameter for an unknown name or a wrong value."""
    settings, result = {setting.name: setting for setting in settings_of(workload)}, {}
    for item in given:
        name, equals, text = item.partition("=")
        setting = settings.get(name.strip().replace("-", "_"))
        if not equals or setting is None:
            raise click.BadParameter(f"{item!r}: valid: NAME=VALUE with NAME one of {', '.join(settings)}", ctx, param)
        result[setting.name] = setting.type.convert(text.strip(), param, ctx)
    return result


_SUMMARIES = {
    "drr": "deficit round robin: a queue for each flow, created and destroyed with its packets",
    "easyport": "a gateway that buffers frames, first in, first out",
    "priority": "strict priority: short packets are sent before others",
    "url": "URL-based switching: blocks of 8, 11 and 20 bytes for each packet",
    "queue": "a transmit queue, filled and emptied; a packet that finds it full is dropped",
    FILE: "a queue of your own in Python (docs/network.md)",
    "modem": "a modem concentrator: calls enter and leave software units, with blocks of their own",
    "poisson": "requests of a Poisson process, with uniform sizes and exponential holding times",
}


class _WorkloadCommand(click.Command):
    """Command whose help ends with the parameters of the workload that was named, or of all."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_NAMED] = next((word for word in args if word in SETTINGS or word.endswith(".py")), None)
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        named = ctx.meta.get(_NAMED)
        for name in [FILE if named.endswith(".py") else named] if named else SETTINGS:
            with formatter.section(f"{name}, {_SUMMARIES[name]}"):
                if named:
                    formatter.write_dl([(setting.name, setting.meaning) for setting in SETTINGS[name]])
                else:
                    formatter.write_text(f"--set {', '.join(setting.name for setting in SETTINGS[name])}")


_NAMED = "heapwright.workload"
"""Key of a context's `meta`: the workload that the command line names."""


@click.command(cls=_WorkloadCommand)
@click.argument("name", metavar="WORKLOAD")
@click.argument("packets", metavar="[PACKETS]", type=click.Path(path_type=Path), required=False, callback=from_stdin)
@click.option(
    "--size",
    type=click.Choice(["ip", "payload", "frame"]),
    help="Bytes of a packet: its ip_len (frame_len if it carries no IP), the data after its headers, or its frame_len. "
    "Default: payload for drr, frame for easyport and priority, else ip.",
)
@click.option(
    "--load",
    "loads",
    metavar="SHARE[,...]",
    type=LOADS,
    help="Share of time the link is busy, default 0.9 (queue: none); for poisson a factor of the request rate. "
    "Several, as 0.5,0.7 or 0.5:0.9:0.1, make a trace each.",
)
@click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    help="A parameter of the workload; `workload WORKLOAD --help` lists them. Repeat the flag for more.",
)
@seed_option
@trace_output_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    name: str,
    packets: Path | None,
    size: str | None,
    loads: tuple[float, ...] | None,
    settings: tuple[str, ...],
    seed: int,
    output: Path,
    as_json: bool,
) -> None:
    """Make the trace of a modelled network application.

    WORKLOAD is one of those below. drr, easyport, priority, url, queue and a file of your own carry the packets of a
    packet table (see `heapwright import`); modem and poisson make their own. docs/workloads.md has the reasons for all
    defaults.
    """
    _require_known(name, ctx)
    parameter = next(item for item in ctx.command.params if item.name == "settings")
    options = chosen_settings(name, settings, ctx, parameter)
    if name in SEEDED:
        options["seed"] = seed
    elif size is not None:
        options["size"] = size
    if loads is None and name in LOADED and "rate" not in options:
        loads = (0.9,)
    _write(name, packets, output, as_json, loads, options)


SEEDED = ("modem", "poisson")
LOADED = ("drr", "easyport", "priority", "url")


def _require_known(name: str, ctx: click.Context) -> None:
    if name not in SETTINGS and not name.endswith(".py"):
        from heapwright._support.errors import did_you_mean

        valid = [item for item in SETTINGS if item != FILE]
        raise click.UsageError(f"{name}: no such workload; {did_you_mean(name, valid)}, or a Python file", ctx)


def _write(
    name: str,
    packets: Path | None,
    output: Path,
    as_json: bool,
    loads: tuple[float, ...] | None,
    options: dict[str, Any],
) -> None:
    from heapwright import _api as api

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
