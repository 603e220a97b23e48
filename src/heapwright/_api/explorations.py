"""Explorations and the studies that they leave."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from heapwright._api.arguments import SHOWN, AnyTrace, Member, PathLike, energies_of, listed, one_line_errors, trace_of
from heapwright._explore.options import COPIES
from heapwright._heaps.names import parse
from heapwright._replay.long_run import CALLS
from heapwright._replay.metrics import DEFAULT_OBJECTIVES, Objectives
from heapwright._studies.analysis import Analysis
from heapwright._support import notebook
from heapwright._support.errors import HeapwrightError
from heapwright._support.kinds import kind_of
from heapwright._support.remote import local

if TYPE_CHECKING:
    import altair
    import pyarrow

    from heapwright._explore.options import Options, Strategy
    from heapwright._explore.portfolio import HeldOutScore, Template
    from heapwright._explore.recompute import Recomputed
    from heapwright._explore.runner import Progress
    from heapwright._explore.search import Exploration
    from heapwright._explore.space import Space, WideSpace
    from heapwright._replay.energy import EnergyTable
    from heapwright._studies.by_load import AtLoad
    from heapwright._studies.decision import Decision
    from heapwright._studies.recommendations import Pick
    from heapwright._studies.results import Candidate
    from heapwright._studies.study_diff import StudyDiff
    from heapwright._traces.trace import Trace


class Study(Analysis):
    """The stored results of one exploration. Each query reads the file again: another process may write to it."""

    def __repr__(self) -> str:
        with self.at_once():
            traces = ", ".join(trace.name for trace in self.traces())
            return f"<Study {self.path}: {self.tried} recipes on {traces}, {len(self.front())} on the front>"

    def _repr_html_(self) -> str:

        front = self.front()
        picks = self.picks() if front else {}
        shown = [*front, *(self[id] for id in picks if id not in {item.id for item in front})]
        keys = [key for key in (*self.objectives, *SHOWN) if any(item.metrics[key] is not None for item in shown)]
        rows = [
            [
                item.label,
                notebook.number(self.reserve(item.id)),
                *(notebook.number(item.metrics[key]) for key in dict.fromkeys(keys)),
                ", ".join(picks.get(item.id, ["front"])),
            ]
            for item in shown
        ]
        return notebook.table(repr(self)[1:-1], ["heap", "reserve", *dict.fromkeys(keys), "role"], rows)

    def __getitem__(self, id: str) -> Member:
        """The recipe of this id, of a prefix that only one has, or of a zoo name. Raises HeapwrightError."""
        with self.at_once():
            return self._member(self.candidate(id))

    def front(  # type: ignore[override]
        self, objectives: Objectives | None = None, where: str | Sequence[str] = ()
    ) -> list[Member]:
        """The Pareto-optimal recipes, best in the first objective first, of those that meet the conditions `where`."""
        with self.at_once():
            return [self._member(candidate) for candidate in super().front(objectives, where)]

    def pick(
        self, how: Pick = "balanced", objectives: Objectives | None = None, where: str | Sequence[str] = ()
    ) -> Member:
        """One recipe that holds on copies and on traces held out: "balanced", "smallest" or "fastest".

        docs/choosing.md has the rules. `where`: conditions such as "footprint_bytes <= 131072" that it has to meet.
        Raises HeapwrightError where no recipe does.
        """
        with self.at_once():
            return self._member(super().pick(how, objectives, where))

    def to_arrow(self) -> pyarrow.Table:
        """Every recipe that was tried on all traces, a row each: id, name (the zoo's), front, ranked, metrics, recipe.

        Metrics are float64, null where unknown, over all traces; recipe is TOML. Needs pyarrow; raises
        HeapwrightError without it.
        """
        try:
            import pyarrow
        except ImportError:
            raise HeapwrightError("to_arrow: pyarrow is missing; install heapwright[arrow]") from None
        combined, front = self.combined, {member.id for member in super().front()}
        texts = self.recipe_texts()
        columns = {"id": combined.ids, "name": combined.zoo_names, "front": [id in front for id in combined.ids]}
        columns["ranked"] = combined.ranked
        columns |= {key: pyarrow.array(column, from_pandas=True) for key, column in combined.columns.items()}
        return pyarrow.table({**columns, "recipe": [texts[id] for id in combined.ids]})

    def export(self, output: PathLike) -> int:
        """Write a row for every recipe and trace to a file in .parquet or .csv; returns how many.

        docs/metrics.md has the columns, those of the view ``replays``. Raises HeapwrightError.
        """
        from heapwright._studies.export import export

        return export(self.path, Path(output))

    def again(self, id: str, traces: Sequence[str] = (), moved: Sequence[PathLike] = ()) -> list[Recomputed]:
        """Make the metrics of a recipe again, on all traces that it was tried on or those named.

        Each has ``stored`` and ``metrics``, and in ``differing`` what is not equal. `moved`: where traces lie now.
        Raises HeapwrightError where there is no such recipe, or a trace is not the one that it was tried on.
        """
        from heapwright._explore.recompute import recompute

        return list(recompute(self.path, id, traces, [Path(path) for path in moved]))

    def plot(self) -> altair.TopLevelMixin:
        """An Altair chart of every recipe by the first two objectives; a notebook shows it."""
        from heapwright._report.study_content import overview

        return overview(self).standalone()

    def _member(self, candidate: Candidate) -> Member:
        recipe = self.recipe(candidate.id)
        return Member(candidate.id, candidate.zoo_name, candidate.metrics, recipe, self.tuned_for, self.path)


@one_line_errors
def open_study(path: PathLike) -> Study:
    """Open a study for reading. Raises HeapwrightError where the file is missing, damaged, or no study."""
    study = Study.open(Path(path))
    study.close()  # each query opens it again
    return study


@one_line_errors
def merge_studies(studies: Sequence[PathLike], output: PathLike) -> Study:
    """Write one study that holds all results of several, of the same traces or of the same space.

    See `heapwright._studies.merge.merge`. Raises HeapwrightError where they contradict each other.
    """
    from heapwright._studies.merge import merge

    merge([Path(path) for path in studies], Path(output))
    return open_study(output)


@one_line_errors
def extend_study(
    study: PathLike,
    traces: AnyTrace | Sequence[AnyTrace],
    *,
    moved: Sequence[PathLike] = (),
    jobs: int | None = None,
    repair: bool = False,
    command: str | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Study:
    """Try the recipes of a study on more traces, and rank by them, too; what it holds is not repeated.

    See `heapwright._explore.extend.extend`. `moved`: where traces of the study lie now; `command`: what the study is
    to keep as the command line that asked for it. Raises HeapwrightError.
    """
    from heapwright._explore.extend import extend
    from heapwright._platforms.catalogue import platform

    read = [trace_of(item, repair) for item in listed(traces)]
    extend(
        Path(study),
        read,
        given=[Path(path) for path in moved],
        jobs=jobs,
        command=command,
        progress=progress,
        platform_of=platform,
    )
    return open_study(study)


@one_line_errors
def compare_studies(old: Analysis | PathLike, new: Analysis | PathLike, *, moved: Sequence[PathLike] = ()) -> StudyDiff:
    """Compare two studies: picks, reserve, figures, front, and the call sites that hold more at the peak.

    Args:
        old, new: the studies; their traces may be of different builds.
        moved: where traces of the studies lie now. Without the traces it is not known who holds more.

    Raises HeapwrightError for what is no study, and where a front is empty.
    """
    from heapwright._studies.study_diff import compare

    before, after = (item.path if isinstance(item, Analysis) else Path(item) for item in (old, new))
    with Analysis.open(before) as had, Analysis.open(after) as has:
        return compare(had, has, moved=[Path(path) for path in moved])


@one_line_errors
def explore(
    traces: AnyTrace | Sequence[AnyTrace],
    output: PathLike,
    *,
    space: Space | WideSpace | PathLike | None = None,
    align: int | None = None,
    platform: str | None = None,
    objectives: Objectives = DEFAULT_OBJECTIVES,
    held_out: AnyTrace | Sequence[AnyTrace] = (),
    copies: int = COPIES,
    stress_test: bool = True,
    future: int = CALLS,
    current: str | None = None,
    same_device: bool | None = None,
    jobs: int | None = None,
    dask: str | None = None,
    strategy: Strategy | None = None,
    limit: int | None = None,
    seed: int = 0,
    warm: PathLike | Sequence[PathLike] = (),
    complete: bool = False,
    tolerance: float | None = None,
    budget: float | None = None,
    energy_table: EnergyTable | PathLike | None = None,
    repair: bool = False,
    progress: Callable[[Progress], None] | None = None,
    endurance: bool | None = None,
) -> Study:
    """Try every recipe of a space, and the zoo, on traces; the metrics are kept as a study.

    All recipes have one alignment. The zoo's are tried at that one, too; those with another alignment
    also appear as they are, called NAME@ALIGN, and are not ranked.

    The same call goes on where an earlier one stopped, and repeats nothing that is stored.

    Args:
        traces: one or several, with different names.
        output: the study file.
        space: a `Space`, a SPACE.toml, or None for the default space made for the traces.
        align: alignment of payloads in bytes; None is what the space says, or the platform, or 8. `Trace.notes` says
            what suits a trace.
        platform: one of `platforms()`: every recipe is explored as `generate` writes it there, with the platform's
            alignment and counters, and without resizing in place if it has no realloc. Recipes that it cannot use are
            left out. A lock is not counted in accesses; `measure` counts its instructions.
        objectives: metric keys, as "a,b" or a list, or what is worked out of metrics: "accesses / calls", or a
            function of a dictionary of them.
        held_out: traces that the front, what lies near it and the zoo are tried on afterwards, never ranked by.
        copies: perturbed copies of each trace, drawn with `seed`, that candidates are tried on.
        stress_test: rank by the need in the long run: candidates are replayed on a future of each trace (`resample`),
            and the front is stress-tested.
        future: calls of each future.
        current: the reference allocator that you use today, by its name; it stands in every table.
        same_device: whether several traces are loads of one device, whose memory is the largest and whose accesses are
            summed, or of many networks, where a recipe counts by its worst ratio to each one's best. None is the former
            where all come from one program. The study keeps it.
        jobs: threads, or workers of a local cluster; None is one for every processor.
        dask: the address of a Dask scheduler whose workers replay, or "local" for a cluster of processes on this
            machine; a script that asks for one runs under `if __name__ == "__main__":`.
        strategy, limit, seed: "exhaustive" takes the first `limit` recipes, "random" draws them. A SPACE.toml of more
            than 100,000 combinations is searched ("search") for `limit` recipes, default 5,000.
        warm: earlier studies near whose fronts a search begins.
        complete: finish every recipe, however long it takes.
        tolerance: stop recipes early that cannot be on a front which needs at most this share more than the front of
            all recipes; 0 is the same front. By default every recipe is finished if that takes about a
            minute, else it is 0.01.
        budget: seconds; the best front that can be had in them. The same call with more goes on.
        energy_table, repair: as for `replay`.
        progress: called about ten times a second.
        `endurance`: the name of `stress_test` in 0.2; it gives a warning.

    Raises HeapwrightError as `heapwright._explore.search.explore` does.
    """
    from heapwright._explore.options import Options

    options = Options(
        objectives=objectives,
        copies=copies,
        stress_test=stress_test,
        endurance=endurance,
        future=future,
        current=current,
        same_device=same_device,
        jobs=jobs,
        dask=dask,
        strategy=strategy,
        limit=limit,
        seed=seed,
        complete=complete,
        tolerance=tolerance,
        budget=budget,
        energy_table=energies_of(energy_table),
    )
    read, apart = ([trace_of(item, repair) for item in listed(given)] for given in (traces, held_out))
    made = space_for(read, space, align, platform)
    done = explore_with(options, read, made, output, held_out=apart, warm=listed(warm), progress=progress)
    return open_study(done.study)


@dataclass(frozen=True)
class Suggestion:
    """A recommendation from the portfolio: recipes that did well on other programs' traces.

    Attributes:
        pick: the heap.
        decision: what to reserve, on what evidence, and the alternatives.
        recipes: how many were tried, the zoo's among them.
        seconds: what that took.
        kept_out: how far such answers were from a complete exploration, on traces kept out of the learning.
        study: the study, if `output` names one.
        caveat: how long traces were replayed by pieces, in words; None if all were replayed whole.
    """

    pick: Member
    decision: Decision
    recipes: int
    seconds: float
    kept_out: HeldOutScore
    study: Path | None
    caveat: str | None = None

    def sentences(self) -> list[str]:
        """The answer in words, the last one how far such answers were."""
        return [*self.decision.sentences(), self.kept_out.sentence()]


@one_line_errors
def suggest(
    traces: AnyTrace | Sequence[AnyTrace],
    output: PathLike | None = None,
    *,
    align: int | None = None,
    platform: str | None = None,
    templates: Sequence[Template] | None = None,
    jobs: int | None = None,
    repair: bool = False,
    progress: Callable[[Progress], None] | None = None,
    told: Sequence[Template] | None = None,
) -> Suggestion:
    """Try the portfolio and the zoo on traces: a recommendation at once, where `explore` takes minutes.

    The portfolio has some 200 recipes of other traces' fronts; their lists and thresholds follow these traces' sizes.
    The pick is tested on two copies of each trace, and by a stress test of fewer calls than in an exploration.

    Args:
        traces: one or several, with different names.
        output: a study file to keep; None keeps none.
        align: alignment of payloads in bytes; None is the platform's, or 8.
        platform: one of `platforms()`: every recipe is tried as `generate` writes it there.
        templates: in place of the portfolio that ships (`heapwright._explore.portfolio`).
        jobs, repair, progress: as for `explore`.
        `told`: the name of `templates` in 0.2; it gives a warning.

    Raises HeapwrightError as `explore`.
    """
    from heapwright._explore.suggest import suggest as _suggest
    from heapwright._platforms.catalogue import platform as find_platform

    if told is not None:
        warnings.warn("`told` is now `templates`", DeprecationWarning, stacklevel=3)
        templates = told
    into = None if platform is None else find_platform(platform)
    start = time.perf_counter()
    read = [trace_of(item, repair) for item in listed(traces)]
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / "suggested.duckdb" if output is None else Path(output)
        result = _suggest(read, path, align, templates=templates, platform=into, jobs=jobs, progress=progress)
        pick = open_study(path)[result.decision.pick.id]
        kept = None if output is None else path
        seconds = time.perf_counter() - start
        return Suggestion(
            replace(pick, study=kept),
            result.decision,
            result.recipes,
            seconds,
            result.kept_out,
            kept,
            result.caveat,
        )


def space_for(
    traces: Sequence[Trace],
    space: Space | WideSpace | PathLike | None = None,
    align: int | None = None,
    platform: str | None = None,
) -> Space | WideSpace:
    """The space that `explore` tries on these traces; see there."""
    from heapwright._explore.space import Space, WideSpace
    from heapwright._platforms.catalogue import platform as find_platform

    into = None if platform is None else find_platform(platform)
    if space is None:
        return Space.default(traces, align, platform=into)
    if not isinstance(space, Space | WideSpace):
        return Space.load(Path(space), traces, align, platform=into)
    if align not in (None, space.align):
        raise HeapwrightError(f"{align}: the space has align {space.align}; give one of them", parameter="align")
    own = None if space.platform is None else space.platform.name
    if platform not in (None, own):
        raise HeapwrightError(f"{platform}: the space is for {own or 'none'}; give it there", parameter="platform")
    return space


def explore_with(
    options: Options,
    traces: Sequence[Trace],
    space: Space | WideSpace,
    output: PathLike,
    *,
    held_out: Sequence[Trace] = (),
    warm: Sequence[PathLike] = (),
    progress: Callable[[Progress], None] | None = None,
) -> Exploration:
    """Explore as `explore` does, with its options in one object; return what was done instead of the study."""
    from heapwright._explore.local_search import fronts
    from heapwright._explore.search import explore as run

    earlier = fronts([Path(path) for path in warm])
    return run(traces, space, Path(output), options, held_out=held_out, earlier=earlier, progress=progress)


@one_line_errors
def picks_by_load(study: Study, traces: AnyTrace | Sequence[AnyTrace], *, repair: bool = False) -> list[AtLoad]:
    """Return the pick for each trace alone, in order of the load that the traces were made at.

    `traces` are those that the study was explored on; those without a load are passed over, and there have to be two
    loads. See `heapwright._studies.by_load.picks_by_load`.
    """
    from heapwright._studies.by_load import picks_by_load as find

    return find(study, [trace_of(trace, repair) for trace in listed(traces)])


def study_in(source: PathLike) -> Study | None:
    """The study that a path, or a heap named STUDY:ID, leads to; None where it leads elsewhere."""
    name = parse(os.fspath(source))
    if name.kind == "study":
        return open_study(name.first)
    path = Path(source)
    return open_study(path) if local(path).is_file() and kind_of(path) == "study" else None
