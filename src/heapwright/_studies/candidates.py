"""Results that a study holds for candidates alone: on futures, and in the stress test."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from heapwright._replay.metrics import LONG_RUN_METRICS, SHIPPING_METRICS, Value
from heapwright._studies.faults import one_line
from heapwright._studies.records import TraceInfo
from heapwright._studies.tables import Role
from heapwright._support import database


class Candidates:
    """Part of `heapwright._studies.study_file.StudyFile` that stores results of candidates."""

    path: Path

    def endured(self, calls: int = 1) -> set[tuple[str, str]]:
        """The pairs (recipe id, trace name) of a recipe that failed the stress test, or ran it for that many calls."""
        _, passed, tested = SHIPPING_METRICS
        known = f"{passed} = 0 OR {tested} >= {int(calls)}"
        return set(self._fetch(f"SELECT recipe, trace FROM results WHERE {known}"))

    def set_endurance(self, result: Sequence[tuple[str, str, Mapping[str, Value]]]) -> None:
        """Store the metrics of `SHIPPING_METRICS` of recipes on traces explored on, if there is a result."""
        self._set_metrics(SHIPPING_METRICS, result)

    def foreseen(self, calls: int = 1) -> set[tuple[str, str]]:
        """The pairs (recipe id, trace name) of a recipe that was replayed on a future of that many calls or more."""
        return set(self._fetch(f"SELECT recipe, trace FROM results WHERE long_run_calls >= {int(calls)}"))

    def long_run(self, ids: Sequence[str], calls: Sequence[int]) -> dict[str, list[dict[str, Value]]]:
        """Metrics of `LONG_RUN_METRICS`, footprints and failures on futures of that many calls, by recipe id.

        Only recipes that were replayed on the futures of all explored traces have some.
        """
        names, known = [info.name for info in self.traces()], self.foreseen()
        requested = [id for id in ids if all((id, name) in known for name in names)]
        results: dict[str, list[dict[str, Value]]] = {}
        for id, of_trace in self.per_trace(requested, [*LONG_RUN_METRICS, "footprint_bytes", "failed"]).items():
            each = [of_trace[name] for name in names]
            if all(item["long_run_calls"] == count for item, count in zip(each, calls, strict=True)):
                needs = [item["long_run_bytes"] or item["footprint_bytes"] for item in each]
                results[id] = [{**item, "footprint_bytes": need} for item, need in zip(each, needs, strict=True)]
        return results

    def set_long_run(self, result: Sequence[tuple[str, str, Mapping[str, Value]]]) -> None:
        """Store the metrics of `LONG_RUN_METRICS` of recipes on the futures of traces explored on, by these traces."""
        self._set_metrics(LONG_RUN_METRICS, result)

    def _set_metrics(self, keys: Sequence[str], result: Sequence[tuple[str, str, Mapping[str, Value]]]) -> None:
        if not result:
            return
        changed = ", ".join(f"{key} = ?" for key in keys)
        with one_line(self.path):
            self._connection.begin()
            self._connection.executemany(
                f"UPDATE results SET {changed} WHERE recipe = ? AND trace = ?",
                [[*(metrics[key] for key in keys), id, trace] for id, trace, metrics in result],
            )
            self._connection.commit()
        self._forget()

    @abstractmethod
    def traces(self, role: Role = "explored") -> list[TraceInfo]:
        """The traces of a role."""

    @abstractmethod
    def per_trace(self, ids: Sequence[str], keys: Sequence[str]) -> dict[str, dict[str, dict[str, Value]]]:
        """The metrics of recipes by id, then by trace."""

    @property
    @abstractmethod
    def _connection(self) -> database.Connection:
        """Database connection to write with."""

    @abstractmethod
    def _fetch(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows that answer a query."""

    @abstractmethod
    def _forget(self) -> None:
        """Drop the values derived from results that have changed."""
