"""Tables of a study file, and the checks that a file of unknown origin has to pass."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from heapwright._replay.engine import GROWING
from heapwright._replay.metrics import LONG_RUN_METRICS, METRICS, SHIPPING_METRICS, parse_objectives
from heapwright._support import database
from heapwright._support.errors import HeapwrightError
from heapwright._support.version import __version__
from heapwright._traces.leaks import Leak
from heapwright._traces.live_bound import LiveBound

if TYPE_CHECKING:
    from heapwright._studies.records import Identity, TraceInfo

FORMAT = 7
"""Version of the file's tables; see `heapwright._studies.migration` for those before."""

Role = Literal["explored", "copy", "held out"]
"""Role of a trace in a study: explored on and ranked by, a perturbed copy of an explored trace, or held out."""

SINCE_5 = (*SHIPPING_METRICS, "worst_steps")
SINCE_6 = ("accesses_realloc_max", "instructions_calloc_max", "instructions_realloc_max")
SINCE_7 = LONG_RUN_METRICS
"""The metrics that results of older formats lack."""

_METRICS = {key: "BIGINT" if metric.integer else "DOUBLE" for key, metric in METRICS.items()}
_RESULTS = {"recipe": "VARCHAR", "trace": "VARCHAR", **_METRICS, "heapwright": "VARCHAR", "machine": "VARCHAR"}

TABLES = {
    "meta": {"key": "VARCHAR", "value": "VARCHAR"},
    "traces": {
        "name": "VARCHAR",
        "path": "VARCHAR",
        "digest": "VARCHAR",
        "events": "BIGINT",
        "role": "VARCHAR",
        "position": "BIGINT",
        "seed": "BIGINT",
    },
    "recipes": {"id": "VARCHAR", "name": "VARCHAR", "toml": "VARCHAR", "ranked": "BOOLEAN"},
    "results": _RESULTS,
    "elsewhere": _RESULTS,
}
"""Table -> column -> type of every study."""

TARGET = {"setting": "VARCHAR", "recipe": "VARCHAR", "trace": "VARCHAR", "detail": "VARCHAR"}
"""The columns of the table `target`, which a study has once something was measured on a target CPU."""

SEARCH = {
    "strategy": "VARCHAR",
    "seed": "BIGINT",
    "evaluations": "BIGINT",
    "seconds": "DOUBLE",
    "hypervolume": "DOUBLE",
}
"""The columns of the table `search`, which a study has once a wide space was searched."""

RUNS = {
    "begun": "VARCHAR",
    "heapwright": "VARCHAR",
    "engine": "VARCHAR",
    "commit": "VARCHAR",
    "command": "VARCHAR",
    "strategy": "VARCHAR",
    "seed": "BIGINT",
    "options": "VARCHAR",
    "space": "VARCHAR",
}
"""The columns of the table `runs`, which a study has since explorations store their options."""

REPLAYS = f"""
    SELECT recipe, recipes.name, ranked, trace, role, digest AS trace_digest,
        {", ".join(METRICS)}, heapwright, machine, toml
    FROM (FROM {{0}}results UNION ALL FROM {{0}}elsewhere) AS each_one
    JOIN {{0}}recipes AS recipes ON recipe = recipes.id
    JOIN {{0}}traces AS traces ON trace = traces.name"""
"""A row for every recipe and trace with all results; `{0}` is the prefix of table names."""

PARTIAL = {"recipe": "VARCHAR", "trace": "VARCHAR", "least": "BIGINT", "calls": "BIGINT"} | {
    key: _METRICS[key] for key in GROWING
}
"""The columns of the table `partial`, which a study has once a replay was pruned: the least footprint that the recipe
could end with, the calls that were replayed, and their costs.
"""


_META: dict[str, Callable[[Any], bool]] = {
    "format": lambda value: type(value) is int,
    "heapwright": lambda value: type(value) is str,
    "created": lambda value: type(value) is str,
    "objectives": lambda value: type(value) is list and all(type(item) is str for item in value),
    "space": lambda value: type(value) is str,
    "align": lambda value: type(value) is int and value >= 1,
    "energy_table": lambda value: value is None or (type(value) is list and all(map(_is_energy, value))),
    "recipes": lambda value: type(value) is int and value >= 1,
    "target": lambda value: value is None or type(value) is str,
    "tolerance": lambda value: value is None or (type(value) in (int, float) and value >= 0),
    "same_device": lambda value: value is None or type(value) is bool,
    "current": lambda value: value is None or type(value) is str,
    "platform": lambda value: value is None or type(value) is str,
    "origin": lambda value: value is None or type(value) is str,
    "leaks": lambda value: value is None or bool({name: [*map(Leak.of, found)] for name, found in value.items()}),
    "failures": lambda value: value is None or all(type(text) is str for text in value.values()),
    "live_bounds": lambda value: value is None or bool({name: LiveBound.parse(text) for name, text in value.items()}),
    "pieces": lambda value: (
        value is None or (type(value["tried"]) is int and all(map(_are_calls, value["calls"].values())))
    ),
}
"""The keys of the table `meta` with a check of each value: the space's digest, alignment and number of recipes, the
energy table (bytes, pJ of a read and of a write; null if an older format kept only a digest of it), the target CPU's
setting, the tolerance of the front if recipes were pruned, whether the traces are loads of one device, the allocator in
use today by its name, the platform of the generated heaps, the traces' common origin (`heapwright._traces.origin`), and
by trace its leaks, in words the requests that failed while it was recorded, what bounds its live objects, and of long
traces the calls of their pieces (`heapwright._explore.shortlist`). A study may lack those from `target` on."""

_LATER_META = tuple(_META)[list(_META).index("target") :]


def _are_calls(pair: Any) -> bool:
    return type(pair) is list and len(pair) == 2 and all(type(item) is int for item in pair)


def _is_energy(row: Any) -> bool:
    return type(row) is list and len(row) == 3 and all(type(item) in (int, float) for item in row)


Types = Mapping[str, Mapping[str, str]]
"""Table -> column -> type."""


def stored_format(connection: database.Connection, where: str, types: Types) -> Any:
    """The format that a database of these `database.column_types` says it has.

    Raises HeapwrightError, which begins with `where`, if it is no study.
    """
    if not types.keys() >= TABLES.keys():
        raise HeapwrightError(f"{where}: a DuckDB file, but no study; heapwright explore makes one")
    return _decoded(connection).get("format") if types["meta"] == TABLES["meta"] else FORMAT


def check_tables(types: Types, where: str, tables: Types) -> None:
    """Raise HeapwrightError, which begins with `where`, unless all of these tables, and else only later ones, exist."""
    expected = {"target": TARGET, "partial": PARTIAL, "search": SEARCH, "runs": RUNS, **tables}
    for table, columns in types.items():
        if [*columns.items()] != [*expected.get(table, {}).items()]:
            raise HeapwrightError(f"{where}: not as heapwright makes a study: its table {table!r}; explore again")


def check(connection: database.Connection, where: str, types: Types) -> None:
    """Raise HeapwrightError, which begins with `where`, unless the database is a consistent study of this format.

    `types` are its `database.column_types`.
    """
    if (result := stored_format(connection, where, types)) != FORMAT:
        raise HeapwrightError(f"{where}: a study of format {result}; this version reads {FORMAT}; explore again")
    check_tables(types, where, TABLES)
    read_meta(connection, where)
    faults = _faults()
    if "runs" in types:
        always = ("begun", "heapwright", "engine", "strategy", "seed", "options")
        faults["a run without a value"] = f"FROM runs WHERE {_any('{} IS NULL', always)}"
    if "partial" in types:
        faults |= _faults_of_partial()
    requested = (f"(SELECT {at} {question} LIMIT 1)" for at, question in enumerate(faults.values()))
    result = connection.execute(" UNION ALL ".join(requested)).fetchall()  # in half the time of one after the other
    if result:
        fault = [*faults][min(at for (at,) in result)]
        raise HeapwrightError(f"{where}: damaged: {fault}; restore it, or explore again")


def read_meta(connection: database.Connection, where: str) -> dict[str, Any]:
    """The table `meta`; raises HeapwrightError if a value is missing or of another type."""
    try:
        result = _decoded(connection)
        info = {key: result[key] for key in _META if key in result or key not in _LATER_META}
        if not all(_META[key](value) for key, value in info.items()):
            raise ValueError("a value of another kind")
        info["objectives"] = list(parse_objectives(info["objectives"]))
        return {key: value for key, value in info.items() if value is not None}
    except (AttributeError, KeyError, TypeError, ValueError, HeapwrightError):
        raise HeapwrightError(f"{where}: damaged: its table 'meta'; restore it, or explore again") from None


def _decoded(connection: database.Connection) -> dict[str, Any]:
    try:
        return {key: json.loads(value) for key, value in connection.execute("SELECT key, value FROM meta").fetchall()}
    except (TypeError, ValueError, RecursionError):
        return {}


def _faults() -> dict[str, str]:
    """Faults of rows, each with the query that finds it."""
    faults = {
        "no trace": "WHERE NOT EXISTS (FROM traces WHERE role = 'explored')",
        "a trace of no known role": f"FROM traces WHERE role NOT IN {get_args(Role)}",
        "a trace without a value": f"FROM traces WHERE {_any('{} IS NULL', [*TABLES['traces']][:-1])}",
        "a copy without a seed": "FROM traces WHERE role = 'copy' AND seed IS NULL",
        "two traces of one name": "FROM traces GROUP BY name HAVING count(*) > 1",
        "a recipe without id or text": "FROM recipes WHERE id IS NULL OR toml IS NULL OR ranked IS NULL",
        "an id that is none": "FROM recipes WHERE NOT regexp_full_match(id, '[0-9a-f]{12}')",
        "two recipes of one id": "FROM recipes GROUP BY id HAVING count(*) > 1",
    }
    counts = [key for key, kind in _METRICS.items() if kind == "BIGINT"]
    ratios = [key for key, kind in _METRICS.items() if kind == "DOUBLE"]
    for table, role in {"results": "=", "elsewhere": "<>"}.items():
        known = {"recipe": "SELECT id FROM recipes", "trace": f"SELECT name FROM traces WHERE role {role} 'explored'"}
        faults |= {
            f"{table} without a {key}": f"FROM {table} WHERE {key} IS NULL OR {key} NOT IN ({ids})"
            for key, ids in known.items()
        }
        faults[f"{table} of no known version"] = f"FROM {table} WHERE heapwright IS NULL"
        faults[f"{table} twice"] = f"FROM {table} GROUP BY recipe, trace HAVING count(*) > 1"
        faults[f"{table} below 0"] = f"FROM {table} WHERE {_any('{} < 0', counts)}"
        faults[f"{table} that are no numbers"] = f"FROM {table} WHERE {_any('NOT isfinite({})', ratios)}"
    return faults


def _faults_of_partial() -> dict[str, str]:
    explored = "SELECT name FROM traces WHERE role = 'explored'"
    return {
        "partial without a value": f"FROM partial WHERE {_any('coalesce({}, -1) < 0', [*PARTIAL][2:])}",
        "partial without a recipe": "FROM partial WHERE recipe IS NULL OR recipe NOT IN (SELECT id FROM recipes)",
        "partial without a trace": f"FROM partial WHERE trace IS NULL OR trace NOT IN ({explored})",
        "partial twice": "FROM partial GROUP BY recipe, trace HAVING count(*) > 1",
    }


def _any(condition: str, columns: Iterable[str]) -> str:
    return " OR ".join(condition.format(f'"{column}"') for column in columns)


def digest_of(ids: Iterable[str]) -> str:
    """Digest of a space with these recipes, the same for any order of the ids."""
    return sha256("\n".join(sorted(ids)).encode()).hexdigest()


def declared(columns: Mapping[str, str]) -> str:
    """Columns and their types as SQL declares them."""
    return ", ".join(f'"{column}" {kind}' for column, kind in columns.items())


def insert(connection: database.Connection, table: str, rows: Sequence[Sequence[Any]]) -> None:
    """Insert rows by their columns; numbers as arrays, which take a quarter of the time of lists.

    Raises `database.Error` if the file cannot be written.
    """
    if not rows:
        return
    kinds = {**TABLES, "partial": PARTIAL}[table]
    columns = dict(zip(kinds, zip(*rows, strict=True), strict=True))
    numbers = {key: _numbers(columns.pop(key), _NUMBERS[kind]) for key, kind in kinds.items() if kind in _NUMBERS}
    lists = ", ".join(f'unnest(?::{kinds[key]}[]) AS "{key}"' for key in columns)
    connection.register("numbers", numbers or {"none": np.empty(len(rows), bool)})
    ordered = ", ".join(f'"{key}"' for key in kinds)
    query = f"INSERT INTO {table} SELECT {ordered} FROM (SELECT {lists}) POSITIONAL JOIN numbers"
    connection.execute(query, [list(column) for column in columns.values()])
    connection.unregister("numbers")


_NUMBERS: dict[str, type[np.int64] | type[np.float64]] = {"BIGINT": np.int64, "DOUBLE": np.float64}


def _numbers(values: Sequence[Any], dtype: type[np.int64] | type[np.float64]) -> NDArray[Any]:
    """Values of a column in the form that DuckDB takes fastest; the mask marks None."""
    if None not in values:
        return np.array(values, dtype)
    known = [0 if value is None else value for value in values]
    return np.ma.masked_array(np.array(known, dtype), [value is None for value in values])


def create(connection: database.Connection, identity: Identity) -> None:
    """Make the tables of an empty study."""
    meta = {
        "format": FORMAT,
        "heapwright": __version__,
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "objectives": identity.objectives,
        "space": identity.space,
        "align": identity.align,
        "recipes": identity.recipes,
        "energy_table": identity.energy_table,
        **identity.device,
    }
    connection.begin()
    for table, columns in TABLES.items():
        connection.execute(f"CREATE TABLE {table} ({declared(columns)})")
    insert(connection, "meta", [[key, json.dumps(value)] for key, value in meta.items()])
    insert_traces(connection, identity.traces, "explored")
    connection.commit()


def insert_traces(connection: database.Connection, traces: Sequence[TraceInfo], role: Role, at: int = 0) -> None:
    """Add traces, from this position on."""
    rows = [[info.name, info.path, info.digest, info.events, role, at, info.seed] for at, info in enumerate(traces, at)]
    insert(connection, "traces", rows)
