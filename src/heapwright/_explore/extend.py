"""A study gets more traces: its recipes are tried on them, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from heapwright._explore.options import Options
from heapwright._explore.runner import Progress
from heapwright._explore.search import Exploration, explore
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
) -> Exploration:
    """Try every recipe of the study at `path` on more traces, which its recipes are ranked by from then on.

    What is near the new front is tried on as many copies of every trace as before, and on the traces held out. The same
    call goes on where one was stopped.

    Args:
        path: the study.
        traces: those to add; one that is there already stays.
        given: where those of the study lie now that have moved.
        jobs, command, progress: as for `explore`.

    Raises HeapwrightError as `explore`, and where a trace of the study cannot be read again.
    """
    with Analysis.open(path, write=True) as study:
        added = [TraceInfo.of(trace) for trace in traces]
        known = {info.name for info in study.traces()}
        old, held_out = (originals(study, given, role, repair=True) for role in ("explored", "held out"))
        drawn = copies_of(study, old[0].name)
        every = [*old, *(trace for trace in traces if trace.name not in known)]
        report = study.same_device if len(old) > 1 else study.meta.get("same_device")
        study.add_traces(added, device_of(every, report))
        space, objectives, energies = StoredSpace(study), study.objectives, study.energy_table
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
    """The recipes of a study, as the space that its exploration goes on in; see `heapwright._explore.space.Space`."""

    def __init__(self, study: Analysis) -> None:
        """Take the recipes, and what tells their space from others, from the study."""
        self.align = study.align
        self.text = next((item.space for item in study.runs() if item.space), None)
        self.digest: str = study.meta["space"]
        self._size: int = study.meta["recipes"]
        self._recipes: list[Recipe] = []
        self.zoo: dict[str, Recipe] = {}
        self.beside: list[Recipe] = []
        for recipe, zoo_name, ranked in study.recipes():
            if not ranked:
                self.beside.append(recipe)
                continue
            self._recipes.append(recipe.canonical())
            if zoo_name:
                self.zoo[recipe.hash] = recipe

    def recipes(self) -> Iterator[Recipe]:
        """Yield every recipe once."""
        return iter(self._recipes)

    def __len__(self) -> int:
        return self._size
