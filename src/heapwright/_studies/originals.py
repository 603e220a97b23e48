"""Original traces of a study, read again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from heapwright._studies.records import TraceInfo
from heapwright._studies.study_file import StudyFile
from heapwright._studies.tables import Role
from heapwright._support.errors import HeapwrightError
from heapwright._support.remote import is_address, local
from heapwright._traces.trace import Trace


def originals(
    study: StudyFile, paths: Sequence[Path] = (), role: Role = "explored", *, repair: bool = False
) -> list[Trace]:
    """Read the traces of a role; `paths` are present paths of traces that have moved, matched by file name.

    Raises HeapwrightError if a trace came from no file, or a file is not the trace of the study.
    """
    return [original(study, info, paths, repair=repair) for info in study.traces(role)]


def original(study: StudyFile, info: TraceInfo, paths: Sequence[Path] = (), *, repair: bool = False) -> Trace:
    """Read one of the traces; see `originals`."""
    given = {path.stem: path for path in paths}
    if not info.path and info.name not in given:
        raise HeapwrightError(f"{study.path}: trace {info.name} came from no file; give its file", parameter="moved")
    path = given.get(info.name) or place(study, info)
    if path is None and is_address(info.path):
        raise HeapwrightError(f"{info.path}: an address that a study holds is not fetched; give it", parameter="moved")
    path = path or Path(info.path)
    if not local(path).exists():
        raise HeapwrightError(f"{path}: no such file; give the present path of trace {info.name}", parameter="moved")
    trace = Trace.read(path, repair=repair)
    if TraceInfo.of(trace).digest != info.digest:
        raise HeapwrightError(f"{path}: not the trace that {study.path} was explored on; give that one")
    return trace


def place(study: StudyFile, info: TraceInfo) -> Path | None:
    """The file of a trace: at its old path, or with the same name in the study's folder."""
    places = [Path(info.path), study.path.parent / Path(info.path).name] if info.path else []
    return next((place for place in places if place.is_file()), None)


def copies_of(study: StudyFile, name: str) -> list[TraceInfo]:
    """The copies of the trace of that name."""
    names = [info.name for info in study.traces()]
    results = []
    for copy in study.traces("copy"):
        of = max((item for item in names if copy.name.startswith(f"{item}~")), key=len, default=None)
        if of == name:
            results.append(copy)
    return results
