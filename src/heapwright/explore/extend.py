"""A study gets more traces: its recipes are tried on them, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from heapwright.explore.originals import StoredSpace, copies_of, originals
from heapwright.explore.running import Progress
from heapwright.explore.search import Exploration, explore
from heapwright.explore.study import Study, TraceInfo
from heapwright.traces.trace import Trace


def extend(
    path: Path,
    traces: Sequence[Trace],
    *,
    given: Sequence[Path] = (),
    jobs: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Exploration:
    """Try every recipe of the study at `path` on more traces, which its recipes are ranked by from then on.

    What is near the new front is tried on as many copies of every trace as before, and on the traces held out. The same
    call goes on where one was stopped.

    Args:
        path: the study.
        traces: those to add; one that is there already stays.
        given: where those of the study lie now that have moved.
        jobs, progress: as for `explore`.

    Raises HeapwrightError as `explore`, and where a trace of the study cannot be read again.
    """
    with Study.open(path, write=True) as study:
        added = [TraceInfo.of(trace) for trace in traces]
        known = {info.name for info in study.traces()}
        old, held_out = (originals(study, given, role, repair=True) for role in ("explored", "held out"))
        drawn = copies_of(study, old[0].name)
        study.add_traces(added)
        space, objectives, energies = StoredSpace(study), study.objectives, study.energy_table
    return explore(
        [*old, *(trace for trace in traces if trace.name not in known)],
        space,
        objectives,
        path,
        jobs,
        held_out=held_out,
        copies=len(drawn),
        seed=drawn[0].seed or 0 if drawn else 0,
        energy_table=energies,
        progress=progress,
    )
