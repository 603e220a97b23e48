"""`heapwright network`: from captured packets to a heap with its reserve."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from heapwright._cli.options import Duration
from heapwright._cli.output import json_option, print_json, print_sentences
from heapwright._cli.progress import exploration_progress
from heapwright._cli.steps import print_command, print_heading
from heapwright._cli.workload import LOADS, chosen_settings

if TYPE_CHECKING:
    from heapwright._api.from_packets import Network, Step


@click.command()
@click.argument("captures", metavar="CAPTURE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--queue",
    metavar="fifo|drr|priority|fixed|FILE.py",
    default="fifo",
    show_default=True,
    help="How packets wait for the link: first in, first out; deficit round robin; short ones first; a queue of fixed "
    "length; or a queue of your own in Python (docs/network.md).",
)
@click.option(
    "--ring",
    metavar="N",
    type=click.IntRange(1, (1 << 32) - 1),
    help="Most packets in the queue, as descriptors of a driver's ring. The reserve is then proved for any order.",
)
@click.option(
    "--mtu", metavar="BYTES", type=click.IntRange(68, 0xFFFF), help="Largest IP packet; default the largest captured."
)
@click.option(
    "--state", metavar="BYTES", type=click.IntRange(0, 1 << 20), help="Bytes that you store with each packet."
)
@click.option(
    "--load",
    metavar="SHARE[,...]",
    type=LOADS,
    default="0.9",
    show_default=True,
    help="Share of time the link is busy; --set rate=BITS gives its speed instead. One heap suits several loads.",
)
@click.option(
    "--set", "settings", metavar="NAME=VALUE", multiple=True, help="Another parameter of the queue (docs/workloads.md)."
)
@click.option("--platform", metavar="PLATFORM", help="Platform of the C, as freertos; see heapwright platforms.")
@click.option("--budget", type=Duration(), metavar="TIME", help="Time to explore; default 30s for long captures.")
@click.option(
    "-o",
    "--output",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    default="heapwright-network",
    show_default=True,
    help="The folder of all results.",
)
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    captures: tuple[Path, ...],
    queue: str,
    settings: tuple[str, ...],
    output: Path,
    as_json: bool,
    **options: Any,
) -> None:
    """Make the heap for the packets of captures: what the traffic is, what a queue holds, the heap, its reserve, C.

    CAPTURE is pcap, pcapng, tsh, CSV or a packet table; of several networks one heap suits all. Every step is a command
    of its own, which is printed.
    """
    from heapwright._api.from_packets import QUEUES, network

    if queue not in QUEUES and not queue.endswith(".py"):
        raise click.BadParameter(f"{queue}: valid: {', '.join(QUEUES)}, or a Python file", ctx, param_hint="--queue")
    parameter = next(item for item in ctx.command.params if item.name == "settings")
    chosen = chosen_settings(QUEUES.get(queue, queue), settings, ctx, parameter)
    with exploration_progress() as progress:
        answer = network(
            captures,
            output,
            queue=queue,
            settings=chosen,
            done=(lambda step: None) if as_json else _print_step,
            progress=progress,
            **options,
        )
    if as_json:
        print_json(_in_json(answer))


def _print_step(step: Step) -> None:
    print_heading(step.title)
    print_command(step.command)
    print_sentences(step.sentences)


def _in_json(answer: Network) -> dict[str, Any]:
    decision = answer.decision
    return {
        "packets": list(map(str, answer.packets)),
        "traces": list(map(str, answer.traces)),
        "queues": [
            {
                "keeps_up": item.keeps_up,
                "objects": item.bound and item.bound.objects,
                "payload_bytes": item.bound and item.bound.payload_bytes,
                "waiting_share": item.waiting,
                "dropped_share": item.dropped,
                "proposed_ring": item.ring,
            }
            for item in answer.bounds
        ],
        "study": str(answer.study),
        "heap": decision.pick.id,
        "reserve_bytes": answer.reserve_bytes,
        "proofs": [asdict(proof) for proof in answer.proofs],
        "energy_nJ_per_block": answer.energy,
        "metrics": decision.pick.metrics,
        "files": list(map(str, answer.heap)),
        "page": str(answer.page),
        "commands": [shlex.join(step.command) for step in answer.steps],
    }
