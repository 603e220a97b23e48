"""What commands print of inputs that never change: `python tests/printed.py` writes `printed.txt`, for people to read.

A change of what a person sees, on stdout, on stderr or as an exit code, stands there as a difference.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import click
from drawn import busy, study_of
from in_process import run_here
from made_traces import packets_of, stack

from heapwright.cli import heapwright
from heapwright.files.version import __version__

TEXT = Path(__file__).with_name("printed.txt")
HELPS = Path(__file__).with_name("help_digests.txt")

COMMANDS = """
profile busy.parquet
profile stack.parquet
profile packets.parquet
profile stack.parquet --json
profile nothing.parquet
replay busy.parquet --heap tlsf --heap all-round
replay stack.parquet --heap tlsf --arena 20000 --json
replay busy.parquet --heap tls
fit busy.parquet --heap tlsf --heap fixed-pool --heap victim-bins
fit busy.parquet stack.parquet --heap tlsf --held-out stack.parquet --clients 10:25
fit busy.parquet --heap tlsf --copies 2 --growth 2
fit stack.parquet --heap tlsf --json
fit busy.parquet --heap tlsf --growth 2 --clients 1:2
fit busy.parquet --heap tlsf --admit 0.9
fit busy.parquet --heap tlsf --admit 0.9 --step 8
fit busy.parquet --heap tlsf --set n=2
fit --heap tlsf
fit busy.parquet --heap few.toml
fit stack.parquet --heap tlsf --growth 0
import calls.log -o imported.parquet
import calls.log -o imported.parquet --json
import packets.csv -o imported.parquet
import stack.parquet --repair -o imported.parquet
check busy.parquet --heap tlsf --budget 20K --fail-if 'failed > 0'
check busy.parquet --heap tlsf --fail-if 'accesses > +5%'
check busy.parquet --heap tlsf --budget 2M --baseline stack.parquet --fail-if 'accesses > +5%'
pareto s.duckdb --all
pareto s.duckdb --where 'footprint_bytes < 10'
pareto s.duckdb --pick balanced --json
pareto s.duckdb --against kingsley
study export s.duckdb -o rows.csv
study export s.duckdb -o rows.csv --json
study sql s.duckdb 'select count(*) as n from replays'
study info s.duckdb
study info s.duckdb --json
zoo tlfs
zoo st-memmgr-8
trace info busy.parquet
trace info busy.parquet --json
trace cut busy.parquet --first 100 -o cut.parquet
trace cut busy.parquet --first 100 -o cut.parquet --json
trace merge cut.parquet busy.parquet -o merged.parquet
trace scale busy.parquet --pointer-bytes 8 --recorded-pointer-bytes 4 -o scaled.parquet
trace copies stack.parquet --count 1 -o copies
workload poisson -o poisson.parquet
generate all-round --platform preload -o firmware
generate tlsf -o firmware --prefix 2x
hooks newlib -o hooks
hooks sqlite -o hooks
platforms
endure stack.parquet --heap all-round --calls 10000
trace export busy.parquet --format minimalloc -o e.csv
trace export busy.parquet --format malloclab -o e.rep --json
trace export busy.parquet --format c -o e.c
trace export stack.parquet --format malloclab -o -
trace diff busy.parquet stack.parquet
trace diff busy.parquet cut.parquet --json
trace worst stack.parquet tlsf --tries 5 -o worst.parquet
workload drr packets.parquet -o drr.parquet
workload queue packets.parquet --limit 3 -o queue.parquet --json
workload url packets.parquet --load 0.5,0.7 -o url.parquet
workload drr packets.parquet --load 0 -o drr.parquet
workload modem -o modem.parquet
study diff s.duckdb s.duckdb
study merge s.duckdb -o s2.duckdb
study merge s.duckdb busy.parquet -o s2.duckdb
study again s.duckdb
explore nothing.parquet -o x.duckdb
explore busy.parquet -o x.duckdb --tolerance 2
explore busy.parquet -o x.duckdb --complete --budget 5s
report nothing.duckdb -o x.html
measure tlsf busy.parquet --cpu cortex-m99
attack tlsf --checks some
prove tlsf --method guess
prove tlsf --calls 40
reproduce nothing -o x
live nothing.log -o x.parquet
"""


FILES = {
    "few.toml": '[[pool]]\nkind = "fixed"\nsizes = [64, 512]\ncounts = [10, 20]\n',
    "calls.log": "hw+ 0x1000 24 10\nhw+ 0x2000 100 20\nhw= 0x1000 0x1000 30 25\nhw- 0x2000 30\nhw- 0x3000 40\n",
    "packets.csv": "time,length\n0.5,60\n1.5,1500\n",
}


@contextlib.contextmanager
def within(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def printed(folder: Path) -> str:
    """The commands, each with what it prints, its notes and its exit code where that is not 0."""
    with within(folder), mock.patch.dict(os.environ, {"COLUMNS": "100"}):
        busy().write("busy.parquet")
        stack(20).write("stack.parquet")
        sizes = [40, 1500, 40, 576] * 5
        packets_of(sizes, [size + 14 for size in sizes], [at % 3 for at in range(20)]).write("packets.parquet")
        study_of(Path("s.duckdb"), 1.0).close()
        for name, text in FILES.items():
            Path(name).write_text(text, encoding="utf-8")
        lines = []
        for command in COMMANDS.strip().splitlines():
            done = run_here(*shlex.split(command))
            errors = done.stderr.splitlines()  # the name of the program is that of what tests
            notes = [f"! {line}" for line in errors if line and not line.startswith(("Usage:", "Try '"))]
            ended = [f"= {done.returncode}"] if done.returncode else []
            lines += [f"$ heapwright {command}", *done.stdout.splitlines(), *notes, *ended, ""]
        text = "\n".join(lines).replace(str(folder), "").replace(__version__, "VERSION")
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]?[\d:+.Z]*", "DAY", text)
    return re.sub(r"\d+\.\d{7,}", lambda number: f"{float(number[0]):.6g}", text)  # the last digits are a machine's


def helps() -> str:
    """A digest of the words of each command: what it does, and its parameters with what they are."""
    lines = []
    for names, command in commands(heapwright):
        told = [
            [one.name, one.opts, one.metavar, getattr(one, "help", ""), one.required, one.multiple, one.nargs]
            for one in command.params
            if isinstance(one, click.Option | click.Argument) and one.name != "help"
        ]
        told.append([command.help, command.hidden])
        digest = hashlib.sha256(json.dumps(told, default=str).encode()).hexdigest()[:16]
        lines.append(f"{digest}  {' '.join(names)}\n")
    return "".join(lines)


def commands(group: click.Group, names: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """All, those of groups too."""
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        yield (*names, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*names, name))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as found:
        TEXT.write_text(printed(Path(found)), encoding="utf-8")
    HELPS.write_text(helps(), encoding="utf-8")
