"""Metrics of a replay: every metric's key, unit, meaning, better direction, and how several traces combine.

The keys are the columns of a study and the JSON keys of every command. ``docs/metrics.md`` is the reference for people.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from heapwright._replay.objectives import CALLS, is_expression, parsed, text_of, values_of
from heapwright._support.errors import ParameterError, did_you_mean

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Value = int | float | None
"""A metric's value; None if it was not requested or is not known."""

Objective = str | Callable[[Mapping[str, Any]], Any]
Objectives = Objective | Sequence[Objective]
"""Keys of metrics, expressions of them, or functions that compute one."""

Direction = Literal["min", "max"]
Rule = Literal["largest", "smallest", "sum", "of-largest-footprint"]


@dataclass(frozen=True)
class Metric:
    """One metric: its key, unit, one-line meaning, the better direction, and how several traces combine.

    ``rule`` is the ``largest`` or ``smallest`` of the traces' values, their ``sum``, or the value of the trace
    ``of-largest-footprint``.
    """

    key: str
    unit: str
    meaning: str
    direction: Direction = "min"
    rule: Rule = "largest"
    integer: bool = True

    def plain(self, number: float) -> Value:
        """One value of a float64 column as a plain number: None for NaN, an int where the metric counts."""
        if number != number:
            return None
        return int(number) if self.integer else float(number)


class _Metrics(dict[str, Metric]):
    """By key; what an expression of them measures, by its text."""

    def __missing__(self, key: str) -> Metric:
        if not is_expression(key):
            raise KeyError(key)
        text = ast.unparse(parsed(key, tuple(self)))
        return Metric(text, "", "worked out of other metrics; less is better", integer=False)


METRICS: Mapping[str, Metric] = _Metrics(
    (metric.key, metric)
    for metric in (
        Metric("requested_peak_bytes", "B", "largest sum of live requested bytes"),
        Metric("allocated_peak_bytes", "B", "largest memory used for blocks, headers not counted"),
        Metric("fragmentation", "ratio", "allocated_peak / requested_peak - 1", integer=False),
        Metric("fragmentation_with_headers", "ratio", "the same with headers", integer=False),
        Metric("footprint_bytes", "B", "the arena that was needed, control data and regions included"),
        Metric("internal_bytes", "B", "rounding and unsplit rests inside blocks", rule="of-largest-footprint"),
        Metric("external_bytes", "B", "free blocks, and what no block ever covered", rule="of-largest-footprint"),
        Metric("header_bytes", "B", "headers and boundary tags", rule="of-largest-footprint"),
        Metric("accesses", "count", "metadata loads and stores over the whole trace", rule="sum"),
        Metric("reads", "count", "metadata loads over the whole trace", rule="sum"),
        Metric("writes", "count", "metadata stores over the whole trace", rule="sum"),
        Metric("accesses_malloc_max", "count", "accesses of the worst single malloc or calloc"),
        Metric("accesses_malloc_p999", "count", "99.9th percentile of the accesses of those calls"),
        Metric("accesses_realloc_max", "count", "accesses of the worst single realloc, its copy left out"),
        Metric("accesses_free_max", "count", "accesses of the worst single free"),
        Metric("accesses_free_p999", "count", "99.9th percentile of the accesses of frees"),
        Metric("energy_nJ", "nJ", "reads and writes in an SRAM of the footprint's size", "min", "sum", False),
        Metric("moved_bytes", "B", "bytes copied by compaction and by realloc", rule="sum"),
        Metric("failed", "count", "requests refused", rule="sum"),
        Metric("admitted_fraction", "ratio", "bytes admitted / bytes requested", "max", "smallest", False),
        Metric("utilisation", "ratio", "time-weighted requested bytes / all arena bytes", "max", "smallest", False),
        Metric("pool_utilisation", "ratio", "the same / bytes usable for payload", "max", "smallest", False),
        Metric("smallest_arena_bytes", "B", "smallest arena that serves the whole trace; on request"),
        Metric("lower_bound_bytes", "B", "largest sum of live requested bytes rounded to the alignment"),
        Metric("reach_bytes", "B", "largest arena that the heap can use at all", "max", "smallest"),
        Metric("long_run_bytes", "B", "arena that serves a future of the recording; none where it has no bound"),
        Metric("long_run_accesses", "count", "metadata accesses a call over the future, mean", integer=False),
        Metric("long_run_growth", "ratio", "footprint over the last nine tenths of the future", integer=False),
        Metric("long_run_calls", "count", "calls of the future", "max", "smallest"),
        Metric("long_run_malloc_max", "count", "accesses of the worst-case malloc or calloc of the future"),
        Metric("long_run_free_max", "count", "accesses of the worst-case free of the future"),
        Metric("growth_ratio", "ratio", "growth at constant live bytes, worst loop of the stress test", integer=False),
        Metric("lasts", "count", "1: the stress test was passed; 0: it was not", "max", "smallest"),
        Metric("endured_calls", "count", "calls of each loop of the stress test", "max", "smallest"),
        Metric("worst_steps", "count", "most accesses of any malloc or free, by formula"),
        Metric("ns_per_event", "ns", "host time of a call; on request", integer=False),
        Metric("instructions_malloc_mean", "count", "mean of a malloc on the target CPU; on request", integer=False),
        Metric("instructions_malloc_max", "count", "worst-case malloc on the target CPU; on request"),
        Metric("instructions_calloc_max", "count", "worst-case calloc on the target CPU, clearing included"),
        Metric("instructions_realloc_max", "count", "worst-case realloc on the target CPU, copy included; on request"),
        Metric("instructions_free_mean", "count", "mean of a free on the target CPU; on request", integer=False),
        Metric("instructions_free_max", "count", "worst-case free on the target CPU; on request"),
        Metric("instructions_pair_mean", "count", "a malloc and a free: the means added; on request", integer=False),
        Metric("code_bytes", "B", "code and constants of malloc, free and realloc at -Os; on request"),
    )
)
"""Every metric by its key, in the order of reports and of a study's columns."""

TARGET_METRICS = tuple(key for key in METRICS if key.startswith("instructions_") or key == "code_bytes")
"""Those measured on the target CPU, by `heapwright._measure.boards`."""


WORST_CALLS = {
    "malloc": "accesses_malloc_max",
    "realloc": "accesses_realloc_max",
    "free": "accesses_free_max",
}
"""The metrics of the worst-case call by its kind; a calloc counts as the malloc that it starts with."""

TIME = "ns_per_event"
"""What a call takes on this machine."""

PER_CALL = (TIME, "instructions_malloc_mean", "instructions_free_mean", "instructions_pair_mean")
"""Means of a call. Over all calls of the loads of one device they are weighted by each load's calls."""

DEFAULT_OBJECTIVES = ("long_run_bytes", "long_run_accesses")
"""Default objectives."""

ON_RECORDING = {"long_run_bytes": "footprint_bytes", "long_run_accesses": "accesses"}
"""The metric of the recording that replaces a metric of the future, before a recipe was replayed on a future and in
studies without futures."""

SHIPPING_METRICS = ("growth_ratio", "lasts", "endured_calls")
"""Metrics of the stress test (`heapwright._explore.stress_test`), measured for candidates alone."""

LONG_RUN_METRICS = (
    "long_run_bytes",
    "long_run_accesses",
    "long_run_growth",
    "long_run_calls",
    "long_run_malloc_max",
    "long_run_free_max",
)
"""Metrics of a future (`heapwright._replay.long_run`), measured for candidates alone."""


def metric(key: str) -> Metric:
    """The metric of this key or expression. Raises `ParameterError` with the nearest key if there is none."""
    if key in METRICS or is_expression(key):
        return METRICS[key]
    raise ParameterError(f"{key!r} is no metric; {did_you_mean(key, METRICS, 'known')}", parameter="objectives")


def named_in(key: str) -> frozenset[str]:
    """The metrics that an objective names, `key` alone if it is a metric."""
    if not is_expression(key):
        return frozenset({key})
    return (
        frozenset(item.id for item in ast.walk(parsed(key, tuple(METRICS))) if isinstance(item, ast.Name))
        & METRICS.keys()
    )


_WORDS = {"long_run_accesses": "accesses a call", "long_run_bytes": "long-run need"}


def words(key: str) -> str:
    """A key for people: without its unit, `instructions_pair_mean` as "instructions of a malloc and a free"."""
    if key in _WORDS:
        return _WORDS[key]
    what, *of = key.split("_")
    if what in ("accesses", "instructions") and len(of) == 2:
        call, which = of
        worst = "the worst-case " if which == "max" else "a "
        many = ", 99.9 % of them" if which == "p999" else ""
        return f"{what} of {'a malloc and a free' if call == 'pair' else worst + call}{many}"
    return key.removesuffix("_bytes").removesuffix("_nJ").replace("_", " ")


def parse_objectives(objectives: Objectives) -> tuple[str, ...]:
    """Keys from ``"a,b"`` or a sequence, checked: of metrics, or expressions of them (docs/metrics.md).

    A function of a dictionary of metrics becomes the expression that it works out. Raises `ParameterError` where a key
    is unknown or repeated, or where there is none.
    """
    if callable(objectives):
        objectives = [objectives]
    given = _split(objectives) if isinstance(objectives, str) else objectives
    parts = [text_of(part, tuple(METRICS)) if callable(part) else part for part in given]
    keys = tuple(metric(part.strip()).key for part in parts if part.strip())
    if not keys:
        raise ParameterError(
            "none given; name at least one metric, as in footprint_bytes,accesses", parameter="objectives"
        )
    if len(set(keys)) < len(keys):
        raise ParameterError(f"{','.join(keys)} repeats a metric; name each once", parameter="objectives")
    return keys


def _split(text: str) -> list[str]:
    """At the commas outside of parentheses."""
    depth, parts = 0, [""]
    for item in text:
        depth += (item == "(") - (item == ")")
        if item == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += item
    return parts


class Columns(dict[str, "NDArray[np.float64]"]):
    """Metrics as columns; that of an expression is worked out where it is first asked for.

    Attributes:
        calls: of the traces, in a shape that fits; None where they are not known.
    """

    calls: NDArray[np.float64] | float | None = None

    def __missing__(self, key: str) -> NDArray[np.float64]:
        if not is_expression(key):
            raise KeyError(key)
        import numpy as np

        calls = np.nan if self.calls is None else self.calls
        self[key] = values_of(parsed(key, tuple(METRICS)), {**self, CALLS: np.asarray(calls, np.float64)})
        return self[key]


def combine(measured: Sequence[Mapping[str, Value]], calls: Sequence[int] | None = None) -> dict[str, Value]:
    """Metrics over several traces from the metrics of each, by every metric's ``rule``.

    Peaks and maxima take the largest, counts add up. Ratios take the worst trace's: a mean would let a good trace hide
    a bad one. The split of the footprint comes from the trace with the largest footprint, so that it still adds up. A
    percentile takes the largest, an upper bound of the percentile over all calls. Energies add up trace by
    trace. A metric that is None for one trace is None for all together. ``calls``: as for `combine_columns`.
    """
    import numpy as np

    if not measured:
        raise ValueError("combine needs the metrics of at least one trace")
    columns = {key: np.array([[as_float(item.get(key)) for item in measured]]) for key in METRICS}
    return {key: METRICS[key].plain(float(column[0])) for key, column in combine_columns(columns, calls).items()}


def combine_columns(
    columns: Mapping[str, NDArray[np.float64]], calls: Sequence[int] | None = None
) -> dict[str, NDArray[np.float64]]:
    """`combine` for many recipes: columns float64[recipes, traces], NaN for None -> columns float64[recipes].

    ``calls``: numbers of calls of each trace, if the traces are loads of one device; then a mean per call (`PER_CALL`)
    is the mean over all calls, as time and instructions add up.
    """
    import numpy as np

    footprints = columns["footprint_bytes"]
    largest = np.argmax(np.where(np.isnan(footprints), -np.inf, footprints), axis=1)[:, np.newaxis]
    combined = {}
    for key, column in columns.items():
        rule = METRICS[key].rule
        if calls is not None and key in PER_CALL:
            combined[key] = column @ (np.asarray(calls) / np.sum(calls))
        elif rule == "largest":
            combined[key] = column.max(axis=1)
        elif rule == "smallest":
            combined[key] = column.min(axis=1)
        elif rule == "of-largest-footprint":
            combined[key] = np.take_along_axis(column, largest, axis=1)[:, 0]
        else:
            combined[key] = column.sum(axis=1)
    return combined


def as_float(value: Value) -> float:
    """A metric as a column holds it: NaN for None."""
    return float("nan") if value is None else float(value)
