"""The command line: one module per command, imported when the command runs, without logic of its own."""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress

import click

from heapwright._cli.group import Group
from heapwright._cli.output import WORDS, note
from heapwright._support import gc_tuning
from heapwright._support.errors import HeapwrightError, did_you_mean
from heapwright._support.inputs import protecting_inputs
from heapwright._support.version import __version__

# Command name -> one line of help. The module is the name with "_" after a Python keyword (import_).
COMMANDS = {
    "record": "Record the heap calls of an unmodified program.",
    "import": "Turn a log of heap calls, or a packet capture, into a Parquet file.",
    "hooks": "Write tracing shims: C for a board, or a script for Linux, that records heap calls.",
    "live": "Show a running board's heap calls on the terminal, and leave a trace.",
    "diagnose": "Find a leak, fragmentation or a lack of memory in logs, counters or telemetry.",
    "network": "Make the heap for a capture's packets behind a queue: reserve, C, and a page.",
    "trace": "Look at a trace, cut it, or make perturbed copies of it.",
    "profile": "Summarise the sizes, lifetimes and live memory of a trace or packet table.",
    "workload": "Make the trace of a modelled network application.",
    "zoo": "List the named allocators, or print one.",
    "replay": "Run traces on heaps and print the metrics.",
    "fit": "Find the arena sizes that a trace needs.",
    "check": "Check a heap against rules on traces of today's build, for CI.",
    "stress": "Stress-test heaps: long loops at constant live memory.",
    "suggest": "Recommend a heap in seconds, from a portfolio of recipes.",
    "explore": "Explore a design space on traces and keep the results as a study.",
    "study": "Merge, extend, compare, query, export or reproduce studies.",
    "pareto": "Print the Pareto-optimal recipes of a study.",
    "generate": "Write a heap as C for firmware.",
    "platforms": "List the platforms of generated heaps, or print the page of one.",
    "prove": "Check all short call sequences of a generated heap (bounded model checking).",
    "attack": "Inject faults into a heap, and count which it detects, and when.",
    "measure": "Measure a heap on a target processor: instructions, accesses, code bytes.",
    "report": "Write one HTML page that shows a study or a trace, or Markdown for a pull request.",
    "demo": "Run all steps on a recorded trace: explore, measure, generate, report.",
    "reproduce": "Reproduce the source papers' tables and figures.",
}

RENAMED = {"endure": "stress"}
"""Commands of 0.2 and earlier, each with today's name; they warn, and go with the next release (docs/upgrading.md)."""

_ENDING = (signal.SIGTERM, signal.SIGHUP)


class _Commands(Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in RENAMED:
            note(f"heapwright {name} is now heapwright {RENAMED[name]}; the old name goes with the next release")
            name = RENAMED[name]
        if name not in COMMANDS:
            return None
        module = importlib.import_module("heapwright._cli." + ("import_" if name == "import" else name))
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in {*COMMANDS, *RENAMED} and not args[0].startswith("-"):
            near = did_you_mean(args[0].lower(), COMMANDS)
            raise click.UsageError(f"{args[0]!r} is no command; {near}", ctx)
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[WORDS] = ["heapwright", *args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        try:
            with protecting_inputs():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.Abort from None  # click itself would begin an empty line first
        except RuntimeError as error:
            if str(error) == "Query interrupted":  # Ctrl-C as DuckDB hands it on
                raise click.Abort from None
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="heapwright")
def heapwright() -> None:
    """Heapwright tailors heaps: trace x recipe -> metrics, then C for the firmware."""


def program() -> None:
    """Run `main` as the program of a process."""
    if sys.argv[1:2] != ["record"]:  # what is recorded has the environment that it would have
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's, of which nothing here makes use
    codes: list[object] = []
    atexit.register(_end, codes)  # the first of those registered is the last to be called
    try:
        main()
    except SystemExit as info:
        codes.append(info.code)
        raise


def main() -> None:
    """Entry point: every foreseeable failure is one line on stderr and exit code 1; wrong flags exit 2."""
    gc.set_threshold(gc_tuning.OBJECTS)  # what imports make stays, too: looking through it takes a tenth of the start
    try:
        code = _run_in_order()
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except HeapwrightError as error:
        _fail(str(error))
    except (click.Abort, KeyboardInterrupt):
        _fail("interrupted; what was finished is kept")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _fail(f"{where}{error.strerror or error}")
    else:
        sys.exit(code)


def _end(codes: Sequence[object]) -> None:
    """Let the interpreter end without looking through all that was made, which takes a quarter of a short command.

    Called when all else that is to be done at the end is done. Where DuckDB was loaded, which complains of what is left
    of it, the process ends here, with its exit code; but not after an error in the program, or in what is still to be
    written.
    """
    if not sys.modules.keys() & {"duckdb", "_duckdb"}:
        gc.freeze()
    elif codes and isinstance(codes[0], int):
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(codes[0])


def _run_in_order() -> int:
    """Run the command, and return its exit code; SIGTERM and SIGHUP end it as an exception does, so that no temporary
    file and no tool stays.
    """
    received: list[int] = []

    def leave(number: int, _: object) -> None:
        received.append(number)
        for item in handled:
            signal.signal(item, signal.SIG_IGN)
        if tools := sys.modules.get("heapwright._support.subprocesses"):  # else none was started
            tools.kill_tools()
        sys.exit(128 + number)

    in_main = threading.current_thread() is threading.main_thread()
    handled = [item for item in _ENDING if in_main and signal.getsignal(item) is signal.SIG_DFL]  # nohup ignores SIGHUP
    for item in handled:
        signal.signal(item, leave)
    try:
        ended = heapwright.main(standalone_mode=False)  # the code of click.exceptions.Exit, else what a command returns
    except BaseException:
        if received:  # DuckDB, for one, makes another exception of it
            sys.exit(128 + received[0])
        raise
    return ended if isinstance(ended, int) else 0


def _fail(message: str) -> None:
    note(" ".join(message.split()))
    sys.exit(1)
