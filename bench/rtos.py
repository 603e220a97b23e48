"""A FreeRTOS application from elsewhere: recorded, explored, and run with the heap that came of it.

    .venv/bin/python bench/rtos.py

It is lwIP's example application on lwIP's port for FreeRTOS, from Debian's sources, on a kernel and an emulated
Cortex-M3 with Ethernet: a web server, echoes, a generator of characters, a shell, an SNMP agent and an MQTT client.
Clients on this machine ask it (`rtos_load.py`). One run with the kernel's heap_4.c is recorded. Reported of each heap:
instructions of pvPortMalloc and vPortFree in the kernel in a critical section, as `heapwright measure` replays the
recording, as a timer of the board shows in another run, with the scheduler suspended, and of the heap alone; the arena
that the recording needs, and the one to reserve; how many of six runs with clients of other seeds, in that reserve, had
a request refused; and how far it grows in `heapwright stress`, with a mark if it is not stable. Then twice the
clients, of whom the pick knew nothing. A quarter of an hour; needs arm-none-eabi-gcc with picolibc, and
qemu-system-arm.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import click
import originals
import rtos_load
from rtos_load import Load
from tables import print_table

import heapwright as hw
from heapwright import HeapwrightError, Trace

BOARDS = Path(__file__).resolve().parent.parent / "tests/c/boards"
OWN = BOARDS / "lwip_example"
COMPILER = ("arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb", "-ffunction-sections", "-fdata-sections")
LIBRARY = ("--specs=picolibc.specs", "--oslib=semihost", "--crt0=hosted")
MEMORY = "-Wl,--gc-sections,--defsym=__flash=0,--defsym=__flash_size=0x400000,--defsym=__ram=0x20000000"
STACK_PATTERNS = ("core/*.c", "core/ipv4/*.c", "api/*.c", "netif/ethernet.c", "apps/snmp/*.c", "apps/mqtt/mqtt.c")
STACK_FILES = ("apps/http/httpd.c", "apps/http/fs.c")
EXAMPLES = ("tcpecho/tcpecho.c", "udpecho/udpecho.c", "chargen/chargen.c", "shell/shell.c")
MORE_EXAMPLES = ("mqtt/mqtt_example.c", "snmp/snmp_example.c", "snmp/snmp_private_mib/*.c")
RING = ("-DTRACED", "-DAPP_TRACE_RECORDS=262144", "-DAPP_TRACE_OBJECTS=4096")
WRAPPED = "-Wl,--wrap=sys_thread_new"

KERNELS = "heap_4.c"
PICK = "pick"
LISTED = "pick + 2 lists"
MOST_LISTED, LIST_BLOCKS = 2, 4
"""Lists for the most frequent sizes, of a number of blocks each at most: short enough to stay stable."""
BLIND = ("all-round", "victim-bins", "lea-2.7.2", "tlsf")
ALIGN = 8
ROOMY = 512 * 1024
"""Bytes of the arena that is recorded in."""
RECORDED_SEED = 1
FIRST_SEED = 2
TWICE = 2
AT_ONCE = 3
"""Boards that run side by side: each sleeps most of the time."""
TICKS_PER_INSTRUCTION = 0.8
INSTRUCTION = ("-icount", "shift=5")
"""32 ns, 0.8 ticks of the board's 25 MHz timer: a Cortex-M3 of some 31 MHz."""
IN_A_CRITICAL_SECTION = """\
#include "FreeRTOS.h"
#include "task.h"
#define vTaskSuspendAll() taskENTER_CRITICAL()
#define xTaskResumeAll() (taskEXIT_CRITICAL(), pdFALSE)
"""
"""Before heap_4.c, which has none of its own."""


@dataclass(frozen=True)
class Application:
    """The example application's objects, all but its heap.

    Attributes:
        objects: of lwIP, the kernel and the examples.
        includes: flags for them and for what is added.
        kernel: the folder of FreeRTOS's sources.
        folder: where images are linked.
    """

    objects: tuple[Path, ...]
    includes: tuple[str, ...]
    kernel: Path
    folder: Path

    @classmethod
    def built(cls, folder: Path, level: str = "-Os") -> Application:
        """Fetch the sources and compile them with this optimisation. Raises MissingError."""
        kernel, stack, contrib = originals.freertos().parents[1], originals.lwip(), originals.lwip_contrib()
        searched = [contrib, contrib / "examples/example_app", contrib / "ports/freertos/include", stack / "include"]
        searched += [kernel / "include", kernel / "portable/GCC/ARM_CM3"]
        includes = (f"-I{OWN}", *(f"-isystem{path}" for path in searched))
        sources = [path for pattern in STACK_PATTERNS for path in sorted(stack.glob(pattern))]
        sources += [stack / name for name in STACK_FILES] + [contrib / "apps" / name for name in EXAMPLES]
        sources += [path for pattern in MORE_EXAMPLES for path in sorted((contrib / "examples").glob(pattern))]
        sources += [contrib / "ports/freertos/sys_arch.c", kernel / "portable/GCC/ARM_CM3/port.c"]
        sources += [kernel / name for name in ("tasks.c", "queue.c", "list.c")]
        objects = folder / "objects"
        objects.mkdir(parents=True, exist_ok=True)
        _compiled([level, *includes, "-w", "-c", *map(str, sources)], objects)
        example = contrib / "examples/example_app/test.c"
        _compiled([level, *includes, "-w", "-Dmain=lwip_example_main", "-c", str(example)], objects)
        return cls(tuple(sorted(objects.glob("*.o"))), includes, kernel, folder)

    @property
    def heap_4(self) -> Path:
        """The kernel's own heap."""
        return self.kernel / "portable/MemMang/heap_4.c"

    def linked(self, name: str, heap: Path, arena: int, more: Sequence[str | Path] = ()) -> Path:
        """An image with this heap's file."""
        image = self.folder / f"{name}.elf"
        flags = [
            "-Os",
            "-Wall",
            *self.includes,
            f"-I{heap.parent}",
            f"-DconfigTOTAL_HEAP_SIZE={arena}",
            MEMORY,
            WRAPPED,
        ]
        flags += ["-Wl,--defsym=__ram_size=0x400000", *map(str, more)]
        own = [OWN / "board.c", OWN / "lan9118.c", heap, *self.objects]
        _compiled([*flags, *map(str, own), "-o", str(image)], self.folder)
        return image


def _compiled(arguments: Sequence[str], folder: Path) -> None:
    try:
        done = subprocess.run([*COMPILER, *LIBRARY, *arguments], cwd=folder, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise originals.MissingError("the application", str(error)) from None
    if done.returncode:
        raise HeapwrightError(f"the application does not compile:\n{done.stderr}")


@dataclass(frozen=True)
class Run:
    """What the board counted in one run, and the requests of clients that were answered or not."""

    mallocs: int
    refused: int
    most: int
    served: int
    failed: int
    console: str

    @classmethod
    def of(cls, image: Path, load: Load, seed: int, seconds: float) -> Run:
        ran = rtos_load.run(image, load, seed, seconds, INSTRUCTION)
        result = re.search(r"^mallocs (\d+) frees \d+ refused (\d+) most (\d+)$", ran.console, re.MULTILINE)
        if result is None:
            raise HeapwrightError(f"{image.name}: the board did not end well: {ran.console[-500:]!r}")
        mallocs, refused, most = map(int, result.groups())
        return cls(mallocs, refused, most, ran.served.total(), ran.failed.total(), ran.console)


def recorded(application: Application, load: Load, seconds: float) -> Trace:
    """The calls of one run with the kernel's own heap, none of them missing; kept in the folder."""
    kept = application.folder / "recorded.parquet"
    if kept.exists():
        return Trace.read(kept)
    hooks = application.folder / "hooks"
    sources = [path for path in hw.hooks("freertos", hooks) if path.suffix == ".c"]
    wrap = "-Wl,--wrap=pvPortMalloc,--wrap=pvPortCalloc,--wrap=vPortFree"
    more: list[str | Path] = [*RING, f"-I{hooks}", *sources, wrap]
    image = application.linked("recorded", application.heap_4, ROOMY, more)
    log = application.folder / "recorded.log"
    log.write_text(Run.of(image, load, RECORDED_SEED, seconds).console)
    trace = hw.import_log(log)
    if trace.repairs or "caveats" in trace.metadata:
        raise HeapwrightError(f"calls are missing: {trace.repairs} {trace.metadata.get('caveats', '')}")
    trace.write(kept)
    return Trace.read(kept)


@dataclass(frozen=True)
class Heap:
    """One heap: its recipe, how the kernel has it, and its place in a build."""

    name: str
    recipe: hw.Recipe
    file: Path
    measured: str | hw.Recipe

    def pair(self, trace: Trace, kernel: Path, lock: str) -> tuple[float, float]:
        """Instructions of a malloc and of a free on average."""
        info = hw.measure(self.measured, trace, platform="freertos", kernel=kernel, lock=lock, compiler="gcc")
        calls = info["calls"]
        return calls["malloc"]["instructions_mean"], calls["free"]["instructions_mean"]

    def alone(self, trace: Trace) -> float:
        """Instructions of both as generated for no kernel: without lock, glue and counters."""
        calls = hw.measure(self.recipe, trace, compiler="gcc")["calls"]
        return sum(float(calls[kind]["instructions_mean"]) for kind in ("malloc", "free"))


def heaps(application: Application, trace: Trace) -> list[Heap]:
    """The kernel's own, the pick of an exploration of the trace, and those that one would take blind."""
    study = application.folder / "study.duckdb"
    if not study.exists():
        hw.explore(trace, study, align=ALIGN)
    recipes = {PICK: hw.open_study(study).pick("balanced").recipe}
    if [pool.kind for pool in recipes[PICK].pools] == ["general"]:
        recipes[LISTED] = with_short_lists(recipes[PICK], trace)
    recipes |= {name: hw.zoo(name).at_alignment(ALIGN) for name in BLIND}
    kernels = hw.zoo("freertos-heap4").at_alignment(ALIGN)
    results = [Heap(KERNELS, kernels, application.heap_4, "lib:freertos-heap4")]
    return [*results, *(generated(application, name, recipe) for name, recipe in recipes.items())]


def with_short_lists(recipe: hw.Recipe, trace: Trace) -> hw.Recipe:
    """Short lists for the most frequent sizes of blocks, before a recipe of one general pool."""
    (pool,) = recipe.pools
    assert pool.kind == "general"
    sizes: dict[int, int] = {}
    for row in hw.profile(trace)["sizes"]:
        sizes.setdefault(pool.capacity_for(row["size"], recipe.geometry), row["size"])
    lists = {"kind": "quick", "sizes": list(sizes.values())[:MOST_LISTED], "limit_blocks": LIST_BLOCKS}
    return recipe.from_dict(recipe.to_dict() | {"pool": [lists, *recipe.to_dict()["pool"]]})


def generated(application: Application, name: str, recipe: hw.Recipe) -> Heap:
    """A recipe as the kernel's heap."""
    folder = application.folder / name
    hw.generate(recipe, folder, platform="freertos")
    return Heap(name, recipe, folder / "app_freertos.c", recipe)


def runs_of(
    application: Application, heap: Heap, arena: int, loads: Sequence[tuple[Load, int]], seconds: float
) -> list[Run]:
    """What a heap does in an arena, under loads with their seeds."""
    image = application.linked(f"{heap.name}-{arena}", heap.file, arena, ["-DAPP_FREERTOS_CRITICAL=1"])
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda item: Run.of(image, item[0], item[1], seconds), loads))


def timed_pair(application: Application, heap: Heap, seconds: float) -> tuple[float, float]:
    """Instructions of a malloc and a free in the application itself, timed on the board, in a critical section."""
    more: list[str | Path] = ["-DTIMED", "-DNDEBUG", OWN / "timed.c", "-Wl,--wrap=pvPortMalloc,--wrap=vPortFree"]
    more.append("-DAPP_FREERTOS_CRITICAL=1")
    file = heap.file
    if heap.name == KERNELS:
        file = application.folder / "heap_4_critical.c"
        file.write_text(f'{IN_A_CRITICAL_SECTION}#include "{heap.file}"\n')
    image = application.linked(f"{heap.name}-timed", file, ROOMY, more)
    info = Run.of(image, Load(), RECORDED_SEED, seconds).console
    (result,) = re.findall(r"^ticks: malloc (\d+) free (\d+) in thousandths$", info, re.MULTILINE)
    malloc, free = (int(thousandths) / 1000 / TICKS_PER_INSTRUCTION for thousandths in result)
    return malloc, free


def print_heaps(application: Application, trace: Trace, result: Sequence[Heap], runs: int, seconds: float) -> None:
    """Instructions of a malloc and a free, arenas, and runs at the reserve."""
    calls, arenas = [], []
    loads = [(Load(), seed) for seed in range(FIRST_SEED, FIRST_SEED + runs)]
    for heap in result:
        malloc, free = heap.pair(trace, application.kernel, "critical")
        suspended = sum(heap.pair(trace, application.kernel, "scheduler"))
        timed = sum(timed_pair(application, heap, seconds))
        numbers = [malloc, free, malloc + free, timed, suspended, heap.alone(trace)]
        calls.append([heap.name, *(f"{number:.1f}" for number in numbers)])
        endured = hw.stress(trace, heap.recipe)[0]
        need = hw.fit(trace, heap.recipe, copies=0)
        arena, reserve = need.smallest_arena_bytes or 0, need.reserve_bytes or 0
        done = runs_of(application, heap, reserve, loads, seconds)
        refused = sum(item.refused > 0 for item in done)
        most = max(item.most for item in done)
        arenas.append([heap.name, f"{arena:,}", f"{reserve:,}", f"{reserve / arena:.3f}"])
        arenas[-1] += [f"{refused} of {runs}", f"{most:,}", *map(str, _requests(done))]
        arenas[-1].append(f"{endured.growth_ratio:.3f}{'' if endured.stable else '!'}")
    headings = ["heap", "malloc", "free", "pair", "timed", "suspended", "alone"]
    print_table("Instructions, in a critical section", headings, [calls])
    headings = ["heap", "arena", "reserve", "over it", "refused", "most", "requests", "unanswered", "grows"]
    print_table("Runs at the reserve", headings, [arenas])


def _requests(runs: Sequence[Run]) -> tuple[int, int]:
    """Of clients in all runs: those answered, and those not, as a datagram that was lost."""
    return sum(run.served for run in runs), sum(run.failed for run in runs)


def print_twice(application: Application, trace: Trace, pick: Heap, runs: int, seconds: float) -> None:
    """Twice the clients, in the reserve for the recorded load and in that for this growth."""
    loads = [(Load().times(TWICE), seed) for seed in range(FIRST_SEED, FIRST_SEED + runs)]
    rows = []
    for name, growth in (("for the recorded load", 1.0), (f"--growth {TWICE}", float(TWICE))):
        arena = hw.fit(trace, pick.recipe, copies=0, growth=growth).reserve_bytes or 0
        done = runs_of(application, pick, arena, loads, seconds)
        refused, most = sum(item.refused > 0 for item in done), max(item.most for item in done)
        rows.append([name, f"{arena:,}", f"{refused} of {runs}", f"{most:,}"])
    title = f"The pick under {TWICE} times the clients"
    print_table(title, ["reserve", "bytes", "refused", "most"], [rows])


@click.command()
@click.option("--runs", default=6, show_default=True, help="Runs of each heap at its reserve.")
@click.option("--seconds", default=20.0, show_default=True, help="How long the clients of a run ask.")
@click.option("--cache", type=click.Path(file_okay=False, path_type=Path), help="Keep builds, traces and study here.")
def main(runs: int, seconds: float, cache: Path | None) -> None:
    """Print both tables."""
    with tempfile.TemporaryDirectory(prefix="heapwright-bench-") as name:
        application = Application.built((cache or Path(name)).resolve())
        trace = recorded(application, Load(), seconds)
        result = heaps(application, trace)
        pick = next(heap for heap in result if heap.name == PICK)
        click.echo(f"{trace!r}\npick: {pick.recipe.title()}, {pick.recipe.hash}")
        print_heaps(application, trace, result, runs, seconds)
        print_twice(application, trace, pick, runs, seconds)


if __name__ == "__main__":
    try:
        main()
    except (hw.HeapwrightError, originals.MissingError) as error:
        sys.exit(f"bench: {error}")
