"""What `heapwright import` costs: CPU time a line and peak memory for each format of logs, on logs of the same calls.

    .venv/bin/python bench/imports.py [CALLS [FORMAT ...]]    # default: 300,000 calls, all formats

The calls are made up: objects of a program in four threads, a tenth of them resized, at addresses that a first fit by
size would give. The time of an import of 100 calls, nearly all of it start-up, is subtracted.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import struct
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

DEFAULT_CALLS = 300_000
LEAST_CALLS = 100
LIVE = 4000


class Call(NamedTuple):
    """A heap call: `kind` is "+" (malloc), "=" (realloc of `old`) or "-" (free)."""

    kind: str
    address: int
    size: int
    old: int
    thread: int
    time_us: int
    site: int


def calls_of(count: int) -> list[Call]:
    """Calls of a program whose live objects stay around LIVE."""
    dice = random.Random(7)
    free: dict[int, list[int]] = defaultdict(list)
    top, live, result = 0x5555_5576_02A0, list[tuple[int, int, int]](), list[Call]()

    def taken(size: int) -> int:
        nonlocal top
        rounded = (size + 31) // 16 * 16
        if free[rounded]:
            return free[rounded].pop()
        top += rounded
        return top - rounded

    for number in range(count):
        thread, site = dice.randrange(4), dice.randrange(40)
        draw = dice.random()
        if live and draw < 0.1:
            at = dice.randrange(len(live))
            old, size, _ = live[at]
            larger = min(size * 2, 4000)
            free[(size + 31) // 16 * 16].append(old)
            live[at] = (taken(larger), larger, thread)
            result.append(Call("=", live[at][0], larger, old, thread, number * 3, site))
        elif len(live) < dice.randrange(1, 2 * LIVE):
            size = int(dice.lognormvariate(4, 1)) + 1
            live.append((taken(size), size, thread))
            result.append(Call("+", live[-1][0], size, 0, thread, number * 3, site))
        else:
            at = dice.randrange(len(live))
            live[at], live[-1] = live[-1], live[at]
            address, size, _ = live.pop()
            free[(size + 31) // 16 * 16].append(address)
            result.append(Call("-", address, size, 0, thread, number * 3, site))
    return result


Lines = Callable[[list[Call]], Iterator[str]]


def text(calls: list[Call]) -> Iterator[str]:
    for call in calls:
        old = f" {call.old:#x}" if call.kind == "=" else ""
        size = f" {call.size}" if call.kind != "-" else ""
        yield f"hw{call.kind}{old} {call.address:#x}{size} {call.time_us} task{call.thread}"


def _functions(calls: list[Call], line: Callable[[str, str, str, Call], str]) -> Iterator[str]:
    for call in calls:
        address = f"{call.address:#x}"
        if call.kind == "+":
            yield line("malloc", f"{call.size}", address, call)
        elif call.kind == "=":
            yield line("realloc", f"{call.old:#x}, {call.size}", address, call)
        else:
            yield line("free", address, "", call)


def ltrace(calls: list[Call]) -> Iterator[str]:
    return _functions(calls, lambda name, of, to, _: f"{f'{name}({of})':39} = {to or '<void>'}")


def ltrace_of_threads(calls: list[Call]) -> Iterator[str]:
    return _functions(
        calls,
        lambda name, of, to, call: (
            f"{100 + call.thread} 10:{call.time_us // 60_000_000:02}:{call.time_us // 1_000_000 % 60:02}."
            f"{call.time_us % 1_000_000:06} {name}({of}){'':20} = {to or '<void>'}"
        ),
    )


def valgrind(calls: list[Call]) -> Iterator[str]:
    yield "==10== Memcheck, a memory error detector"
    for call in calls:
        address = f"0x{call.address:X}"
        if call.kind == "+":
            yield f"--10-- malloc({call.size}) = {address}"
        elif call.kind == "=":
            yield f"--10-- realloc(0x{call.old:X},{call.size}) = {address}"
        else:
            yield f"--10-- free({address})"


def mtrace(calls: list[Call]) -> Iterator[str]:
    yield "= Start"
    for call in calls:
        site = f"@ ./app:(function{call.site}+0x16)[{0x401000 + call.site * 64:#x}]"
        if call.kind == "=":
            yield f"{site} < {call.old:#x}"
            yield f"{site} > {call.address:#x} {call.size:#x}"
        else:
            yield f"{site} {call.kind} {call.address:#x}" + (f" {call.size:#x}" if call.kind == "+" else "")


def heaptrack(calls: list[Call]) -> Iterator[str]:
    yield from ("v 10400 3", "x 5 ./app")
    now = -1
    for call in calls:
        if call.time_us // 10_000 != now:
            now = call.time_us // 10_000
            yield f"c {now * 10:x}"
        if call.old or call.kind == "-":
            yield f"- {call.old or call.address:x}"
        if call.kind != "-":
            yield f"+ {call.size:x} {call.site + 1:x} {call.address:x}"


def heaptrack_interpreted(calls: list[Call]) -> Iterator[str]:
    yield from ("v 10400 3", "X ./app", "s 5 ./app")
    kinds: dict[tuple[int, int], int] = {}
    at: dict[int, int] = {}
    for call in calls:
        if call.old or call.kind == "-":
            yield f"- {at.pop(call.old or call.address):x}"
        if call.kind != "-":
            if (call.size, call.site) not in kinds:
                kinds[call.size, call.site] = len(kinds)
                yield f"a {call.size:x} {call.site + 1:x}"
            at[call.address] = kinds[call.size, call.site]
            yield f"+ {kinds[call.size, call.site]:x}"


def malloclab(calls: list[Call]) -> Iterator[str]:
    yield from ("20000", "2", "5", "1")
    at: dict[int, int] = {}
    for number, call in enumerate(calls):
        if call.kind == "+":
            at[call.address] = number
            yield f"a {number} {call.size}"
        elif call.kind == "=":
            at[call.address] = at.pop(call.old)
            yield f"r {at[call.address]} {call.size}"
        else:
            yield f"f {at.pop(call.address)}"


def rmm(calls: list[Call]) -> Iterator[str]:
    yield "Thread,Time,Action,Pointer,Size,Stream"
    for call in calls:
        time = f"10:{call.time_us // 60_000_000:02}:{call.time_us // 1_000_000 % 60:02}:{call.time_us % 1_000_000:06}"
        if call.old or call.kind == "-":
            yield f"{1234 + call.thread},{time},free,{call.old or call.address:#x},{call.size},0x0"
        if call.kind != "-":
            yield f"{1234 + call.thread},{time},allocate,{call.address:#x},{call.size},0x0"


def _seconds(call: Call, first: int) -> str:
    return f"{first + call.time_us // 10**6}.{call.time_us % 10**6:06}"


def kmem(calls: list[Call]) -> Iterator[str]:
    yield "# tracer: nop"
    for call in calls:
        head = f"            sshd-{812 + call.thread}   [001] d..2. {_seconds(call, 100)}"
        site = f"call_site=alloc_skb+{call.site:#x}/0x190"
        if call.old or call.kind == "-":
            yield f"{head}: kfree: {site} ptr={call.old or call.address:016x}"
        if call.kind != "-":
            size = f"bytes_req={call.size} bytes_alloc=1024"
            yield f"{head}: kmalloc: {site} ptr={call.address:016x} {size} gfp_flags=GFP_ATOMIC"


def lttng(calls: list[Call]) -> Iterator[str]:
    for call in calls:
        time = (
            f"[10:00:{call.time_us // 10**6 % 60:02}.{call.time_us % 10**6:06}000] (+0.000003000) host lttng_ust_libc:"
        )
        of = f"{{ cpu_id = 0 }}, {{ vtid = {7 + call.thread} }}"
        if call.kind == "+":
            yield f"{time}malloc: {of}, {{ size = {call.size}, ptr = 0x{call.address:X} }}"
        elif call.kind == "=":
            yield f"{time}realloc: {of}, {{ in_ptr = 0x{call.old:X}, size = {call.size}, ptr = 0x{call.address:X} }}"
        else:
            yield f"{time}free: {of}, {{ ptr = 0x{call.address:X} }}"


def perf(calls: list[Call]) -> Iterator[str]:
    def line(call: Call, name: str, rest: str) -> str:
        now = f"{1000 + call.time_us // 10**6}.{call.time_us % 10**6:06}000"
        return f" 7/{7 + call.thread}     [000]  {now}: {'heapwright:' + name:>26}: {rest}"

    for call in calls:
        if call.kind == "+":
            yield line(call, "malloc", f"(7f0122334455) size={call.size}")
            yield line(call, "malloc__return", f"(7f0122334455 <- 5501aabbccdd) pointer={call.address:#x}")
        elif call.kind == "=":
            yield line(call, "realloc", f"(7f0122334499) pointer={call.old:#x} size={call.size}")
            yield line(call, "realloc__return", f"(7f0122334499 <- 5501aabbccdd) pointer={call.address:#x}")
        else:
            yield line(call, "free", f"(7f01223344aa) pointer={call.address:#x}")


def bpftrace(calls: list[Call]) -> Iterator[str]:
    for call in calls:
        head = f"{call.time_us * 1000} 7 {7 + call.thread}"
        if call.kind == "=":
            yield f"{head} < {call.old:x}"
            yield f"{head} > {call.address:x} {call.size}"
        else:
            yield f"{head} {call.kind} {call.address:x}" + (f" {call.size}" if call.kind == "+" else "")


def esp_idf(calls: list[Call]) -> Iterator[str]:
    mallocs = [call for call in calls if call.kind == "+"]
    yield f"====== Heap Trace: {len(mallocs)} records ({len(mallocs)} capacity) ======"
    for call in mallocs:
        yield (
            f"    {call.size} bytes (@ {call.address & 0xFFFFFFFF:#x}, Internal) allocated CPU 0 ccount 0x0e0c caller "
            f"0x400d{call.site:04x}:0x400d2000"
        )
        yield "freed by 0x400d3000:0x400d4000"
    yield "====== Heap Trace Summary ======"


def nuttx(calls: list[Call]) -> Iterator[str]:
    for call in calls:
        head = f"     init-{1 + call.thread}   [0] {_seconds(call, 0)}000: tracing_mark_write: C|1|Heap Usage|1024|"
        if call.old or call.kind == "-":
            yield f"{head}free: heap: 0x40001000 size:{call.size}, address: {call.old or call.address:#x}"
        if call.kind != "-":
            yield f"{head}malloc: heap: 0x40001000 size:{call.size}, address: {call.address:#x}"


def calls_csv(calls: list[Call]) -> Iterator[str]:
    yield "time_us,op,address,size,old,thread,site"
    names = {"+": "malloc", "=": "realloc", "-": "free"}
    for call in calls:
        old = f"{call.old:#x}" if call.old else ""
        yield f"{call.time_us},{names[call.kind]},{call.address:#x},{call.size},{old},t{call.thread},f{call.site}"


def own_wording(calls: list[Call]) -> Iterator[str]:
    for call in calls:
        if call.old or call.kind == "-":
            yield f"[{call.time_us / 1e6:12.6f}] heap: freed {call.size} bytes at {call.old or call.address:#x}"
        if call.kind != "-":
            yield f"[{call.time_us / 1e6:12.6f}] heap: allocated {call.size} bytes at {call.address:#x}"


PATTERNS = (
    "--pattern",
    "alloc=[ {seconds}] heap: allocated {size} bytes at {address}",
    "--pattern",
    "free=[ {seconds}] heap: freed ... bytes at {address}",
)


def bytehound(calls: list[Call]) -> bytes:
    kinds, at, result = {"+": 1, "-": 2, "=": 3}, dict[int, int](), bytearray()
    for number, call in enumerate(calls):
        slot = number if call.kind == "+" else at.pop(call.old or call.address)
        at[call.address] = slot
        result += struct.pack("=4Q", kinds[call.kind], slot, call.time_us, call.size)
    return bytes(result)


FORMATS: dict[str, Lines] = {
    "text": text,
    "ltrace": ltrace,
    "ltrace -f -tt": ltrace_of_threads,
    "valgrind": valgrind,
    "mtrace": mtrace,
    "heaptrack --raw": heaptrack,
    "heaptrack": heaptrack_interpreted,
    "malloclab": malloclab,
    "rmm": rmm,
    "kmem": kmem,
    "lttng": lttng,
    "perf": perf,
    "bpftrace": bpftrace,
    "esp-idf": esp_idf,
    "nuttx": nuttx,
    "calls-csv": calls_csv,
    "pattern": own_wording,
}


def imported(log: Path, *options: str) -> tuple[float, int]:
    """CPU seconds and peak memory in MB of an import of a log."""
    command = [str(Path(sys.executable).with_name("heapwright")), "import", str(log), "-o", f"{log}.parquet", *options]
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        if process.returncode:
            raise SystemExit(f"{log.name}: {output.read()}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss // 1024


def write(name: str, count: int, log: Path) -> None:
    """Write a log of `count` calls, and the number of its lines next to it."""
    calls = calls_of(count)
    if name == "bytehound":
        log.write_bytes(bytehound(calls))
        lines = len(calls)
    else:
        text = list(FORMATS[name](calls))
        log.write_text("\n".join(text) + "\n")
        lines = len(text)
    log.with_suffix(".lines").write_text(str(lines))


def written(name: str, count: int, folder: Path) -> tuple[Path, int]:
    """A log and its number of lines, by another process: else its memory would count as the import's."""
    log = folder / f"{name.replace(' ', '_')}-{count}.log"
    process = multiprocessing.get_context("spawn").Process(target=write, args=(name, count, log))
    process.start()
    process.join()
    return log, int(log.with_suffix(".lines").read_text())


def main(count: int, names: list[str]) -> None:
    """Print a row for each format."""
    print(f"{'format':16} {'lines':>9} {'us a line':>9} {'CPU s':>6} {'MB':>5}")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            short, few_lines = written(name, LEAST_CALLS, Path(folder))
            long, many_lines = written(name, count, Path(folder))
            options = PATTERNS if name == "pattern" else ()
            start = min(imported(short, *options)[0] for _ in range(3))
            seconds, most = min(imported(long, *options) for _ in range(2))
            each = (seconds - start) / (many_lines - few_lines) * 1e6
            print(f"{name:16} {many_lines:9,} {each:9.2f} {seconds:6.2f} {most:5}", flush=True)
            long.unlink()


if __name__ == "__main__":
    given = sys.argv[1:]
    main(int(given[0]) if given else DEFAULT_CALLS, given[1:] or [*FORMATS, "bytehound"])
