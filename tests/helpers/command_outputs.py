"""Commands on inputs that never change: those that do their work, and those that are given something wrong."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from sample_pages import busy, study_of
from sample_traces import packets_of, stack

WORKING = """
profile busy.parquet
profile stack.parquet
profile packets.parquet
profile stack.parquet --json
replay busy.parquet --heap tlsf --heap all-round
replay stack.parquet --heap tlsf --arena 20000 --json
fit busy.parquet --heap tlsf --heap fixed-pool --heap victim-bins
fit busy.parquet stack.parquet --heap tlsf --held-out stack.parquet --growth 2.5
fit busy.parquet --heap tlsf --copies 2 --growth 2
fit stack.parquet --heap tlsf --json
fit busy.parquet --heap few.toml
import calls.log -o imported.parquet
import calls.log -o imported.parquet --json
import packets.csv -o imported.parquet
pareto s.duckdb --all
pareto s.duckdb --pick balanced --json
pareto s.duckdb --against kingsley
study export s.duckdb -o rows.csv
study export s.duckdb -o rows.csv --json
study sql s.duckdb 'select count(*) as n from replays'
study info s.duckdb
study info s.duckdb --json
zoo st-memmgr-8
trace info busy.parquet
trace info busy.parquet --json
trace cut busy.parquet --part :100 -o cut.parquet
trace cut busy.parquet --part :100 -o cut.parquet --json
trace merge cut.parquet busy.parquet -o merged.parquet
trace scale busy.parquet --pointer-bytes 8 --recorded-pointer-bytes 4 -o scaled.parquet
trace copies stack.parquet --count 1 -o copies
workload poisson -o poisson.parquet
generate all-round --platform preload -o firmware
hooks newlib -o hooks
platforms
stress stack.parquet --heap all-round --calls 10000
trace export busy.parquet --format minimalloc -o e.csv
trace export busy.parquet --format malloclab -o e.rep --json
trace export busy.parquet --format c -o e.c
trace export stack.parquet --format malloclab -o -
trace diff busy.parquet stack.parquet
trace diff busy.parquet cut.parquet --json
trace worst stack.parquet tlsf --tries 5 -o worst.parquet
workload drr packets.parquet -o drr.parquet
workload queue packets.parquet --set limit=3 -o queue.parquet --json
workload url packets.parquet --load 0.5,0.7 -o url.parquet
workload modem -o modem.parquet
study diff s.duckdb s.duckdb
"""
"""Commands that do what is requested."""

FAILING = (
    "check busy.parquet --heap tlsf --budget 20K --fail-if 'failed > 0'",
    "check busy.parquet --heap tlsf --budget 2M --baseline stack.parquet --fail-if 'accesses > +5%'",
)
"""Checks that do not pass."""

WRONG: tuple[tuple[str, int, str], ...] = (
    ("profile nothing.parquet", 1, "nothing.parquet: No such file"),
    ("replay busy.parquet --heap tls", 1, "did you mean tlsf"),
    ("fit busy.parquet --heap tlsf --growth 2 --live 1K", 2, "--growth and --live both set the load"),
    ("fit busy.parquet --heap tlsf --admit 0.9", 2, "--admit is gone from fit"),
    ("fit --heap tlsf", 2, "Missing argument 'TRACE...'"),
    ("fit stack.parquet --heap tlsf --growth 0", 2, "0.0 is not in the range x>0"),
    ("import stack.parquet --repair -o imported.parquet", 2, "leave them out"),
    ("check busy.parquet --heap tlsf --fail-if 'accesses > +5%'", 2, "busy has no baseline with accesses"),
    ("pareto s.duckdb --where 'footprint_bytes < 10'", 1, "no recipe has footprint_bytes < 10; there are 700 to 5,000"),
    ("zoo tlfs", 1, "did you mean tlsf"),
    ("generate tlsf -o firmware --prefix 2x", 2, "'2x' cannot begin a C name"),
    ("hooks sqlite -o hooks", 1, "they do for esp-idf, freertos"),
    ("workload drr packets.parquet --load 0 -o drr.parquet", 2, "'0': valid: 0.7"),
    ("study merge s.duckdb -o s2.duckdb", 1, "give two studies or more"),
    ("study merge s.duckdb busy.parquet -o s2.duckdb", 1, "busy.parquet: a trace, and no study"),
    ("study again s.duckdb", 2, "as STUDY:ID"),
    ("explore nothing.parquet -o x.duckdb", 1, "nothing.parquet: no such file"),
    ("explore busy.parquet -o x.duckdb --tolerance 2", 2, "2.0 is not in the range 0<=x<=1"),
    ("explore busy.parquet -o x.duckdb --tolerance none --budget 5s", 2, "excludes --budget"),
    ("report nothing.duckdb -o x.html", 1, "nothing.duckdb: No such file"),
    ("measure tlsf busy.parquet --cpu cortex-m99", 2, "'cortex-m99' is not one of 'cortex-m0plus'"),
    ("attack tlsf --checks some", 2, "'some' is not one of 'none'"),
    ("prove tlsf --method guess", 2, "'guess' is not one of 'cbmc'"),
    ("prove tlsf --calls 40", 2, "40 is not in the range 2<=x<=8"),
    ("reproduce nothing -o x", 2, "'nothing' is not one of 'drr'"),
    ("live nothing.log -o x.parquet", 1, "nothing.log: no such file"),
)
"""Commands that are given something wrong, their exit code, and what the error names."""

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


def write_inputs() -> None:
    """Write what the commands name into the current folder."""
    busy().write("busy.parquet")
    stack(20).write("stack.parquet")
    sizes = [40, 1500, 40, 576] * 5
    packets_of(sizes, [size + 14 for size in sizes], [at % 3 for at in range(20)]).write("packets.parquet")
    study_of(Path("s.duckdb"), 1.0).close()
    for name, text in FILES.items():
        Path(name).write_text(text, encoding="utf-8")
