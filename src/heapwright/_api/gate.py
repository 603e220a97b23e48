"""The gate of a build: does the heap still fit the program, and what changed since the version that is known?"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from heapwright._api.arguments import AnyHeap, AnyTrace, PathLike, heap_of, listed, one_line_errors, trace_of
from heapwright._api.field import check_field
from heapwright._api.heaps import Fit, fit, replay
from heapwright._studies.gate import ARENAS, LEAKS, Checked, Rule, judged
from heapwright._support.errors import HeapwrightError, ParameterError
from heapwright._support.writing import write_text
from heapwright._traces.profile import profile
from heapwright._traces.trace import Trace


@one_line_errors
def check(
    traces: AnyTrace | Sequence[AnyTrace] = (),
    heaps: AnyHeap | Sequence[AnyHeap] = (),
    fail_if: str | Sequence[str] = (),
    *,
    field: PathLike | Sequence[PathLike] = (),
    budget: int | None = None,
    baseline: AnyTrace | Sequence[AnyTrace] = (),
    held_out: AnyTrace | Sequence[AnyTrace] = (),
    growth: float = 1.0,
    seed: int = 0,
    repair: bool = False,
    junit: PathLike | None = None,
    sarif: PathLike | None = None,
) -> list[Checked]:
    """Put heaps to rules on traces of today's build.

    Args:
        traces: one or several, with different names.
        heaps: one or several, that have arenas.
        fail_if: rules, as "reserve_bytes > 128K" or, against a baseline, "accesses > +5%"; a key is a metric, one of
            `heapwright._studies.gate.ARENAS`, or "leaks", the number of sizes and call sites that leak.
        field: files with blocks that devices sent (`PREFIX_field` in generated heaps), raw or as hexadecimal digits in
            a log. The blocks are checked instead of the traces, against the recording that the heap was tailored to:
            the traces, if there are any, else what the block or the heap's study knows. A heap that is too small fails.
        budget: bytes; the same as "reserve_bytes > BUDGET".
        baseline: traces of a version that is known, or files that `write_checked` wrote of it; one for one trace, else
            by their names.
        held_out, growth, seed, repair: as for `fit`.
        junit, sarif: files to write, for build servers (`heapwright._report.gate_files`).

    Returns one `Checked` for each trace and heap, trace by trace, or for each block. Raises HeapwrightError for input
    that cannot be used.
    """
    rules = [Rule.parse(text) for text in ([fail_if] if isinstance(fail_if, str) else fail_if)]
    rules += [Rule("reserve_bytes", ">", budget)] if budget is not None else []
    apart = [trace_of(item, repair) for item in listed(held_out)]
    given: dict[str, Any] = {"held_out": apart, "growth": growth, "seed": seed, "repair": repair}
    read = [trace_of(item, repair) for item in listed(traces)]
    requested = listed(heaps)
    known = _baselines(listed(baseline), requested, given)
    if blocks := listed(field):
        return _written(check_field(blocks, requested, read, rules), junit, sarif)
    if not read:
        raise ParameterError("no trace and no block of a device to check", parameter="traces")
    checked = []
    for trace in read:
        holders = profile(trace)["at_peak"]
        for heap in requested:
            before = _of(known, trace.name, _name(heap), alone=len(read) == 1)
            result = fit(trace, heap, **given)
            values = _values(trace, heap, result)
            checked.append(judged(trace.name, _name(heap), values, holders, rules, before, result.leaks))
    return _written(checked, junit, sarif)


def _written(checked: list[Checked], junit: PathLike | None, sarif: PathLike | None) -> list[Checked]:
    """Write the files for build servers; returns what was checked."""
    if junit is not None or sarif is not None:
        from heapwright._report import gate_files

        for path, written in ((junit, gate_files.junit), (sarif, gate_files.sarif)):
            if path is not None:
                write_text(Path(path), written(checked))
    return checked


def write_checked(checked: Sequence[Checked], path: PathLike) -> None:
    """Write what was found as JSON, to be a later `baseline`: `heapwright check --json` prints the same."""
    write_text(Path(path), json.dumps(described(checked), indent=1) + "\n")


def described(checked: Sequence[Checked]) -> list[dict[str, Any]]:
    """Plain values: `Checked` with `passed`, and each verdict with its rule as text."""
    rows = []
    for item in checked:
        row = {"passed": item.passed, **dataclasses.asdict(item)}
        row["verdicts"] = [
            {**dataclasses.asdict(verdict), "rule": str(verdict.rule), "told": str(verdict)}
            for verdict in item.verdicts
        ]
        rows.append(row)
    return rows


def _values(trace: Trace, heap: AnyHeap, result: Fit) -> dict[str, float | int | None]:
    metrics = replay(trace, heap).metrics
    arenas = {key: getattr(result, key) for key in ARENAS}
    return {**metrics, **_in_the_long_run(trace, heap), **arenas, LEAKS: len(result.leaks)}


def _in_the_long_run(trace: Trace, heap: AnyHeap) -> Mapping[str, float | int | None]:
    """The metrics of a future as an exploration makes it by default; none of a heap that has no recipe."""
    from heapwright._heaps.heaps import RecipeHeap
    from heapwright._replay.long_run import long_run

    known = heap_of(heap, None)
    return long_run(_future(trace), known.recipe).metrics() if isinstance(known, RecipeHeap) else {}


@lru_cache(maxsize=1)  # several heaps follow one another
def _future(trace: Trace) -> Trace:
    from heapwright._replay.long_run import CALLS
    from heapwright._traffic.workloads.made import futures_of

    return futures_of([trace], CALLS, 0)[0]


def _name(heap: AnyHeap) -> str:
    return str(getattr(heap, "name", None) or getattr(heap, "id", None) or heap)


def _baselines(given: Sequence[AnyTrace], heaps: Sequence[AnyHeap], how: Mapping[str, Any]) -> list[Checked]:
    results: list[Checked] = []
    for item in given:
        if not isinstance(item, Trace) and Path(item).suffix == ".json":
            results += _read(Path(item))
            continue
        trace = trace_of(item, bool(how["repair"]))
        holders = profile(trace)["at_peak"]
        results += [
            judged(trace.name, _name(heap), _values(trace, heap, fit(trace, heap, **how)), holders, ())
            for heap in heaps
        ]
    return results


def _read(path: Path) -> list[Checked]:
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        return [
            Checked(str(row["trace"]), str(row["heap"]), dict(row["values"]), holders=list(row["holders"]))
            for row in rows
        ]
    except (ValueError, TypeError, KeyError) as error:
        raise HeapwrightError(f"{path}: no baseline ({error}); what was checked before, as JSON, is one") from None


def _of(known: Sequence[Checked], trace: str, heap: str, alone: bool) -> Checked | None:
    """The baseline of a trace and a heap. If both have only one trace, names do not matter."""
    if not known:
        return None
    names = {item.trace for item in known}
    results = [item for item in known if item.trace == trace or (alone and len(names) == 1)]
    results = [item for item in results if item.heap == heap] or results
    if len(results) != 1:
        text = ", ".join(f"{item.trace} on {item.heap}" for item in known)
        raise ParameterError(f"none or several are for {trace} on {heap}; there are: {text}", parameter="baseline")
    return results[0]
