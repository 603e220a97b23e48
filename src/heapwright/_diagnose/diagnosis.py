"""Diagnosis of a heap in trouble: what telemetry, counters, snapshots, dumps, logs and traces show, in one sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from heapwright._diagnose import series_rules, snapshot_rules, trace_rules
from heapwright._diagnose.call_lines import CallLog, call_logs, other_lines
from heapwright._diagnose.counters import take_counters
from heapwright._diagnose.esp_dump import EspDump
from heapwright._diagnose.model import INCONCLUSIVE, Confidence, Cure, Diagnosis, Finding, Kind, Picture
from heapwright._diagnose.plain_lines import plain_lines
from heapwright._diagnose.readings import Readings, readings_of, unnamed_column
from heapwright._diagnose.snapshots import Snapshot, snapshots_in
from heapwright._diagnose.trace_rules import Context
from heapwright._support.errors import HeapwrightError
from heapwright._support.kinds import kind_of
from heapwright._traces.logs import import_log, log_format
from heapwright._traces.logs.formats import Format
from heapwright._traces.logs.losses import Losses
from heapwright._traces.logs.pattern import propose
from heapwright._traces.logs.source import Source
from heapwright._traces.trace import Trace

if TYPE_CHECKING:
    from heapwright._heaps.heaps import Heap

__all__ = ["Confidence", "Cure", "Diagnosis", "Finding", "Kind", "Picture", "diagnose"]

MOST_BYTES = 256 << 20
"""Of a text, which is held in memory; a longer log is imported first."""

LONGEST = 512
"""Bytes of a line that are read."""

READ = (
    "a log of heap calls that `heapwright import` reads, or in words of its own; a trace; free memory and largest "
    "block "
    "over time (CSV, JSON lines, or any lines); counters such as mallinfo, lwIP's stats or heap_caps_print_heap_info; "
    "a list of blocks with addresses"
)


_NO_CALLS = {
    "packets": "a packet table, not heap calls; `heapwright workload` makes a trace of one",
    "study": "a study, which keeps no calls; give the traces that it was made of",
}
"""Kinds of files of this program that are nothing to diagnose, and why."""


class _Found(NamedTuple):
    """What a file is, in words, and what it shows."""

    form: str
    findings: list[Finding]
    notes: tuple[str, ...] = ()
    snapshots: tuple[Snapshot, ...] = ()


def diagnose(files: Sequence[Path | Trace], *, heaps: Sequence[Heap] = (), arena: int | None = None) -> Diagnosis:
    """Find out what each file is, and what it shows.

    Args:
        files: any of what `READ` names. Snapshots in several files are compared in their order.
        heaps: the allocator in use, on which traces are replayed, and others to try; by default the allocator that the
            log names, else `trials.USUAL`.
        arena: bytes of the heap in use.

    Raises HeapwrightError if there is no file, or one is nothing of that; OSError if it cannot be read.
    """
    if not files:
        raise HeapwrightError(f"no file; give {READ}")
    forms: dict[str, str] = {}
    findings: list[Finding] = []
    notes: list[str] = []
    snapshots: list[Snapshot] = []
    for item in files:
        name = item.name if isinstance(item, Trace) else str(item)
        found = _of_trace(item, heaps, arena) if isinstance(item, Trace) else _of_file(item, heaps, arena)
        forms[name] = found.form
        findings += found.findings
        notes += [f"{name}: {note}" for note in found.notes]
        snapshots += found.snapshots
    if snapshots:
        findings += snapshot_rules.judge(snapshots)
    return Diagnosis(forms, tuple(sorted(_joined(findings), key=lambda finding: finding.rank)), tuple(notes))


def _joined(findings: list[Finding]) -> list[Finding]:
    """Join memories of which none shows enough into one sentence."""
    if len(findings) < 2 or any(item.kind != "not enough data" for item in findings):
        return findings
    first = findings[0]
    confidence: Confidence = "sure" if all(item.confidence == "sure" for item in findings) else INCONCLUSIVE
    sentence = "; ".join(item.sentence for item in findings)
    whole = Finding("", first.kind, confidence, sentence, record_next=first.record_next, picture=first.picture)
    return [whole, *findings]


def _of_trace(trace: Trace, heaps: Sequence[Heap], arena: int | None) -> _Found:
    finding = trace_rules.judge_trace(trace, Context(tuple(heaps), arena))
    return _Found(f"a trace of {len(trace):,} calls", [finding], (*trace.repairs, *trace.caveats))


def _of_file(path: Path, heaps: Sequence[Heap], arena: int | None) -> _Found:
    kind = kind_of(path)
    if kind in _NO_CALLS:
        raise HeapwrightError(f"{path}: {_NO_CALLS[kind]}")
    if kind == "trace":
        return _of_trace(Trace.read(path), heaps, arena)
    lines = _lines(path)
    dump = EspDump.of(lines)
    losses = _losses(lines)
    if dump is not None and dump.is_no_trace:
        return _Found("a heap trace of ESP-IDF that is no trace", [dump.finding()], losses)
    context = Context(tuple(heaps), arena, losses)
    form = log_format(path)
    if logs := _logs_in(lines, form):
        return _of_calls(path.stem, lines, logs, context)
    patterns = [] if form is not None else propose(lines)
    if form is None and not any(text.startswith("free=") for text in patterns):
        return _of_text(path, lines, losses)
    return _of_import(path, lines, form, patterns, context)


def _of_import(path: Path, lines: list[str], form: Format | None, patterns: list[str], context: Context) -> _Found:
    """A log of a known format or with proposed patterns, or its readings if the importer finds no call."""
    try:
        found = _of_log(import_log(path, patterns=patterns), form.name if form else "", context)
    except HeapwrightError:
        text = readings_of(plain_lines(lines))
        if text or text.failures:  # lines with readings, some of which look like calls
            return _of_text(path, lines, context.losses)
        raise
    read = " and ".join(f"'{text}'" for text in patterns)
    return found._replace(notes=(*found.notes, f"read with the patterns {read}")) if patterns else found


def _logs_in(lines: list[str], form: Format | None) -> list[CallLog]:
    """The calls of each memory in a text; none of a format whose importer reads more of it than these patterns."""
    logs = call_logs(lines)
    if all(call.failed for log in logs for call in log.calls):
        return []  # lines about requests that failed, not a log
    if len(logs) == 1 and not logs[0].failed and form is not None and form.name != "esp-idf":
        return []
    return logs


def _of_calls(name: str, lines: list[str], logs: Sequence[CallLog], context: Context) -> _Found:
    """A log of heap calls, and the readings between its calls if the calls show too little."""
    findings = [trace_rules.judge_log(log, name, context) for log in logs]
    if not context.losses and all(item.kind == "not enough data" for item in findings):
        findings += [item for item in _readings(other_lines(lines)) if item.kind != "not enough data"]
    memories = f" of {len(logs)} memories" if len(logs) > 1 else ""
    calls = sum(len(log.calls) for log in logs)
    return _Found(f"a log of {calls:,} heap calls{memories}", findings, context.losses)


def _of_log(trace: Trace, form: str, context: Context) -> _Found:
    """A log that `heapwright import` reads, in a format of that name or with patterns."""
    finding = trace_rules.judge_trace(trace, context)
    # The caveats of an importer name what the log has lost.
    article = "an" if form[:1] in "aeiou" else "a"
    log = f"{article} {form} log" if form else "a log"
    return _Found(f"{log} of {len(trace):,} calls", [finding], (*trace.repairs, *trace.caveats))


def _of_text(path: Path, lines: list[str], losses: tuple[str, ...]) -> _Found:
    if any(line.strip() == "[[pool]]" for line in lines):
        raise HeapwrightError(f"{path}: a recipe; give it as the heap, together with a log or trace", parameter="heap")
    lines = plain_lines(lines)
    snapshots = snapshots_in(lines)
    if snapshots:
        blocks = sum(len(item.blocks) for item in snapshots)
        form = f"{len(snapshots)} snapshots" if len(snapshots) > 1 else "a snapshot"
        return _Found(f"{form} of {blocks:,} blocks", [], losses, tuple(snapshots))
    readings = Readings()
    others = readings_of(take_counters(lines, readings))
    for memory, series in others.memories.items():
        readings.memories.setdefault(memory, []).extend(series)
    readings.failures += others.failures
    readings.starts += others.starts
    readings.units |= others.units
    if not readings and not readings.failures:
        return _without_figures(path, lines, losses)
    count = max((len(series) for series in readings.memories.values()), default=0)
    memories = f" of {len(readings.memories)} memories" if len(readings.memories) > 1 else ""
    form = f"counters{memories}" if count == 1 else f"{count:,} readings{memories}"
    return _Found(form if count else "failed requests", series_rules.judge(readings), losses)


def _without_figures(path: Path, lines: list[str], losses: tuple[str, ...]) -> _Found:
    if not any(re.search(r"\w", line) for line in lines):
        raise HeapwrightError(f"{path}: no text; give {READ}")
    return _of_column(lines, losses) or _Found(f"{len(lines):,} lines", [_nothing()], losses)


def _of_column(lines: list[str], losses: tuple[str, ...]) -> _Found | None:
    """A text of times with one number each, which nothing names: of free memory if it falls, else of used memory."""
    readings, quantity = unnamed_column(lines)
    if quantity is None:
        return None
    findings = [replace(item, confidence=INCONCLUSIVE) for item in series_rules.judge(readings)]
    note = f"nothing names the column of numbers: they are taken as {quantity} memory in bytes"
    return _Found(f"{len(lines):,} lines with a number each", findings, (*losses, note))


def _nothing() -> Finding:
    """The finding of a text without a figure of a heap."""
    return Finding(
        "",
        "not enough data",
        INCONCLUSIVE,
        "no line has free memory, the largest free block, a request that failed or a heap call in words that are "
        "known here",
        record_next=f"free memory and the largest free block with these words and in bytes, once a minute; or give "
        f"{READ}",
    )


def _losses(lines: list[str]) -> tuple[str, ...]:
    """What the lines report as lost, in words; nothing if they report no loss."""
    losses = Losses()
    for line in lines:
        losses.look(line.encode())
    if not losses.lines:
        return ()
    return (f"{losses.counted} were lost" + ("" if losses.events else f" ('{losses.quoted[0]}')"),)


def _readings(lines: list[str]) -> list[Finding]:
    """What the readings between the calls of a log show."""
    readings = readings_of(lines)
    return series_rules.judge(readings) if readings else []


def _lines(path: Path) -> list[str]:
    source = Source(path)
    lines, held, rest = [], 0, b""
    for block in source.blocks(1 << 20):
        held += len(block)
        if held > MOST_BYTES:
            raise HeapwrightError(f"{path}: longer than {MOST_BYTES >> 20} MB; import it first, and diagnose the trace")
        *whole, rest = (rest + block).split(b"\n")
        lines += whole
    text = [*lines, rest] if rest else lines
    if any(b"\0" in line for line in text[:100]):
        return []
    return [_cut(line).decode("utf-8", "replace").rstrip("\r") for line in text]


def _cut(line: bytes) -> bytes:
    """A line as long as patterns can read in bounded time; of JSON it stays whole."""
    return line if line.rstrip().endswith(b"}") else line[:LONGEST]
