"""`heapwright workload`: make a trace of what a network application asks of its heap."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from heapwright._cli.group import Group
from heapwright._cli.options import Command, Numbers, seed_option, trace_output_option
from heapwright._cli.output import json_option, print_json, print_sentences, print_written, written
from heapwright._cli.pipes import from_stdin

if TYPE_CHECKING:
    from heapwright._traces.trace import Trace


LOADS = Numbers("0.7, several as 0.5,0.7,0.9, or a range as 0.5:0.9:0.1, above 0")

_ring = click.option(
    "--ring",
    metavar="N",
    type=click.IntRange(1, (1 << 32) - 1),
    help="Packets held at most; those that come while so many are there are dropped. Default no bound.",
)


_SIZES = {
    "ip": "its ip_len (frame_len where it carries no IP)",
    "payload": "the data behind its headers (frame_len where it carries no IP)",
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
    """The argument and the options of every workload that is made of packets; the first of `sizes` is the default."""
    options = (
        click.argument("packets", metavar="PACKETS", type=click.Path(path_type=Path), callback=from_stdin),
        click.option(
            "--size",
            type=click.Choice(sizes),
            default=sizes[0],
            show_default=True,
            help=f"Bytes of a packet: {', or '.join(_SIZES[size] for size in sizes)}.",
        ),
        click.option(
            "--count", type=click.IntRange(min=1), metavar="N", help="Use the first packets only; default all."
        ),
        _load(load, "Share of time the link is busy."),
        click.option("--rate", type=float, metavar="BITS", help="Bits a second of the link, instead of --load."),
        click.option(
            "--longest-gap",
            type=float,
            metavar="SECONDS",
            help="Close longer pauses to this, as between captures laid end to end; default none.",
        ),
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
    """Make a trace of what a network application asks of its heap.

    drr, easyport, url and queue carry the packets of a packet table (see `heapwright import`); modem and poisson make
    their own. docs/workloads.md has the reasons for all defaults.
    """


@command.command()
@_packets("payload", "ip", "frame")
@_ring
@click.option(
    "--quantum",
    metavar="BYTES",
    type=click.IntRange(64, 1 << 40),
    default=9216,
    show_default=True,
    help="Bytes a visit.",
)
@click.option(
    "--rotation",
    type=click.Choice(["restart", "classic"]),
    default="restart",
    show_default=True,
    help="After each packet, from the oldest queue on, or on from the queue served last.",
)
@click.option(
    "--extra",
    metavar="BYTES",
    type=click.IntRange(0, 1 << 20),
    default=16,
    show_default=True,
    help="Bytes beside each packet.",
)
@click.option(
    "--headers",
    metavar="BYTES",
    type=click.IntRange(min=0),
    help="Bytes of a packet not stored; default 40 with --size ip, else 0.",
)
@click.option(
    "--node",
    metavar="BYTES",
    type=click.IntRange(0, 1 << 20),
    default=24,
    show_default=True,
    help="Bytes of a queue node.",
)
@click.option(
    "--queues",
    metavar="N",
    type=click.IntRange(1, 1 << 31),
    help="Hash the flows into so many queues; default one each.",
)
def drr(packets: Path, output: Path, as_json: bool, **options: Any) -> None:
    """Deficit round robin: a queue for each flow of PACKETS, created and destroyed with its packets."""
    _write("drr", packets, output, as_json, **options)


@command.command()
@_packets("frame", "ip")
@_ring
@click.option(
    "--extra",
    metavar="BYTES",
    type=click.IntRange(0, 1 << 20),
    default=0,
    show_default=True,
    help="Bytes beside each frame.",
)
def easyport(packets: Path, output: Path, as_json: bool, **options: Any) -> None:
    """A gateway that buffers the frames of PACKETS, first in, first out."""
    _write("easyport", packets, output, as_json, **options)


@command.command()
@_packets("ip", "frame")
@_ring
@click.option(
    "--patterns", metavar="N", type=click.IntRange(0, 1 << 20), default=64, show_default=True, help="Rows of the table."
)
def url(packets: Path, output: Path, as_json: bool, **options: Any) -> None:
    """URL-based switching: blocks of 8, 11 and 20 bytes for each of PACKETS."""
    _write("url", packets, output, as_json, **options)


@command.command()
@_packets("ip", "frame", load=None)
@click.option(
    "--limit", metavar="N", type=click.IntRange(min=1), default=1000, show_default=True, help="Packets the queue holds."
)
@click.option(
    "--burst", metavar="N", type=click.IntRange(min=1), help="Packets that come before it is emptied; default --limit."
)
@click.option(
    "--cycles", metavar="N", type=click.IntRange(min=1), default=1, show_default=True, help="How often it is filled."
)
@click.option("--all", "every", is_flag=True, help="Fill it as often as there are packets.")
def queue(packets: Path, output: Path, as_json: bool, every: bool, **options: Any) -> None:
    """A transmit queue, filled with PACKETS and emptied; what finds it full is dropped.

    With --load or --rate it is filled as packets arrive, and emptied as the link sends.
    """
    if every:
        options["cycles"] = None
    _write("queue", packets, output, as_json, **options)


@command.command()
@click.option(
    "--instances", metavar="N", type=click.IntRange(1, 1 << 16), default=5, show_default=True, help="Modem instances."
)
@click.option(
    "--calls", metavar="N", type=click.IntRange(1, 1 << 24), default=1000, show_default=True, help="Modem calls in all."
)
@click.option(
    "--idle",
    metavar="SECONDS",
    type=float,
    default=60.0,
    show_default=True,
    help="Mean seconds between calls of an instance.",
)
@click.option(
    "--hold", metavar="SECONDS", type=float, default=600.0, show_default=True, help="Mean seconds of a connection."
)
@click.option(
    "--retrain",
    metavar="SHARE",
    type=float,
    default=0.1,
    show_default=True,
    help="Share of connections that get slower once.",
)
@click.option(
    "--memory", metavar="BYTES", type=click.IntRange(min=1), default=131072, show_default=True, help="Bytes all share."
)
@click.option(
    "--low-priority",
    metavar="SHARE",
    type=float,
    default=0.25,
    show_default=True,
    help="Share of calls of low priority.",
)
@click.option(
    "--reserve",
    metavar="SHARE",
    type=float,
    default=0.1,
    show_default=True,
    help="Share of memory they must leave free.",
)
@seed_option
@trace_output_option
@json_option
def modem(output: Path, as_json: bool, **options: Any) -> None:
    """A multi-channel modem concentrator: calls enter and leave software units, each with blocks of its own."""
    _write("modem", None, output, as_json, **options)


@command.command()
@click.option(
    "--interarrival",
    metavar="SECONDS",
    type=float,
    default=0.002,
    show_default=True,
    help="Mean seconds between requests.",
)
@_load(None, "So many times as many requests a second; default 1, what --interarrival says.")
@click.option(
    "--min-size",
    metavar="BYTES",
    type=click.IntRange(min=0),
    default=80,
    show_default=True,
    help="Bytes; sizes are uniform.",
)
@click.option(
    "--max-size", metavar="BYTES", type=click.IntRange(min=0), default=2000, show_default=True, help="Bytes, included."
)
@click.option(
    "--hold", metavar="SECONDS", type=float, default=1.0, show_default=True, help="Mean seconds a buffer is held."
)
@click.option(
    "--requests", metavar="N", type=click.IntRange(min=1), default=1_000_000, show_default=True, help="How many."
)
@click.option(
    "--low-priority",
    metavar="SHARE",
    type=float,
    default=0.0,
    show_default=True,
    help="Share of the requests of low priority, which a heap's reserve may refuse.",
)
@seed_option
@trace_output_option
@json_option
def poisson(output: Path, as_json: bool, **options: Any) -> None:
    """Requests that come as a Poisson process, with uniform sizes and exponential holding times."""
    _write("poisson", None, output, as_json, **options)


def _write(
    name: str,
    packets: Path | None,
    output: Path,
    as_json: bool,
    loads: tuple[float, ...] | None = None,
    **options: Any,
) -> None:
    from heapwright import _api as api

    if options.get("rate") is not None:
        if loads and len(loads) > 1:
            raise click.UsageError("a --rate is one load: give several loads without it.")
        loads = None
    if not loads:
        trace = api.workload(name, packets, **options)
        trace.write(output)
        info = [_told(trace, output, as_json)]
    else:
        info = []
        traces = api.workload(name, packets, load=loads, **options)
        for trace, load in zip(traces, loads, strict=True):
            path = output if len(loads) == 1 else output.with_name(f"{output.stem}-{load:g}{output.suffix}")
            trace.write(path)
            info.append(_told(trace, path, as_json, api.load_peaks(name, packets, load=load, **options)))
    if as_json:
        print_json(info if len(info) > 1 else info[0])


def _told(trace: Trace, path: Path, as_json: bool, peaks: dict[float, int] | None = None) -> dict[str, Any]:
    """Tell people of a trace that was written, unless it is told as JSON; returns that."""
    by_load = {f"{load:g}": peak for load, peak in (peaks or {}).items()}
    if as_json:
        return written(trace, path) | ({"peaks_by_load": by_load} if peaks else {})
    print_written(trace, path)
    for key in ("used", "dropped", "connected", "refused_low", "refused_high"):
        if key in trace.metadata:
            click.echo(f"{key.replace('_', ', ')}: {int(trace.metadata[key]):,}")
    if peaks:
        less, here, more = peaks.values()
        at = trace.metadata["load"]
        print_sentences([f"peak {here:,} bytes at load {at}; 10 % less load: {less:,}; 10 % more: {more:,}"])
    return {}
