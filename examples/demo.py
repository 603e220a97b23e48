"""The whole way on a trace that ships with the project: `make demo`.

Explores more than 10,000 allocators on the calls of an MQTT broker, measures the best on an emulated Cortex-M3, ships
the balanced pick as C, compiles and tests it, and writes the report. Every step is a command that works as well by
hand; results go to demo/.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import textwrap
import time
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TRACE = Path("examples/mosquitto_broker.parquet")
OUTPUT = Path("demo")
STUDY = OUTPUT / "study.duckdb"
REPORT = OUTPUT / "report.html"
FIRMWARE = OUTPUT / "firmware"
HEAPWRIGHT = Path(sys.executable).with_name("heapwright")


COLUMNS = 100


def say(text: str) -> None:
    """A heading, in lines of `COLUMNS` at most."""
    text = textwrap.fill(text, COLUMNS)
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}", flush=True)


def run(*command: str | Path, capture: bool = False, quiet: bool = False) -> str:
    """Show a command and run it in the checkout; what it prints goes to the screen, or is returned.

    `quiet` shows what it tells on stderr where it fails alone.
    """
    words = [str(word) for word in command]
    shown = ["heapwright" if word == str(HEAPWRIGHT) else word for word in words]
    lines = textwrap.wrap(shlex.join(shown), COLUMNS - 6, break_long_words=False, break_on_hyphens=False)
    print("$ " + " \\\n    ".join(lines), flush=True)
    pipe = subprocess.PIPE
    done = subprocess.run(
        words, cwd=ROOT, check=False, stdout=pipe if capture else None, stderr=pipe if quiet else None, text=True
    )
    if done.returncode:
        print(done.stderr or "", end="", file=sys.stderr)
        sys.exit(f"demo: this command failed with exit code {done.returncode}")
    return done.stdout if capture else ""


def main() -> None:
    start = time.monotonic()
    os.chdir(ROOT)
    shutil.rmtree(OUTPUT, ignore_errors=True)
    OUTPUT.mkdir()

    say("1. Try more than 10,000 allocators on the calls of a recorded MQTT broker, the best on perturbed copies")
    run(HEAPWRIGHT, "explore", TRACE, "-o", STUDY, "--json", capture=True)
    (pick,) = json.loads(run(HEAPWRIGHT, "pareto", STUDY, "--pick", "balanced", "--json", capture=True))
    heap = f"{STUDY}:{pick['id']}"

    say("2. Count instructions of the front and of the zoo on an emulated Cortex-M3")
    if find_spec("unicorn"):
        run(HEAPWRIGHT, "measure", STUDY, "--front", "--json", capture=True, quiet=not sys.stderr.isatty())
    else:
        print("Left out: pip install 'heapwright[target]' brings an emulator and a compiler.")

    say("3. The answer: the balanced pick and the arena to reserve, beside what most would take")
    run(HEAPWRIGHT, "fit", TRACE, "--heap", heap, "--heap", "tlsf", "--heap", "newlib-nano")
    worst = pick["copies"]["worst_ratio"]["footprint_bytes"]
    print(f"On copies with other sizes, order and load the pick needs at most {worst:.2f} x the best one's memory.")

    say("4. Why: what the broker asks of memory, and the front, with the allocators of the literature beside it")
    run(HEAPWRIGHT, "profile", TRACE)
    run(HEAPWRIGHT, "pareto", STUDY)

    say("5. Ship it: C for the firmware, compiled without warnings and tested here, for a target whose objects need 8")
    run(HEAPWRIGHT, "generate", heap, "--prefix", "app", "-o", FIRMWARE)
    compiler = os.environ.get("CC", "cc")
    source, test = FIRMWARE / "app_heap.c", FIRMWARE / "app_heap_test.c"
    strict = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-DAPP_HEAP_ALIGN_UNCHECKED"]
    run(compiler, *strict, "-Os", "-ffreestanding", "-c", source, "-o", FIRMWARE / "app_heap.o")
    run(compiler, *strict, "-O2", source, test, "-o", FIRMWARE / "app_heap_test")
    run(FIRMWARE / "app_heap_test")

    say("6. The report: front, recipes, size histogram, memory over time, heap maps")
    run(HEAPWRIGHT, "report", STUDY, "-o", REPORT)

    say(f"Done in {time.monotonic() - start:.0f} seconds.")
    print(f"  report     {ROOT / REPORT}")
    print(f"  firmware   {ROOT / FIRMWARE}/app_heap.c, app_heap.h, app_heap_test.c, app_heap_checks.h")
    print(f"  study      {ROOT / STUDY}")


if __name__ == "__main__":
    main()
