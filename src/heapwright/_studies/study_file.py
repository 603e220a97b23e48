"""Study file: the stored results of one exploration, in one DuckDB file.

Every batch of results is one transaction, so a process that dies loses at most the batch it had not finished. One
process writes at a time; many may read when none writes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import astuple
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from numpy.typing import NDArray

from heapwright._replay.energy import EnergyTable
from heapwright._replay.engine import GROWING, ReplayProgress
from heapwright._replay.metrics import (
    METRICS,
    TARGET_METRICS,
    TIME,
    Value,
    named_in,
)
from heapwright._studies.candidates import Candidates
from heapwright._studies.faults import one_line
from heapwright._studies.migration import migrate, opened
from heapwright._studies.records import Grown, Identity, Measured, Partial, Result, Run, TraceInfo
from heapwright._studies.tables import (
    PARTIAL,
    REPLAYS,
    RUNS,
    SEARCH,
    TARGET,
    Role,
    Types,
    check,
    create,
    declared,
    insert,
    insert_traces,
    read_meta,
)
from heapwright._support import database
from heapwright._support.errors import HeapwrightError
from heapwright._support.kinds import is_study
from heapwright._support.remote import local, writable
from heapwright._support.version import __version__

if TYPE_CHECKING:
    from typing_extensions import Self

    from heapwright._recipes.recipe import Recipe

_SO_FAR = ("calls", *GROWING)

_progress_of = attrgetter(*_SO_FAR)

_AT_ONCE: ContextVar[tuple[StudyFile, database.Connection] | None] = ContextVar("_AT_ONCE", default=None)
"""The closed study that is open for several queries, and its connection."""


class StudyFile(Candidates):
    """Study file. Use as a context manager, or `close` it; once closed it opens the file for each query."""

    def __init__(self, path: Path, connection: database.Connection) -> None:
        """Wrap an open, checked connection; see `open` and `create_or_resume`."""
        self.path = path
        self._open: database.Connection | None = connection
        self._stored = self._fetch_known()

    @classmethod
    def open(cls, path: Path | str, *, write: bool = False) -> Self:
        """Open a study for reading; with `write` also for `add_measured`.

        A study of an older format is migrated to this one. Raises `HeapwrightError` if the file is missing, is no
        study, is damaged, is of a format that this version does not know, or is being written by another process.
        """
        path = Path(path)
        if not (writable(path) if write else local(path)).exists():
            raise HeapwrightError(f"{path}: no such study; heapwright explore makes one")
        with one_line(path):
            connection, types = opened(path, write=write)
        return cls._checked(path, connection, types)

    @classmethod
    def create_or_resume(cls, path: Path | str, identity: Identity) -> Self:
        """Open a study for writing; a new file if there is none.

        Raises `HeapwrightError` if the file cannot be written, is no study, is being used by another process, or holds
        the results of other traces, objectives, recipes or energies.
        """
        path = Path(path)
        file = writable(path)
        if not file.absolute().parent.is_dir():
            raise HeapwrightError(f"{path}: there is no folder {path.parent} to write the study to")
        if file.is_file() and not file.stat().st_size:
            file.unlink()  # DuckDB refuses an empty file, as mktemp leaves one
        new = not file.exists()
        if file.is_file() and not is_study(path):
            raise HeapwrightError(f"{path}: is there already, and no study; give another file", parameter="output")
        with one_line(path):
            plain = database.vouched(path)
            connection = database.attached(path, read_only=False, threads=1)  # the processors belong to the replays
            try:
                if not connection.execute("SELECT 1 FROM information_schema.tables LIMIT 1").fetchall():
                    create(connection, identity)
                    if new:  # no other process has written to it
                        return cls(path, connection)
                types = migrate(connection, str(path), plain=plain)
            except BaseException:
                connection.close()
                if new:
                    file.unlink(missing_ok=True)
                raise
        study = cls._checked(path, connection, types)
        try:
            identity.require(study.path, study.traces(), study.meta)
        except HeapwrightError:
            study.close()
            raise
        return study

    @classmethod
    def _checked(cls, path: Path, connection: database.Connection, types: Types) -> Self:
        """A study, if the connection is one to a study of this format; closes the connection otherwise."""
        try:
            with one_line(path):
                check(connection, str(path), types)
            return cls(path, connection)
        except HeapwrightError:
            connection.close()
            raise

    def close(self) -> None:
        """Write everything to the file and let other processes open it."""
        with one_line(self.path):
            if self._open:
                self._open.close()
                database.vouch(self.path)
        self._open = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @cached_property
    def meta(self) -> dict[str, Any]:
        """Format version, heapwright version, time of creation, objectives, the space's digest and size, and more."""
        with self._reading() as connection:
            return read_meta(connection, str(self.path))

    @property
    def objectives(self) -> tuple[str, ...]:
        """The objectives that were explored for."""
        return tuple(self.meta["objectives"])

    @property
    def same_device(self) -> bool:
        """Whether its traces are loads of one device: its memory is the largest, its accesses are summed."""
        return bool(self.meta.get("same_device"))

    @property
    def current(self) -> str | None:
        """The name of the reference allocator that the user has today; None if it is not known."""
        return self.meta.get("current")

    def set_current(self, name: str) -> None:
        """Store the name of the reference allocator that the user has today."""
        self._set("current", name)

    @property
    def platform(self) -> str | None:
        """The name of the platform that the recipes were explored for, as they are generated; None if for none."""
        return self.meta.get("platform")

    def set_platform(self, name: str | None) -> None:
        """Store the name of the platform."""
        self._set("platform", name)

    def _set(self, key: str, value: Any) -> None:
        """Store a value of the table `meta`; None removes it."""
        with one_line(self.path):
            self._connection.begin()
            self._connection.execute("DELETE FROM meta WHERE key = ?", [key])
            if value is not None:
                insert(self._connection, "meta", [[key, json.dumps(value)]])
            self._connection.commit()
        self._forget()

    @property
    def align(self) -> int:
        """Alignment in bytes of every recipe of the space."""
        return int(self.meta["align"])

    @property
    def ranked(self) -> int:
        """How many recipes of the space have been tried on every trace."""
        return len(self.finished_recipes)

    @cached_property
    def finished_recipes(self) -> set[str]:
        """The ids of the ranked recipes that have a result on every trace explored on."""
        among = "SELECT name FROM traces WHERE role = 'explored'"
        query = f"""
            SELECT recipe FROM results JOIN recipes ON recipe = id WHERE ranked AND trace IN ({among})
            GROUP BY recipe HAVING count(*) = (SELECT count(*) FROM ({among}))"""
        return {id for (id,) in self._fetch(query)}

    @property
    def complete(self) -> bool:
        """Whether every recipe of the space has been tried on every trace."""
        return bool(self.ranked == self.meta["recipes"])

    @property
    def tolerance(self) -> float | None:
        """Largest distance of the front from that of all recipes, as a share; None if unknown.

        0 for an exact front. See `docs/spaces.md`.
        """
        return 0.0 if self.complete else self.meta.get("tolerance")

    @cached_property
    def given_up(self) -> int:
        """Number of recipes of the space that were pruned, or not finished for want of time."""
        if not self._has("partial"):
            return 0
        ranked = {id for id, (_, ranked) in self._known().items() if ranked}
        begun = {id for (id,) in self._fetch("SELECT DISTINCT recipe FROM partial")}
        return len((begun & ranked) - self.finished_recipes)

    @property
    def tried(self) -> str:
        """How many recipes have been tried on every trace, and of how many if some are left: "662 of 12,280"."""
        return f"{self.ranked:,}" if self.complete else f"{self.ranked:,} of {self.meta['recipes']:,}"

    @property
    def tuned_for(self) -> str:
        """The traces and the objectives, in words, and how many recipes were tried if some are left."""
        traces = ", ".join(f"{trace.name} ({trace.events:,} calls)" for trace in self.traces())
        remaining = "" if self.complete else f"; {self.tried} recipes tried"
        return f"{traces}; objectives {', '.join(self.objectives)}{remaining}"

    def traces(self, role: Role = "explored") -> list[TraceInfo]:
        """The traces of a role, in the order they were given."""
        columns = "name, path, digest, events, seed"
        rows = self._fetch(f"SELECT {columns} FROM traces WHERE role = ? ORDER BY position", [role])
        return [TraceInfo(*row) for row in rows]

    def add(self, results: Sequence[Result], role: Role = "explored") -> None:
        """Store results as one transaction. Raises `HeapwrightError` if the file cannot be written."""
        fresh = {result.id: result for result in results if result.id not in self._stored}
        recipes = [[id, result.zoo_name, result.recipe.to_toml(), result.ranked] for id, result in fresh.items()]
        rows = [
            [result.id, result.trace, *map(result.metrics.get, METRICS), __version__, result.machine]
            for result in results
        ]
        with one_line(self.path):
            self._connection.begin()
            insert(self._connection, "recipes", recipes)
            insert(self._connection, _table(role), rows)
            self._connection.commit()
        self._stored.update({id: (result.zoo_name, result.ranked) for id, result in fresh.items()})
        self._forget()

    def add_partial(self, partials: Sequence[Partial]) -> None:
        """Store the progress of pruned replays, in place of any earlier progress."""
        fresh = {partial.id: partial for partial in partials if partial.id not in self._stored}
        recipes = [[id, partial.zoo_name, partial.recipe.to_toml(), partial.ranked] for id, partial in fresh.items()]
        rows = [(partial.id, partial.trace, partial.least, *_progress_of(partial.so_far)) for partial in partials]
        with one_line(self.path):
            self._connection.begin()
            self._connection.execute(f"CREATE TABLE IF NOT EXISTS partial ({declared(PARTIAL)})")
            insert(self._connection, "recipes", recipes)
            outdated = (
                "DELETE FROM partial WHERE (recipe, trace) IN (SELECT unnest(?::VARCHAR[]), unnest(?::VARCHAR[]))"
            )
            self._connection.execute(
                outdated, [[partial.id for partial in partials], [partial.trace for partial in partials]]
            )
            insert(self._connection, "partial", rows)
            self._connection.commit()
        self._stored.update({id: (partial.zoo_name, partial.ranked) for id, partial in fresh.items()})
        self._forget()

    def partial(self) -> list[tuple[str, str, int, ReplayProgress]]:
        """Recipe id, trace, least footprint and progress of all pruned replays that have not ended since."""
        if not self._has("partial"):
            return []
        rows = self._fetch(
            f"SELECT recipe, trace, least, {', '.join(_SO_FAR)} FROM partial ANTI JOIN results USING (recipe, trace)"
        )
        return [(recipe, trace, least, ReplayProgress(*values)) for recipe, trace, least, *values in rows]

    def set_tolerance(self, tolerance: float | None) -> None:
        """Store the largest distance of the front from that of all recipes; None if unknown."""
        self._set("tolerance", tolerance)

    def _forget(self) -> None:
        """Drop the values derived from results that have changed."""
        for outdated in ("meta", "given_up", "finished_recipes"):
            self.__dict__.pop(outdated, None)

    def add_measured(self, setting: str, measured: Sequence[Measured]) -> None:
        """Store measurements on a target CPU, in place of earlier ones of the same setting.

        ``setting`` names CPU, compiler and optimisation. Metrics of two settings are never ranked together: those of
        the last one stand in the results, unless the study was explored for them; the table ``target`` keeps all.
        """
        explored_for = set(TARGET_METRICS) & {name for key in self.objectives for name in named_in(key)}
        rows = [[setting, item.id, item.trace, json.dumps(item.detail)] for item in measured]
        with one_line(self.path):
            connection = self._connection
            connection.begin()
            columns = f"{declared(TARGET)}, PRIMARY KEY (setting, recipe, trace)"
            connection.execute(f"CREATE TABLE IF NOT EXISTS target ({columns})")
            connection.executemany("INSERT OR REPLACE INTO target VALUES (?, ?, ?, ?)", rows)
            if not explored_for:
                self._replace_target_metrics(setting, measured)
            connection.commit()
        self._forget()

    def _replace_target_metrics(self, setting: str, measured: Sequence[Measured]) -> None:
        connection = self._connection
        if self.meta.get("target") != setting:
            cleared = ", ".join(f"{key} = NULL" for key in TARGET_METRICS)
            connection.execute(f"UPDATE results SET {cleared}")
            connection.execute("DELETE FROM meta WHERE key = 'target'")
            insert(connection, "meta", [["target", json.dumps(setting)]])
        changed = ", ".join(f"{key} = ?" for key in TARGET_METRICS)
        connection.executemany(
            f"UPDATE results SET {changed} WHERE recipe = ? AND trace = ?",
            [[*(item.metrics.get(key) for key in TARGET_METRICS), item.id, item.trace] for item in measured],
        )

    def set_times(self, role: Role, trace: str, times: Mapping[str, float], machine: str) -> None:
        """Store the `TIME` of recipes on a trace, by their ids, in place of an earlier one, if there is a result."""
        with one_line(self.path):
            self._connection.begin()
            self._connection.executemany(
                f"UPDATE {_table(role)} SET {TIME} = ?, machine = ? WHERE recipe = ? AND trace = ?",
                [[time, machine, id, trace] for id, time in times.items()],
            )
            self._connection.commit()
        self._forget()

    def growth(self) -> list[Grown]:
        """Growth of the hypervolume in a search, in the order of recipes; empty if all were evaluated."""
        if not self._has("search"):
            return []
        return [Grown(*row) for row in self._fetch(f"SELECT {', '.join(SEARCH)} FROM search ORDER BY evaluations")]

    def add_growth(self, grown: Grown) -> None:
        """Store how far a search has come."""
        self._append("search", SEARCH, list(astuple(grown)))

    def runs(self) -> list[Run]:
        """The runs of explorations that wrote to it, in order; older versions stored none."""
        if not self._has("runs"):
            return []
        return [Run(*row) for row in self._fetch(f"SELECT {', '.join(RUNS)} FROM runs ORDER BY begun")]

    def add_run(self, run: Run) -> None:
        """Store a run of an exploration."""
        self._append("runs", RUNS, list(astuple(run)))

    def _append(self, table: str, columns: Mapping[str, str], row: Sequence[Any]) -> None:
        """Add a row to a table that not every study has."""
        with one_line(self.path):
            self._connection.begin()
            self._connection.execute(f"CREATE TABLE IF NOT EXISTS {table} ({declared(columns)})")
            self._connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})", row)
            self._connection.commit()

    def add_traces(self, traces: Sequence[TraceInfo], device: Mapping[str, Any]) -> None:
        """Add traces to those explored on; the tolerance of the front is unknown then.

        ``device``: notes on all traces, as `records.device_of`. A trace that the study has stays. Raises
        `HeapwrightError` if the study has another trace of the same name.
        """
        known = {info.name: (info, role) for role in get_args(Role) for info in self.traces(role)}
        for info in traces:
            there, role = known.get(info.name, (info, "explored"))
            if there.digest != info.digest or role != "explored":
                what = "another trace" if role == "explored" else f"one that is {role}"
                raise HeapwrightError(f"{self.path}: {info.name} is the name of {what} of it; rename one file")
        new = [info for info in traces if info.name not in known]
        with one_line(self.path):
            self._connection.begin()
            insert_traces(self._connection, new, "explored", len(self.traces()))
            self._connection.execute("DELETE FROM meta WHERE key IN ('tolerance', 'origin', 'same_device')")
            insert(self._connection, "meta", [[key, json.dumps(value)] for key, value in device.items()])
            self._connection.commit()
        self._forget()

    @property
    def energy_table(self) -> EnergyTable:
        """The energies of its results; raises `HeapwrightError` if the file, of an older format, lacks them."""
        if "energy_table" not in self.meta:
            raise HeapwrightError(f"{self.path}: its energy table is not known: an older version stored none")
        sizes, reads, writes = zip(*self.meta["energy_table"], strict=True)
        return EnergyTable(sizes, reads, writes, name=str(self.path))

    def sql(self, query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Names of columns, and rows, of an SQL query to DuckDB over the tables of the study and the view ``replays``.

        docs/metrics.md describes them. Raises `HeapwrightError` if the query is invalid, or would change something.
        """
        with one_line(self.path), database.attached(self.path, read_only=True) as connection:
            connection.execute(f"CREATE TEMP VIEW replays AS {REPLAYS.format('')}")
            try:
                answer = connection.execute(query)
                rows = answer.fetchall()
            except database.Error as error:
                raise HeapwrightError(f"{self.path}: {' '.join(str(error).split())}") from None
            return [name for name, *_ in answer.description or []], rows

    def measured(self) -> list[tuple[str, str, str, dict[str, Any]]]:
        """Setting, recipe id, trace name and details of all measurements on a target CPU."""
        if not self._has("target"):
            return []
        rows = self._fetch("SELECT setting, recipe, trace, detail FROM target ORDER BY ALL")
        return [(setting, recipe, trace, json.loads(detail)) for setting, recipe, trace, detail in rows]

    def set_apart(self, traces: Sequence[TraceInfo], role: Role) -> None:
        """Set the traces of a role by which recipes are not ranked, in place of earlier ones.

        Results on traces that stay are kept. Raises `HeapwrightError` if a held-out trace is explored on as well, or
        has the name of another.
        """
        self._require_apart(traces, role)
        before = self.traces(role)
        going = [info.name for info in before if info not in traces]
        with one_line(self.path):
            self._connection.begin()
            self._connection.execute("DELETE FROM traces WHERE role = ?", [role])
            self._connection.execute("DELETE FROM elsewhere WHERE trace IN (SELECT unnest(?::VARCHAR[]))", [going])
            insert_traces(self._connection, traces, role)
            self._connection.commit()
        self._forget()

    def _require_apart(self, traces: Sequence[TraceInfo], role: Role) -> None:
        taken = {info.name: other for other in get_args(Role) if other != role for info in self.traces(other)}
        explored = {info.digest for info in self.traces()}
        for info in traces:
            other = taken.get(info.name, "explored" if info.digest in explored else None)
            if other and role == "held out":
                what = "explored on" if other == "explored" else "a copy of what is explored on"
                raise HeapwrightError(f"{info.name}: held out and {what}; hold out another trace", parameter="held_out")

    def finished(self, role: Role = "explored") -> set[tuple[str, str]]:
        """The pairs (recipe id, trace name) that have a result."""
        return set(self._fetch(f"SELECT recipe, trace FROM {_table(role)}"))

    def measured_on(self, role: Role, keys: Sequence[str]) -> Iterator[tuple[str, str, dict[str, Value]]]:
        """Recipe id, trace name and some metrics of every result on the traces of a role."""
        columns = ", ".join(keys)
        for recipe, trace, *values in self._fetch(f"SELECT recipe, trace, {columns} FROM {_table(role)}"):
            yield recipe, trace, dict(zip(keys, values, strict=True))

    def recipe(self, id: str) -> Recipe:
        """The recipe of this id, of a prefix that only one id has, or of a zoo name.

        Raises `HeapwrightError` if no id or more than one begins so, or if the stored recipe means something else to
        this version.
        """
        full = self.resolve(id)
        ((toml,),) = self._fetch("SELECT toml FROM recipes WHERE id = ?", [full])
        return self._read_recipe(full, toml)

    def recipes(self, without: Collection[str] = ()) -> Iterator[tuple[Recipe, str | None, bool]]:
        """Every recipe but for those of some ids, with its zoo name, and whether it is ranked; errors as `recipe`."""
        for id, toml, zoo_name, ranked in self._fetch("SELECT id, toml, name, ranked FROM recipes ORDER BY id"):
            if id not in without:
                yield self._read_recipe(id, toml), zoo_name, ranked

    def _read_recipe(self, id: str, toml: str) -> Recipe:
        from heapwright._recipes.recipe import Recipe

        recipe = Recipe.parse(toml, f"{self.path}:{id}")
        if recipe.hash != id:
            raise HeapwrightError(
                f"{self.path}:{id}: heapwright {self.meta['heapwright']} wrote this recipe and {__version__} "
                f"reads it as {recipe.hash}; use that version or explore again"
            )
        return recipe

    def recipe_texts(self) -> dict[str, str]:
        """The TOML of every recipe by its id."""
        return dict(self._fetch("SELECT id, toml FROM recipes"))

    def resolve(self, id: str) -> str:
        """The full id for an id, a unique prefix of one, or a zoo name; errors as for `recipe`."""
        if id in self._stored:
            return id
        rows = self._fetch("SELECT id FROM recipes WHERE starts_with(id, ?) OR name = ? ORDER BY id", [id.lower(), id])
        ids = [row[0] for row in rows]
        if len(ids) == 1:
            return str(ids[0])
        if not ids or not id:
            raise HeapwrightError(f"{self.path}:{id}: the study has no such recipe; heapwright pareto lists its front")
        raise HeapwrightError(f"{self.path}:{id}: {len(ids)} recipes begin so ({', '.join(ids[:3])}, ...); give more")

    def results(self, role: Role = "explored") -> dict[str, NDArray[Any]]:
        """All results on the traces of a role, one row for a recipe and a trace, sorted by both.

        Columns are ``recipe``, ``trace`` and every metric; names are object arrays, metrics float64 with NaN for None.
        """
        columns = ", ".join(f"coalesce({key}::DOUBLE, 'nan') AS {key}" for key in METRICS)
        among = f"{_table(role)} WHERE trace IN (SELECT name FROM traces WHERE role = ?)"
        query = f"SELECT recipe, trace, {columns} FROM {among} ORDER BY recipe, trace"
        with self._reading() as connection:
            result: dict[str, NDArray[Any]] = connection.execute(query, [role]).fetchnumpy()
        return result

    def _known(self) -> dict[str, tuple[str | None, bool]]:
        """The zoo's name of each recipe, if it has one, and whether it is ranked."""
        return self._stored if self._open else self._fetch_known()  # once it is closed other processes may add some

    def _fetch_known(self) -> dict[str, tuple[str | None, bool]]:
        return {id: (name, ranked) for id, name, ranked in self._fetch("SELECT id, name, ranked FROM recipes")}

    def per_trace(
        self, ids: Sequence[str], keys: Collection[str] = tuple(METRICS)
    ) -> dict[str, dict[str, dict[str, Value]]]:
        """Metrics of some recipes on each trace: id -> trace name -> metrics; held-out traces included."""
        results: dict[str, dict[str, dict[str, Value]]] = {id: {} for id in ids}
        for table in ("results", "elsewhere"):
            wanted = (
                "recipe IN (SELECT unnest(?::VARCHAR[])) AND trace IN (SELECT name FROM traces WHERE role <> 'copy')"
            )
            query = f"SELECT recipe, trace, {', '.join(keys)} FROM {table} WHERE {wanted} ORDER BY recipe, trace"
            for recipe, trace, *values in self._fetch(query, [list(results)]):
                results[recipe][trace] = dict(zip(keys, values, strict=True))
        return results

    def rows(self, id: str) -> list[dict[str, Any]]:
        """Every result of a recipe by the columns of the view ``replays``, without pruned replays."""
        query = f"SELECT * FROM ({REPLAYS.format('')}) WHERE recipe = ? AND footprint_bytes IS NOT NULL ORDER BY trace"
        with self._reading() as connection:
            answer = connection.execute(query, [id])
            names = [name for name, *_ in answer.description or []]
            return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]

    def _has(self, table: str) -> bool:
        return bool(self._fetch("SELECT 1 FROM information_schema.tables WHERE table_name = ?", [table]))

    def _fetch(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._reading() as connection:
            return connection.execute(query, list(parameters)).fetchall()

    @property
    def _connection(self) -> database.Connection:
        assert self._open, "a closed study is not written to"
        return self._open

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Context in which all queries of a closed study open the file once, and no process can write to it."""
        if self._opened:
            yield
            return
        with one_line(self.path):
            connection = database.attached(self.path, read_only=True)
        outside = _AT_ONCE.set((self, connection))
        try:
            yield
        finally:
            _AT_ONCE.reset(outside)
            connection.close()

    @property
    def _opened(self) -> database.Connection | None:
        study, connection = _AT_ONCE.get() or (None, None)
        return connection if study is self else self._open

    @contextmanager
    def _reading(self) -> Iterator[database.Connection]:
        with one_line(self.path):
            if opened := self._opened:
                yield opened
                return
            with database.attached(self.path, read_only=True) as connection:
                yield connection


def _table(role: Role) -> str:
    return "results" if role == "explored" else "elsewhere"
