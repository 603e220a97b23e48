"""`heapwright demo`: all steps on a recorded trace that ships with the package, command by command."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click

from heapwright._cli.output import json_option, print_json, print_sentences, stdout_columns
from heapwright._cli.steps import print_command, print_heading
from heapwright._support.errors import HeapwrightError
from heapwright._support.subprocesses import find_compiler, kill_tools, run_tool

TRACE = "mosquitto_broker.parquet"
EXPLORE = ("explore",)
MEASURE = ("measure",)
"""The words of two steps, before their files."""
CFLAGS = ("-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-DAPP_HEAP_ALIGN_UNCHECKED")


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default="heapwright-demo")
@json_option
def command(folder: Path, as_json: bool) -> None:
    """Run all steps on a recorded MQTT broker: explore, measure, generate C, report.

    The trace ships with Heapwright, and nothing is downloaded. Results go to FOLDER, by default heapwright-demo. Every
    step is a command that you can run yourself. A step whose tool is missing is skipped with a message.
    """
    with contextlib.redirect_stdout(io.StringIO()) if as_json else contextlib.nullcontext():
        summary = _demonstrate(folder)
    if as_json:
        print_json(summary)


def _demonstrate(folder: Path) -> dict[str, Any]:
    """Run all steps, and return their summary for JSON."""
    start = time.monotonic()
    trace, study, firmware, page = (folder / name for name in (TRACE, "study.duckdb", "firmware", "report.html"))
    folder.mkdir(parents=True, exist_ok=True)
    study.unlink(missing_ok=True)
    shutil.copyfile(_example(), trace)

    print_heading("1. Replay a recorded MQTT broker on more than 10,000 allocators, and a long run on the best of them")
    _run(*EXPLORE, trace, "-o", study, "--json")
    (pick,) = json.loads(_run("pareto", study, "--pick", "balanced", "--json"))
    heap = f"{study}:{pick['id']}"

    print_heading("2. Count instructions of the Pareto front and of common allocators on an emulated Cortex-M3")
    left_out = _tried(lambda: _run(*MEASURE, study, "--json"))

    report = "report", study, "-o", page
    with _in_parallel(*report) as printed:
        files, missing = _answer(heap, trace, study, firmware)
        left_out += missing
        print_heading("6. The report: Pareto front, recipes, size histogram, memory over time, heap maps")
        print_command(("heapwright", *report))
        click.echo(printed(), nl=False)

    seconds = time.monotonic() - start
    print_heading(f"Done in {seconds:.0f} seconds.")
    for name, path in {"report": page, "firmware": firmware, "study": study, "trace": trace}.items():
        click.echo(f"  {name:10} {path}")
    return {
        "heap": heap,
        "metrics": pick["metrics"],
        "path": str(trace),
        "study": str(study),
        "page": str(page),
        "files": list(map(str, files)),
        "left_out": left_out,
        "seconds": round(seconds, 3),
    }


def _answer(heap: str, trace: Path, study: Path, firmware: Path) -> tuple[list[Path], list[str]]:
    """Print the recommendation and generate it; returns the C files, and the steps that were skipped."""
    print_heading("3. The recommendation: allocator and arena size, compared with alternatives, and the Pareto front")
    _run("pareto", study)

    print_heading(
        "4. Why: the broker's memory profile, and the arena sizes for the recording alone, without the long run"
    )
    _run("profile", trace)
    _run("fit", trace, "--heap", heap, "--heap", "tlsf", "--heap", "newlib-nano")

    print_heading("5. Ship it: C for firmware with 8-byte alignment, compiled without warnings and tested here")
    _run("generate", heap, "--prefix", "app", "-o", firmware)
    files = sorted(firmware.glob("app_heap*.[ch]"))
    return files, _tried(lambda: _compile(firmware))


def _tried(step: Callable[[], object]) -> list[str]:
    """Run a step that needs other programs; returns the message about a missing one."""
    try:
        step()
    except HeapwrightError as error:
        print_sentences([f"Skipped: {error}."])
        return [str(error)]
    return []


def _compile(folder: Path) -> None:
    """Compile the generated heap as firmware would, and its test for this machine; run the test."""
    compiler = find_compiler("this step")
    source, test, program = folder / "app_heap.c", folder / "app_heap_test.c", folder / "app_heap_test"
    _tool(compiler, *CFLAGS, "-Os", "-ffreestanding", "-c", source, "-o", folder / "app_heap.o")
    _tool(compiler, *CFLAGS, "-O2", source, test, "-o", program)
    _tool(program.resolve())


def _example() -> Path:
    """The trace: in the checkout, or installed with this package."""
    package = Path(__file__).resolve().parents[1]
    for directory in (package.parents[1] / "examples", package / "examples"):
        if (directory / TRACE).is_file():
            return directory / TRACE
    raise HeapwrightError(f"{package / 'examples' / TRACE}: the trace is missing; install heapwright again")


def _run(*words: str | Path) -> str:
    """Run a heapwright command; its output is printed, or with --json returned."""
    from heapwright._cli import heapwright

    _, *arguments = print_command(("heapwright", *words))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed) if "--json" in arguments else contextlib.nullcontext():
        heapwright.main(arguments, "heapwright", standalone_mode=False)
    return printed.getvalue()


_PROGRAM = "import sys; sys.path[:] = filter(None, sys.path); from heapwright._cli import program; program()"
"""The program of a process; its module path excludes the working directory."""


@contextlib.contextmanager
def _in_parallel(*words: str | Path) -> Iterator[Callable[[], str]]:
    """Run a heapwright command in parallel, in a process of its own; yields the function that waits for its output."""
    env = {**os.environ, "COLUMNS": str(stdout_columns())}
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run_tool, [sys.executable, "-c", _PROGRAM, *map(str, words)], text=True, env=env)

        def printed() -> str:
            done = running.result()
            if done.returncode:
                raise HeapwrightError(done.stderr.strip().removeprefix("heapwright: "))
            return str(done.stdout)

        try:
            yield printed
        except BaseException:
            running.cancel()
            kill_tools()
            raise


def _tool(*words: str | Path) -> None:
    """Run another program; raises click.ClickException if it fails."""
    done = run_tool(print_command(words), text=True)
    click.echo(done.stdout + done.stderr, nl=False)
    if done.returncode:
        raise click.ClickException(f"{words[0]}: exit code {done.returncode}")
