"""Frama-C's Eva on generated C: what it cannot exclude is the list in docs/proofs.md, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from platform_builds import run
from run_length import brief
from tool_requirements import tool

import heapwright as hw

DRIVER = Path(__file__).resolve().parents[1] / "c" / "eva.c"
DOCS = Path(__file__).resolve().parents[2] / "docs" / "proofs.md"
ALARM = re.compile(r"^\[eva:alarm\] (\S+):(\d+): Warning: ((?:.*\n)(?: .*\n)*)", re.MULTILINE)
FUNCTION = re.compile(r"^[A-Za-z].*?\b(?:app_)?(\w+)\(")
KINDS = {
    "out of bounds read": "read",
    "out of bounds write": "write",
    "pointer comparison": "comparison",
    "invalid RHS operand for shift": "shift",
    "x_nonzero": "zero bits",
}

EVERYWHERE = {
    ("load4", "read"),
    ("store4", "write"),
    ("copy_payload", "read"),
    ("copy_payload", "write"),
    ("copy16", "read"),
    ("copy16", "write"),
    ("clear_payload", "write"),
    ("clear16", "write"),
}
ALARMS = {
    "first-fit-fast-free": EVERYWHERE,
    "drr-proposed": EVERYWHERE,
    "tlsf": EVERYWHERE | {("bin_of", "shift"), ("freelist_add", "shift")},
    "binary-buddy": EVERYWHERE | {("order_size", "shift"), ("lowest_bit", "zero bits")},
}


def function_at(source: str, line: int) -> str:
    """The name of the function that a line belongs to, without the prefix."""
    results = [FUNCTION.match(text) for text in source.splitlines()[:line] if not text.endswith(";")]
    return next(match[1] for match in reversed(results) if match)


SLOWEST = "first-fit-fast-free"
"""It has the alarms of drr-proposed, and takes as long as the others together."""


@pytest.mark.parametrize("heap", [heap for heap in ALARMS if heap != brief(SLOWEST, "")])
def test_eva_raises_no_alarm_but_those_that_are_explained(heap: str, tmp_path: Path) -> None:
    hw.generate(heap, tmp_path)
    command = [tool("frama-c"), "-c11", "-machdep", "gcc_x86_32", "-eva", "-eva-precision", "2"]
    command += [f"-cpp-extra-args=-I{tmp_path} -DAPP_HEAP_ALIGN_UNCHECKED", str(DRIVER), str(tmp_path / "app_heap.c")]
    output = run(command, tmp_path)
    sources = {"app_heap.c": (tmp_path / "app_heap.c").read_text(), DRIVER.name: DRIVER.read_text()}
    alarms = set()
    for file, line, text in ALARM.findall(output):
        kind = next(kind for words, kind in KINDS.items() if words in text)
        alarms.add((function_at(sources[Path(file).name], int(line)), kind))
    assert alarms == ALARMS[heap]
    (count,) = re.findall(r"(\d+) alarms? generated", output)
    statements = re.search(r"(\d+) statements reached \(out of (\d+)\)", output)
    assert statements and int(statements[1]) / int(statements[2]) >= 0.95
    assert re.search(rf"^\| `{heap}` \| {count} \|", DOCS.read_text(), re.MULTILINE), f"{heap}: {count} alarms"
