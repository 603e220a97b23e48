"""`heapwright demo`: the whole way on a recorded trace that ships with the package, command by command."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click

from heapwright._cli.output import json_option, print_json, print_sentences, stdout_columns
from heapwright._support.errors import HeapwrightError
from heapwright._support.subprocesses import find_compiler, kill_tools, run_tool

TRACE = "mosquitto_broker.parquet"
EXPLORE = ("explore",)
MEASURE = ("measure", "--front")
"""The words of two steps, before their files."""
CFLAGS = ("-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-DAPP_HEAP_ALIGN_UNCHECKED")


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default="heapwright-demo")
@json_option
def command(folder: Path, as_json: bool) -> None:
    """Go the whole way on a recorded MQTT broker: explore, measure, generate C, report.

    The trace ships with Heapwright, and nothing is loaded from elsewhere. Results go to FOLDER, heapwright-demo unless
    given. Every step is a command that works as well by hand. What needs a tool that is missing is left out, and why is
    said.
    """
    with contextlib.redirect_stdout(io.StringIO()) if as_json else contextlib.nullcontext():
        made = _demonstrate(folder)
    if as_json:
        print_json(made)


def _demonstrate(folder: Path) -> dict[str, Any]:
    """Run all steps, and return what JSON tells of them."""
    start = time.monotonic()
    trace, study, firmware, page = (folder / name for name in (TRACE, "study.duckdb", "firmware", "report.html"))
    folder.mkdir(parents=True, exist_ok=True)
    study.unlink(missing_ok=True)
    shutil.copyfile(_shipped(), trace)

    _say("1. Try more than 10,000 allocators on the calls of a recorded MQTT broker, the best on a future of it")
    _run(*EXPLORE, trace, "-o", study, "--json")
    (pick,) = json.loads(_run("pareto", study, "--pick", "balanced", "--json"))
    heap = f"{study}:{pick['id']}"

    _say("2. Count instructions of the front and of the zoo on an emulated Cortex-M3")
    left_out = _tried(lambda: _run(*MEASURE, study, "--json"))

    report = "report", study, "-o", page
    with _beside(*report) as printed:  # it takes longest of what is left
        files, missing = _answer(heap, trace, study, firmware)
        left_out += missing
        _say("6. The report: front, recipes, size histogram, memory over time, heap maps")
        _show(("heapwright", *report))
        click.echo(printed(), nl=False)

    seconds = time.monotonic() - start
    _say(f"Done in {seconds:.0f} seconds.")
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
    """The steps that print what to ship, and make it: the C files, and what was left out."""
    _say("3. The answer: what to ship and to reserve, compared with alternatives, and the Pareto front")
    _run("pareto", study)

    _say("4. Why: what the broker asks of memory, and the arenas that serve the recording alone, without the long run")
    _run("profile", trace)
    _run("fit", trace, "--heap", heap, "--heap", "tlsf", "--heap", "newlib-nano")

    _say("5. Ship it: C for the firmware, compiled without warnings and tested here, for a target whose objects need 8")
    _run("generate", heap, "--prefix", "app", "-o", firmware)
    files = sorted(firmware.glob("app_heap*.[ch]"))
    return files, _tried(lambda: _compile(firmware))


def _tried(step: Callable[[], object]) -> list[str]:
    """Take a step that needs other programs; where one is missing say so, and return what was said."""
    try:
        step()
    except HeapwrightError as error:
        print_sentences([f"Left out: {error}."])
        return [str(error)]
    return []


def _compile(folder: Path) -> None:
    """Compile the generated heap as firmware would, and its test for this machine; run the test."""
    compiler = find_compiler("this step")
    source, test, program = folder / "app_heap.c", folder / "app_heap_test.c", folder / "app_heap_test"
    _tool(compiler, *CFLAGS, "-Os", "-ffreestanding", "-c", source, "-o", folder / "app_heap.o")
    _tool(compiler, *CFLAGS, "-O2", source, test, "-o", program)
    _tool(program.resolve())


def _shipped() -> Path:
    """The trace: in the checkout, or installed beside this package."""
    package = Path(__file__).resolve().parents[1]
    for directory in (package.parents[1] / "examples", package / "examples"):
        if (directory / TRACE).is_file():
            return directory / TRACE
    raise HeapwrightError(f"{package / 'examples' / TRACE}: the trace is missing; install heapwright again")


def _say(text: str) -> None:
    """A heading."""
    click.echo()
    click.secho(textwrap.fill(text, stdout_columns()), bold=True)


def _show(words: Sequence[str | Path]) -> list[str]:
    """Print a command as a shell takes it, and return its words."""
    info = [str(word) for word in words]
    width = stdout_columns() - 6
    lines = textwrap.wrap(shlex.join(info), width, break_long_words=False, break_on_hyphens=False)
    click.echo("$ " + " \\\n    ".join(lines))
    return info


def _run(*words: str | Path) -> str:
    """Run a command of ours; what it prints goes to the screen, or with --json is returned."""
    from heapwright._cli import heapwright

    _, *info = _show(("heapwright", *words))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed) if "--json" in info else contextlib.nullcontext():
        heapwright.main(info, "heapwright", standalone_mode=False)
    return printed.getvalue()


_PROGRAM = "import sys; sys.path[:] = filter(None, sys.path); from heapwright._cli import program; program()"
"""Nothing in the working directory stands in for a module."""


@contextlib.contextmanager
def _beside(*words: str | Path) -> Iterator[Callable[[], str]]:
    """Meanwhile run a command of ours in a process of its own; gives what waits for it and returns what it prints."""
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
    """Run another program, which has to succeed."""
    done = run_tool(_show(words), text=True)
    click.echo(done.stdout + done.stderr, nl=False)
    if done.returncode:
        raise click.ClickException(f"{words[0]}: exit code {done.returncode}")
