"""Merging of studies into one: of the same traces, or of the same recipes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from heapwright._replay.metrics import METRICS
from heapwright._studies.study_file import StudyFile
from heapwright._studies.tables import RUNS, TABLES, TARGET, digest_of
from heapwright._support import database
from heapwright._support.errors import HeapwrightError
from heapwright._support.remote import writable
from heapwright._support.version import __version__
from heapwright._support.writing import replacing

_WITHIN = 1e-9
"""Relative difference by which rounding may change ratios and energies between two machines."""

_OPTIONAL = {"target": TARGET, "runs": RUNS}
"""Tables that a study need not have."""

_TIMED = ("ns_per_event",)


def merge(paths: Sequence[Path], output: Path) -> None:
    """Write one study that holds all results of several.

    They must have the same objectives, alignment and energies. Studies of the same traces may have different spaces if
    each is complete: the new study's space is all their recipes. Studies of the same space may have different traces.
    A result that several studies have must be equal in all, times aside; the first study's is taken. Partial results
    of pruned recipes are not.

    Raises HeapwrightError if there is a file at `output`, a study cannot be read, or two contradict each other.
    """
    if len(paths) < 2:
        raise HeapwrightError("give two studies or more to merge")
    if writable(output).exists():
        raise HeapwrightError(f"{output}: exists; give another file", parameter="output")
    meta = _agreed(paths)
    with replacing(output) as temporary:
        temporary.unlink()  # DuckDB takes no empty file
        attached = {f"s{number}": path for number, path in enumerate(paths)}
        try:
            with database.reaching(*database.files_of(temporary), databases=attached) as connection:
                for number in range(len(paths)):
                    _take_in(connection, number, paths[number])
                _write(connection, temporary, meta)
        except database.Error as error:
            raise HeapwrightError(f"{output}: cannot be written ({' '.join(str(error).split())})") from None


def _agreed(paths: Sequence[Path]) -> dict[str, Any]:
    """The table `meta` of the new study; raises HeapwrightError if the studies cannot be merged."""
    metas, traces, complete, ids = [], [], [], set()
    for path in paths:
        with StudyFile.open(path) as study:
            metas.append({**study.meta, "energy_table": study.energy_table.rows})
            traces.append({(info.name, info.digest) for info in study.traces()})
            complete.append(study.complete)
            ids |= study.finished_recipes
    first = metas[0]
    _check_options(paths, metas)
    target = _target(paths, metas)
    device = _device(paths, metas, traces)
    for key in ("tolerance", "same_device", "origin"):
        first.pop(key, None)
    created = datetime.now(timezone.utc).isoformat(timespec="seconds")
    report = {**first, **device, "heapwright": __version__, "created": created}
    for key in ("leaks", "failures"):
        if found := {name: value for meta in metas for name, value in meta.get(key, {}).items()}:
            report[key] = found
    if target is not None:
        report["target"] = target
    if all(meta["space"] == first["space"] for meta in metas):
        return report
    for path, itself in zip(paths, traces, strict=True):
        if itself != traces[0]:
            raise HeapwrightError(
                f"{path}: another space and other traces than {paths[0]}; one of both must be the same"
            )
    for path, done in zip(paths, complete, strict=True):
        if not done:
            raise HeapwrightError(f"{path}: a part of a space that is not the others'; finish it, then merge")
    return {**report, "space": digest_of(ids), "recipes": len(ids)}


_SAME = {"objectives": "objectives", "align": "alignment", "energy_table": "energy table", "platform": "platform"}


def _check_options(paths: Sequence[Path], metas: Sequence[Mapping[str, Any]]) -> None:
    """Raise HeapwrightError unless all studies were explored with the same options."""
    for path, meta in zip(paths[1:], metas[1:], strict=True):
        for key, what in _SAME.items():
            if meta.get(key) != metas[0].get(key):
                raise HeapwrightError(f"{path}: explored with another {what} than {paths[0]}; merge studies of one")


def _target(paths: Sequence[Path], metas: Sequence[Mapping[str, Any]]) -> Any:
    """The target on which fronts were measured, None if none was; raises HeapwrightError if there are several."""
    measured = [(path, meta["target"]) for path, meta in zip(paths, metas, strict=True) if "target" in meta]
    for path, target in measured:
        if target != measured[0][1]:
            known = measured[0][0]
            raise HeapwrightError(f"{path}: measured on another target than {known}; merge, then measure the front")
    return measured[0][1] if measured else None


def _device(
    paths: Sequence[Path], metas: Sequence[Mapping[str, Any]], traces: Sequence[set[tuple[str, str]]]
) -> dict[str, Any]:
    """The new study's notes on the origin of its traces, as `heapwright._studies.records.device_of`."""
    said = {
        path: bool(meta.get("same_device"))
        for path, meta, own in zip(paths, metas, traces, strict=True)
        if "same_device" in meta or len(own) > 1
    }
    if len(set(said.values())) > 1:
        other = next(path for path, same in said.items() if same != next(iter(said.values())))
        raise HeapwrightError(
            f"{other}: its traces are {'loads of one device' if said[other] else 'of many networks'}, unlike those of "
            f"{next(iter(said))}; merge studies of one question"
        )
    origins = {meta.get("origin") for meta in metas}
    origin = origins.pop() if len(origins) == 1 else None
    info = {"origin": origin} if origin else {}
    if said:
        return {**info, "same_device": next(iter(said.values()))}
    return {**info, "same_device": origin is not None} if len(set.union(*traces)) > 1 else info


def _take_in(connection: database.Connection, number: int, path: Path) -> None:
    """Join a study's tables to those gathered from the studies before it."""
    held = f"SELECT table_name FROM duckdb_tables() WHERE database_name = 's{number}'"
    has = {name for (name,) in connection.execute(held).fetchall()}
    if not number:
        for table in TABLES:
            connection.execute(f"CREATE TABLE {table} AS FROM s0.{table}")
        for table, columns in _OPTIONAL.items():
            connection.execute(f"CREATE TABLE {table} ({', '.join(f'{key} {kind}' for key, kind in columns.items())})")
    else:
        for refuse in (_refuse_traces, _refuse_results):
            refuse(connection, number, path)
        connection.execute(
            f"INSERT INTO traces SELECT * REPLACE (position + (SELECT count(*) FROM traces) AS position) "
            f"FROM s{number}.traces AS new WHERE new.name NOT IN (SELECT name FROM traces) ORDER BY position"
        )
        connection.execute(f"INSERT INTO recipes FROM s{number}.recipes WHERE id NOT IN (SELECT id FROM recipes)")
        for table in ("results", "elsewhere"):
            _join(connection, table, number)
    if "runs" in has:
        connection.execute(f"INSERT INTO runs FROM s{number}.runs")
    if "target" in has:
        connection.execute(
            f"INSERT INTO target FROM s{number}.target AS new ANTI JOIN target USING (setting, recipe, trace)"
        )


def _join(connection: database.Connection, table: str, number: int) -> None:
    """Join the rows of both; of equal rows the first study's stay."""
    columns = [f"coalesce(old.{key}, new.{key}) AS {key}" for key in (*METRICS, "heapwright", "machine")]
    connection.execute(
        f"CREATE OR REPLACE TABLE {table} AS SELECT recipe, trace, {', '.join(columns)} "
        f"FROM {table} AS old FULL JOIN s{number}.{table} AS new USING (recipe, trace)"
    )


def _refuse_traces(connection: database.Connection, number: int, path: Path) -> None:
    clash = connection.execute(
        f"SELECT name, old.role, new.role, old.digest = new.digest FROM traces AS old "
        f"JOIN s{number}.traces AS new USING (name) WHERE old.role <> new.role OR old.digest <> new.digest"
    ).fetchone()
    if clash:
        name, old, new, same = clash
        what = f"{new} here and {old} there" if same else "another trace than that of its name in the others"
        raise HeapwrightError(f"{path}: {name} is {what}; studies that are merged must mean the same by a name")


def _refuse_results(connection: database.Connection, number: int, path: Path) -> None:
    for table in ("results", "elsewhere"):
        for key, metric in METRICS.items():
            if key in _TIMED:
                continue
            near = f"abs(old.{key} - new.{key}) > {_WITHIN} * abs(old.{key})"
            differ = f"old.{key} <> new.{key}" if metric.integer else near
            clash = connection.execute(
                f"SELECT recipe, trace, old.{key}, new.{key}, old.heapwright, new.heapwright FROM {table} AS old "
                f"JOIN s{number}.{table} AS new USING (recipe, trace) WHERE {differ} LIMIT 1"
            ).fetchone()
            if clash:
                recipe, trace, old, new, before, after = clash
                raise HeapwrightError(
                    f"{path}: {key} of {recipe} on {trace} is {new:,} here (heapwright {after}) and {old:,} in the "
                    f"others ({before}); explore one of them again"
                )


def _write(connection: database.Connection, output: Path, meta: Mapping[str, Any]) -> None:
    connection.execute(f"ATTACH {database.literal(output)} AS merged")
    connection.execute("DELETE FROM meta")
    connection.executemany("INSERT INTO meta VALUES (?, ?)", [(key, json.dumps(value)) for key, value in meta.items()])
    tables = dict(TABLES)
    for table, columns in _OPTIONAL.items():
        if connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchall():
            tables[table] = columns
    for table, columns in tables.items():
        key = ", PRIMARY KEY (setting, recipe, trace)" if table == "target" else ""
        declared = ", ".join(f'"{column}" {kind}' for column, kind in columns.items())
        connection.execute(f"CREATE TABLE merged.{table} ({declared}{key})")
        connection.execute(f"INSERT INTO merged.{table} FROM {table}")
    connection.execute("DETACH merged")
