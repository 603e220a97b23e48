"""A proof without bounds: Frama-C's WP on generated C with contracts, for any number of calls of any size."""

from __future__ import annotations

import os
import re
import shutil
import time
from pathlib import Path

from heapwright._assure.proof.contracts import functions_with_contracts, has_contracts, with_contracts
from heapwright._assure.proof.harness import Harness
from heapwright._generate.emit import align_unchecked, generated_files
from heapwright._recipes.recipe import Recipe
from heapwright._support.errors import HeapwrightError
from heapwright._support.subprocesses import run_tool
from heapwright._support.temporary import temporary_folder

TOOLS = ("frama-c", "z3", "cvc5")

PROVERS = {
    "z3nobv": ("Z3", "nobv", "z3_471_nobv", "z3 -smt2 -T:%t smt.auto_config=false smt.mbqi=false %f"),
    "cvc5": ("CVC5", "", "cvc4_17", "cvc5 --force-logic=ALL --full-saturate-quant --tlimit=%t000 --lang=smt2 %f"),
    "z3": ("Z3", "", "z3_471", "z3 -smt2 -T:%t smt.random_seed=42 sat.random_seed=42 %f"),
    "cvc5plain": ("CVC5", "plain", "cvc4_17", "cvc5 --force-logic=ALL --tlimit=%t000 --lang=smt2 %f"),
}
"""By WP's name for it: Why3's name, the kind, the driver and the command; each proves goals that others miss."""

SECONDS = 60
"""What a prover may take for a goal; most take a tenth of one."""

_GOAL = re.compile(
    r"^\[wp\] (?:\[[^\]]*\] Goal (\S+) : (?:Failed|Timeout|Unknown)|\[(?:Failed|Timeout|Unknown)\] Goal (\S+))"
)


def versions() -> str:
    """Name and version of what proves. Raises HeapwrightError with how to get what is missing."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        raise HeapwrightError(
            f"{missing[0]}: not installed; on Debian: apt-get install frama-c-base why3 z3 cvc5 (docs/proofs.md)"
        )
    frama = str(run_tool(["frama-c", "-version"], text=True).stdout).split()[0]
    z3 = re.search(r"[\d.]+", str(run_tool(["z3", "--version"], text=True).stdout.partition("version")[2]))
    cvc5 = re.search(r"version ([\d.]+)", str(run_tool(["cvc5", "--version"], text=True).stdout))
    return f"Frama-C {frama}, Z3 {z3[0] if z3 else '?'}, cvc5 {cvc5[1] if cvc5 else '?'}"


def check_unbounded(recipe: Recipe, label: str) -> Harness:
    """Prove the contracts of init, malloc and free, and of all that they call.

    Raises HeapwrightError for a recipe without contracts, where a tool is missing, and where it ends badly.
    """
    if not has_contracts(recipe):
        raise HeapwrightError(
            f"{label}: has no contracts; one fixed pool has: one class with a count, a list of free blocks, no header,"
            " checks or threads"
        )
    began = time.monotonic()
    with temporary_folder("prove") as folder:
        files = generated_files(recipe)
        goals, failed = run_wp(files | {"app_heap.c": with_contracts(files["app_heap.c"])}, folder)
    bounds = "any arena, any number of calls of init, malloc and free, any sizes; by contract"
    return Harness("unbounded", bounds, goals, failed, {}, None, round(time.monotonic() - began, 1))


def run_wp(files: dict[str, str], folder: Path) -> tuple[int, dict[str, list[str]]]:
    """The number of goals, and those that no prover proved."""
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "why3.conf").write_text(_configuration(), encoding="utf-8")
    command = ["frama-c", "-c11", "-machdep", "gcc_x86_64", f"-cpp-extra-args=-D{align_unchecked('app')}"]
    command += ["-wp", "-wp-rte", "-wp-model", "Typed+cast", "-wp-prover", ",".join(PROVERS)]
    command += ["-wp-timeout", str(SECONDS), "-wp-par", "2"]
    command += ["-wp-fct", ",".join(functions_with_contracts(files["app_heap.c"])), "app_heap.c"]
    environment = os.environ | {"WHY3CONFIG": str(folder / "why3.conf"), "PWD": str(folder)}
    done = run_tool(command, folder, cwd=folder, text=True, env=environment)
    proved = re.search(r"^\[wp\] Proved goals: +(\d+) / (\d+)", done.stdout, re.MULTILINE)
    if proved is None:
        raise HeapwrightError(f"frama-c: ended with {done.returncode}: {' '.join(done.stdout.split())[-300:]}")
    lines = done.stdout.splitlines()
    goals = (match[1] or match[2] for line in lines if (match := _GOAL.match(line)))
    failed: dict[str, list[str]] = {goal.removeprefix("typed_cast_"): [] for goal in goals}
    if not failed and proved[1] != proved[2]:
        failed["goals that were not proved"] = []
    return int(proved[2]), failed


def _configuration() -> str:
    """Why3's settings: Debian's does not know its own cvc5, and what a user has set is no part of a proof."""
    sections = ["[main]\nmagic = 14\nmemlimit = 2000\nrunning_provers_max = 2\ntimelimit = 10\n"]
    for shortcut, (name, kind, driver, command) in PROVERS.items():
        fields = {"name": name, "alternative": kind, "version": "1.0", "command": command, "command_steps": command}
        fields |= {"driver": driver, "editor": "", "shortcut": shortcut}
        lines = [f'{key} = "{value}"' for key, value in fields.items() if value or key == "editor"]
        sections.append("\n".join(["[prover]", *lines, "in_place = false", "interactive = false", ""]))
    return "\n".join(sections)
