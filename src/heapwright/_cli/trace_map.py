"""`heapwright trace map`: the same calls with other buffer sizes, with static buffers, or with fewer connections."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from heapwright._cli.options import Bytes, read_traces, trace_output_option
from heapwright._cli.output import json_option, print_json, print_sentences
from heapwright._cli.pipes import called, from_stdin
from heapwright._support.units import number_of

if TYPE_CHECKING:
    from heapwright._traces.trace import Trace
    from heapwright._traces.what_if import WhatIf


class _SizePair(click.ParamType[tuple[int, int]]):
    """OLD:NEW, two numbers of bytes."""

    name = "sizes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """Read them."""
        if isinstance(value, tuple):
            return value
        try:
            old, new = (int(number_of(part)) for part in value.split(":"))
        except ValueError:
            self.fail(f"{value!r}: valid: OLD:NEW in bytes, as 16717:4429 or 16K:4K", param, ctx)
        return old, new


@click.command("map")
@click.argument("path", metavar="TRACE", type=click.Path(path_type=Path), callback=from_stdin)
@trace_output_option
@click.option("--size", "sizes", type=_SizePair(), multiple=True, metavar="OLD:NEW", help="Request NEW bytes for OLD.")
@click.option("--static", type=Bytes(), metavar="BYTES", help="Take static buffers for the objects of this size.")
@click.option(
    "--only-connections",
    type=click.IntRange(min=1),
    metavar="N",
    help="At most N connections at a time; --connection identifies them.",
)
@click.option(
    "--connection",
    type=Bytes(),
    metavar="BYTES",
    help="A connection is open as long as an object of this size is allocated.",
)
@json_option
def map_command(
    path: Path,
    output: Path,
    sizes: tuple[tuple[int, int], ...],
    static: int | None,
    only_connections: int | None,
    connection: int | None,
    as_json: bool,
) -> None:
    """Write a trace as it would be after a change: smaller buffers, static buffers, or fewer connections.

    Changes are made in this order: connections, static buffers, sizes. Replay or fit the result to see what each saves.
    """
    if not sizes and static is None and only_connections is None:
        raise click.UsageError("give a change: --size OLD:NEW, --static BYTES, or --only-connections N")
    if (only_connections is None) != (connection is None):
        raise click.UsageError("--only-connections and --connection go together: N, and the size of the object")
    (trace,) = read_traces((path,))
    changes = _changes(trace, only_connections, connection, static, dict(sizes))
    result = changes[-1].trace
    result.write(output)
    if as_json:
        rows = [{key.name: getattr(change, key.name) for key in dataclasses.fields(change)} for change in changes]
        print_json({"path": str(output), "changes": [{**row, "trace": row["trace"].name} for row in rows]})
        return
    print_sentences([*(change.says for change in changes), f"{called(output)}: {len(result):,} calls"])


def _changes(
    trace: Trace, only_connections: int | None, connection: int | None, static: int | None, sizes: dict[int, int]
) -> list[WhatIf]:
    """Make the changes in turn, each to the trace of the one before."""
    from heapwright import _api as api

    changes: list[WhatIf] = []
    if only_connections is not None and connection is not None:
        changes.append(api.with_connections(trace, only_connections, connection))
    if static is not None:
        changes.append(api.with_static(changes[-1].trace if changes else trace, static))
    if sizes:
        changes.append(api.map_sizes(changes[-1].trace if changes else trace, sizes))
    return changes
