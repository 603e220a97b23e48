"""Extension of a study by more traces, on which its recipes are evaluated too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from heapwright._explore.options import Options
from heapwright._explore.runner import Progress
from heapwright._explore.search import Exploration, explore
from heapwright._explore.space import TargetPlatform
from heapwright._recipes.recipe import Recipe
from heapwright._studies.analysis import Analysis
from heapwright._studies.originals import copies_of, originals
from heapwright._studies.records import TraceInfo, device_of
from heapwright._traces.trace import Trace


def extend(
    path: Path,
    traces: Sequence[Trace],
    *,
    given: Sequence[Path] = (),
    jobs: int | None = None,
    command: str | None = None,
    progress: Callable[[Progress], None] | None = None,
    platform_of: Callable[[str], TargetPlatform],
) -> Exploration:
    """Evaluate every recipe of the study at `path` on more traces, and rank its recipes on all of them from then on.

    Recipes near the new front are evaluated on as many copies of every trace as before, and on the hold-out set. The
    same call continues an interrupted one.

    Args:
        path: the study.
        traces: traces to add; one that the study has stays.
        given: present paths of the study's traces that have moved.
        jobs, command, progress: as for `explore`.
        platform_of: finds the platform of a study by its name.

    Raises HeapwrightError as `explore`, and if a trace of the study cannot be read again.
    """
    with Analysis.open(path, write=True) as study:
        added = [TraceInfo.of(trace) for trace in traces]
        known = {info.name for info in study.traces()}
        old, held_out = (originals(study, given, role, repair=True) for role in ("explored", "held out"))
        drawn = copies_of(study, old[0].name)
        every = [*old, *(trace for trace in traces if trace.name not in known)]
        report = study.same_device if len(old) > 1 else study.meta.get("same_device")
        study.add_traces(added, device_of(every, report))
        space, objectives, energies = StoredSpace(study, platform_of), study.objectives, study.energy_table
    options = Options(
        objectives,
        copies=len(drawn),
        seed=drawn[0].seed or 0 if drawn else 0,
        jobs=jobs,
        energy_table=energies,
        command=command,
    )
    return explore(every, space, path, options, held_out=held_out, progress=progress)


class StoredSpace:
    """Space of a study's recipes, in which its exploration continues; see `heapwright._explore.space.Space`."""

    def __init__(self, study: Analysis, platform_of: Callable[[str], TargetPlatform]) -> None:
        """Take the recipes and the digest of their space from the study."""
        self.align = study.align
        self.platform = None if study.platform is None else platform_of(study.platform)
        self.text = next((item.space for item in study.runs() if item.space), None)
        self.digest: str = study.meta["space"]
        self._size: int = study.meta["recipes"]
        self._recipes: list[Recipe] = []
        self.zoo: dict[str, Recipe] = {}
        self.unranked: list[Recipe] = []
        for recipe, zoo_name, ranked in study.recipes():
            if not ranked:
                self.unranked.append(recipe)
                continue
            self._recipes.append(recipe.canonical())
            if zoo_name:
                self.zoo[recipe.hash] = recipe

    def recipes(self) -> Iterator[Recipe]:
        """Yield every recipe once."""
        return iter(self._recipes)

    def __len__(self) -> int:
        return self._size
